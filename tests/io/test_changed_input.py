"""Inputs that change while `convert` reads them: exit 3 with their name, and nothing under a final name."""

from __future__ import annotations

import kit.shared.changed_input
import pytest
from kit.shared.changed_input import KINDS, ROWS

import streamcut

inputs = kit.shared.changed_input.inputs
folder = kit.shared.changed_input.folder


def test_nothing_is_said_of_files_that_stay_as_they_are(run, folder):
    for name, options in KINDS.items():
        code, _, err = run("convert", name, f"{name}.zarr", *options)
        assert code == 0, err
        assert streamcut.open(f"{name}.zarr").manifest.statistics.n_rows == ROWS


def test_labels_that_change_between_a_kill_and_its_resumption_are_refused(folder, monkeypatch):
    streamcut.convert("a.npz", "out.zarr", labels="y.txt")
    (folder / "y.txt").write_text("1\n" * ROWS)
    with pytest.raises(streamcut.errors.UsageError, match="other data"):
        streamcut.convert("a.npz", "out.zarr", labels="y.txt", resume=True)
