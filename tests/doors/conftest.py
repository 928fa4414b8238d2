"""Commands run in a folder of their own."""

from __future__ import annotations

import shlex

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def command(run, folder):
    """`command("train t.zarr -o m.npz")` → (exit code, stdout, stderr), in an empty folder."""
    return lambda line: run(*shlex.split(line))
