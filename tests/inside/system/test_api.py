"""Every verb stands in streamcut.api, as the module that does its work has it."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest

import streamcut
from streamcut.api import VERBS

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_has_the_signature_of_what_does_its_work(name):
    verb, worker = VERBS[name], getattr(import_module(VERBS[name].home), name)
    assert getattr(streamcut, name) is verb
    mine, its = (inspect.signature(each) for each in (verb, worker))
    assert list(mine.parameters) == list(its.parameters)
    for parameter, other in zip(mine.parameters.values(), its.parameters.values(), strict=True):
        assert parameter.kind == other.kind, parameter
        assert parameter.annotation == other.annotation, parameter
        assert parameter.default in (other.default, ...), parameter
    assert mine.return_annotation == its.return_annotation


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_what_its_parameters_are(name):
    text = VERBS[name].__doc__
    assert "{options}" not in text
    assert [each for each in inspect.signature(VERBS[name]).parameters if each not in text and each != "options"] == []
