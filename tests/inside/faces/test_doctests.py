"""The examples in docstrings run, and give what they say."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

import streamcut

NAMES = {
    "streamcut.api.making": "convert",
    "streamcut.api.using": "predict",
    "streamcut.io.conversion.create": "NewStore",
    "streamcut.io.opening": "open_dataset",
    "streamcut.structured": "structured",
    "streamcut.models.model": "save",
    "streamcut.sklearn": "StreamcutClassifier",
}


@pytest.mark.parametrize("module", NAMES)
def test_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if module != "streamcut.api.making":  # `convert` makes the files that the others use
        doctest.run_docstring_examples(streamcut.convert, {"streamcut": streamcut})
    source, runner = import_module(module), doctest.DocTestRunner()
    tests = [test for test in doctest.DocTestFinder().find(source, extraglobs={"streamcut": streamcut}) if test.examples]
    assert any(test.name.split(".")[-1] == NAMES[module] for test in tests), "it has an example"
    for test in sorted(tests, key=lambda test: test.name != "streamcut.api.making.convert"):
        runner.run(test)
    assert runner.failures == 0
