"""Every store passes the contract, other software opens what we write, and what is not a store is refused by name."""

from __future__ import annotations

import zipfile

import h5py
import pytest
import zarr

import streamcut
from streamcut.errors import NotFoundError

pytestmark = pytest.mark.smoke


def test_what_is_not_a_store_is_named(tmp_path):
    (tmp_path / "text.svm").write_text("1 1:1\n")
    (tmp_path / "folder").mkdir()
    zarr.open_group(tmp_path / "group.zarr", mode="w")
    with h5py.File(tmp_path / "plain.h5", "w"):
        pass
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("x", "y")
    words = {"text.svm": "a file", "folder": "a directory", "group.zarr": "Zarr group", "plain.h5": "HDF5 file"}
    for name, word in {**words, "plain.zip": "a zip file", "nothing": "no such file"}.items():
        with pytest.raises(NotFoundError, match=word):
            streamcut.open(tmp_path / name)
