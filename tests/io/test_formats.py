"""What is no store and what is no data is told by name, and by its ending where that says enough."""

from __future__ import annotations

import zipfile

import h5py
import pytest
import zarr

import streamcut
from streamcut.errors import BadInputError, NotFoundError

FOREIGN = {"a.xlsx": "spreadsheet", "a.PKL": "pickle", "a.dta": "statistics", "a.db": "database"}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_programs_are_told_by_name(tmp_path, name):
    (tmp_path / name).write_text("1 1:1 3:0.5\n-1 2:1\n" * 20)
    path, store = str(tmp_path / name), tmp_path / "a.zarr"
    with pytest.raises(BadInputError, match=FOREIGN[name]):
        streamcut.convert(path, store)
    with pytest.raises(BadInputError, match=FOREIGN[name]):
        streamcut.train(path)
    with pytest.raises(BadInputError, match=FOREIGN[name]):
        streamcut.fit(path, label="y")
    assert streamcut.convert(path, store, format="svmlight").rows == 40


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
