"""The examples in docstrings run, and give what they say."""

from __future__ import annotations

import doctest
import shutil
from importlib import import_module

import pytest

import streamcut

# in the order of a session: `convert` makes the files that the others use
NAMES = {
    "streamcut.api.making": "convert",
    "streamcut.api.using": "predict",
    "streamcut.io.conversion.create": "NewStore",
    "streamcut.io.opening": "open_dataset",
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
    shutil.rmtree(folder / "rows.zarr", ignore_errors=True)
    tests = [test for test in doctest.DocTestFinder().find(source, extraglobs={"streamcut": streamcut}) if test.examples]
    assert any(test.name.split(".")[-1] == NAMES[module] for test in tests), "it has an example"
    if module != "streamcut.api.making":
        doctest.run_docstring_examples(streamcut.convert, {"streamcut": streamcut})
    runner = doctest.DocTestRunner()
    for test in sorted(tests, key=lambda test: test.name != "streamcut.api.making.convert"):
        runner.run(test)
    assert runner.failures == 0
