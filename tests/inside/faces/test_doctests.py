"""The examples in docstrings run, and give what they say."""

from __future__ import annotations

import doctest
import shutil
from importlib import import_module

import pytest

import streamcut

# in the order of a session: `convert` makes the files that the others use
NAMES = {
    "streamcut.io.conversion.convert": "convert",
    "streamcut.io.conversion.create": "NewStore",
    "streamcut.io.opening": "open_dataset",
    "streamcut.training": "train",
    "streamcut.prediction": "predict",
    "streamcut.evaluation": "evaluate",
    "streamcut.reports.named_weights": "weights",
    "streamcut.reports.explained": "explain",
    "streamcut.grids.selection": "train_path",
    "streamcut.tuning": "tune",
    "streamcut.calibration": "calibrate",
    "streamcut.structured": "structured",
    "streamcut.models.model": "save",
    "streamcut.sklearn": "StreamcutClassifier",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("doctests")


@pytest.mark.parametrize("module", NAMES)
def test_examples_run(module, folder, monkeypatch):
    monkeypatch.chdir(folder)
    source = import_module(module)
    if module == "streamcut.io.conversion.convert":
        shutil.rmtree(folder / "rows.zarr", ignore_errors=True)  # others may have needed it before
    elif not (folder / "rows.zarr").exists():
        example("streamcut.io.conversion.convert")
    tests = [test for test in doctest.DocTestFinder().find(source, extraglobs={"streamcut": streamcut}) if test.examples]
    assert any(test.name.split(".")[-1] == NAMES[module] for test in tests), "it has an example"
    assert doctest.testmod(source, extraglobs={"streamcut": streamcut}).failed == 0


def example(module: str) -> None:
    """Run the examples of a module for what they leave behind."""
    assert doctest.testmod(import_module(module), extraglobs={"streamcut": streamcut}).failed == 0
