"""Temporary files go where TMPDIR says, or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import streamcut
from streamcut.errors import NotFoundError


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pd.DataFrame({"x": rng.normal(size=200), "y": rng.choice(["no", "yes"], 200)}).to_csv("t.csv", index=False)
    (tmp_path / "file").touch()
    return tmp_path


@pytest.mark.parametrize("folder", ["missing", "file", "/proc"])
def test_a_folder_that_cannot_be_used_is_refused_by_name(table, run, monkeypatch, folder):
    if folder == "/proc" and not Path(folder).is_dir():
        pytest.skip("a file system in which nobody can write")
    monkeypatch.setenv("TMPDIR", folder)
    code, out, err = run("fit", "t.csv", "--label", "y", "-o", "m.npz", "-q")
    assert (code, out) == (4, "")
    assert f"TMPDIR: {folder}" in err
    assert "--scratch" in err
    assert not Path("m.npz").exists()
    with pytest.raises(NotFoundError, match="TMPDIR"):
        streamcut.train("t.csv", label="y")
    assert run("fit", "t.csv", "--label", "y", "-o", "m.npz", "-q", "--scratch", table)[0] == 0
    assert run("predict", "m.npz", "t.csv")[0] == 0, "nothing temporary is written"


def test_a_folder_that_can_be_is_used(table, run, monkeypatch):
    there = table / "there"
    there.mkdir()
    monkeypatch.setenv("TMPDIR", str(there))
    before = os.stat(there).st_mtime_ns
    assert run("fit", "t.csv", "--label", "y", "-o", "m.npz", "-q")[0] == 0
    assert os.stat(there).st_mtime_ns > before
    assert list(there.iterdir()) == []
