"""Every verb stands in streamcut.api, as the module that does its work has it."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

import streamcut
from streamcut.api import VERBS

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
