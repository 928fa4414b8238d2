"""The registry of formats: what a record says is known to the command line, to `convert` and to whoever finds files."""

from __future__ import annotations

import pytest

import streamcut
from streamcut.errors import BadInputError

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
