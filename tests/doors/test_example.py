"""`streamcut example`: data to try things on, needing nothing but the package."""

from __future__ import annotations

import pytest

import streamcut

ROWS = {"clicks": 4000, "posts": 1500, "cells": 900, "tumours": 426, "tumours-test": 143, "digits": 1797}
LABELS = {"clicks": "click", "posts": "topic", "cells": "obs:cell_type"}


@pytest.mark.parametrize("name", ROWS)
def test_every_example_is_data_that_convert_takes_and_the_same_again(name, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name == "cells":
        pytest.importorskip("anndata")
    assert run("example", name)[:2] == (0, "")
    (made,) = tmp_path.iterdir()
    first = streamcut.convert(made, "a.zarr", labels=LABELS.get(name))
    assert first.rows == ROWS[name]
    code, _, err = run("example", name)
    assert code == 2
    assert "exists" in err
    assert run("example", name, "--force", "-q") == (0, "", "")
    streamcut.convert(made, "b.zarr", labels=LABELS.get(name))
    assert streamcut.open("a.zarr").manifest.fingerprint == streamcut.open("b.zarr").manifest.fingerprint


def test_the_name_of_the_file_may_be_chosen_and_a_wrong_name_is_told(run, tmp_path):
    assert run("example", "tumours", tmp_path / "train.svm", "-q")[0] == 0
    assert (tmp_path / "train.svm").read_text().count("\n") == 426
    code, _, err = run("example", "click")
    assert code == 2
    assert "clicks" in err
