"""What tests/hostile/test_bad_input.py and tests/inside/hostile/test_bad_input.py share."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from kit.bad_input import GOOD, OK

import streamcut


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(folder) -> Path:
    (folder / "good.svm").write_bytes(GOOD)
    streamcut.convert("good.svm", "good.zarr")
    return folder / "good.zarr"


def refused(run, arguments: str, code: int, words: str) -> str:
    """The message of a command line that ends with `code`, without a traceback and without leaving a file."""

    before = set(os.listdir())
    found, out, err = run(*arguments.split())
    assert (found, out) == (code, ""), err
    assert re.search(words, err), err
    assert "Traceback" not in err
    assert set(os.listdir()) == before
    return err


@pytest.fixture
def model(run, store) -> Path:
    assert run("train", "good.zarr", "--output", "m.npz", "--quiet")[0] == OK
    return store.with_name("m.npz")
