"""Every verb stands in streamcut.api, as the module that does its work has it."""

from __future__ import annotations

import inspect
import json
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import streamcut
from streamcut.api import VERBS
from streamcut.api.verb import verb
from streamcut.cli import COMMANDS
from streamcut.exports.export import TARGETS, ExportTarget

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("name", VERBS)
def test_what_does_the_work_takes_what_the_verb_has(name):
    verb, worker = VERBS[name], getattr(import_module(VERBS[name].home), name)
    assert getattr(streamcut, name) is verb
    its = inspect.signature(worker).parameters
    others = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in its.values())
    for parameter in inspect.signature(verb).parameters.values():
        assert parameter.name in its or others, parameter
        if parameter.name in its and its[parameter.name].default is not inspect.Parameter.empty:
            assert parameter.default in (its[parameter.name].default, ...), parameter


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_what_its_parameters_are(name):
    text = VERBS[name].__doc__
    assert "{options}" not in text
    assert [each for each in inspect.signature(VERBS[name]).parameters if each not in text and each != "options"] == []


def test_a_new_verb_is_its_function_and_its_module(run, monkeypatch):
    def count(words: Any, *, least: int = 1) -> dict[str, int]:
        """Count letters.

        words   some text
        least   fewest to say
        """

    monkeypatch.setitem(
        sys.modules, "counting", SimpleNamespace(count=lambda words, *, least: {"letters": max(least, len(words))})
    )
    made = verb("counting", command="Count letters.")(count)
    monkeypatch.delitem(VERBS, "count")  # as it was, in the end
    monkeypatch.setitem(VERBS, "count", made)
    monkeypatch.setitem(COMMANDS, "count", made.command)
    assert streamcut.count("abc") == {"letters": 3}
    assert "count" in streamcut.__all__
    assert json.loads(run("count", "abc", "--least", "5", "--json")[1]) == {"letters": 5}
    assert "Fewest to say" in run("count", "--help-all")[1]
    assert [name for name, made in VERBS.items() if made.command and name not in COMMANDS] == []


def test_a_new_export_is_its_entry(run, monkeypatch, tmp_path):
    streamcut.train((np.eye(2), [1.0, -1.0])).save(tmp_path / "m.npz")
    weights = ExportTarget(lambda model, form: b",".join(b"%g" % weight for weight in form.weights[0]), (".csv",))
    monkeypatch.setitem(TARGETS, "csv", weights)
    for place, to in (("a.csv", ()), ("b.txt", ("--to", "csv"))):
        assert run("export", tmp_path / "m.npz", tmp_path / place, *to)[0] == 0
        assert len((tmp_path / place).read_text().split(",")) == 2
