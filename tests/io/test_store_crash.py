"""Killing the writer at every step, full disks, locks: nothing half-written gets a name, and resuming gives the same bytes.

Children are forked, so that kernels are compiled once.
"""

from __future__ import annotations

import pytest
from kit.store_crash import content

pytestmark = pytest.mark.process


def test_what_replaces_a_store_is_resumed(tmp_path, monkeypatch, run):
    """Through the command line, as whoever lost a night's work would."""
    text, store = tmp_path / "a.svm", tmp_path / "a.zarr"
    text.write_text("".join(f"{(-1) ** n} {n % 7 + 1}:1 9:2\n" for n in range(900)))
    command = ["convert", text, store, "--shard-nnz", "400", "--quiet", "--force", "--workers", "1"]
    assert run(*command)[0] == 0
    old = content(store)
    text.write_text(text.read_text() + "1 3:1\n")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.manifest:1:ENOSPC")
    assert run(*command)[0] == 8
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    assert content(store) == old
    code, _, err = run(*command, "--resume")
    assert code == 0, err
    assert content(store) != old
    run("convert", text, tmp_path / "new.zarr", "--shard-nnz", "400", "--quiet", "--workers", "1")
    assert content(store) == content(tmp_path / "new.zarr")
