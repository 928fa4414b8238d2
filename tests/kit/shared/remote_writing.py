"""What tests/io/test_remote_writing.py and tests/inside/io/test_remote_writing.py share."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.object_stores import write_rows

import streamcut

SHARDS = {"shard_nnz": 700, "threads": 1}


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """svmlight text of 400 rows, and beside it the store t.zarr of it."""
    folder = tmp_path_factory.mktemp("writing")
    write_rows(folder / "t.svm", 400)
    streamcut.convert(folder / "t.svm", folder / "t.zarr", **SHARDS)
    return folder / "t.svm"
