"""Options and verbs: no option does nothing, defaults are values that are taken, tables and signatures agree.

Whatever is accepted changes the answer; all else is refused. An option's declaration says which values are tried
(streamcut.options), with FAMILIES asked for, too. The exceptions are named: RESOURCES say where and how fast a run is, and must
not change the answer; SAME_BITS are other sums of the same numbers, which may not.
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from laws.problems import ROWS, Rows
from reference.frozen_weights import CASES as FROZEN_CASES
from reference.frozen_weights import frozen

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.api import VERBS
from streamcut.config import COMMON, LIMITS, OPTIONS, RESOURCES, SOLVERS, WATCHERS, TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.units import plain
from streamcut.io.conversion.options import ConvertOptions
from streamcut.models.packing import packed
from streamcut.options.option import default_of, options_of
from streamcut.solver_table import SOLVER_TABLE
from streamcut.training import Session

FIELDS = TrainOptions.__dataclass_fields__
PROBLEMS = {  # (options, rows)
    "binary": ({}, "signs"),
    "labelling": ({"loss": "prec@k", "k": "20%"}, "signs"),
    "regression": ({"task": "regression"}, "numbers"),
    "one-class": ({"task": "one-class", "nu": 0.05, "tol": 1e-9, "tol_relative": None}, "signs"),
    "ranking": ({"task": "ranking"}, "queries"),
    "ROC area": ({"task": "roc-area"}, "clicks"),
    "crammer-singer": ({"task": "multiclass"}, "classes"),
    "softmax": ({"task": "multiclass", "loss": "softmax", "C": 30.0, "tol": 1e-6, "tol_relative": None}, "classes"),
    "one-vs-rest": ({"task": "multiclass"}, "classes"),
    "sequence": ({"task": "sequence"}, "sequences"),
}
FAMILIES = {
    "linear": {},
    "budgeted": {"kernel": "rbf", "gamma": 0.7, "budget": 10},
    "exact-kernel": {"kernel": "rbf", "gamma": 0.7},
    "sampled": {"kernel": "rbf", "gamma": 0.7, "samples": 8},
}
CHANGES = {  # [(what else is asked for, another value)]
    name: [value if isinstance(value, tuple) else ({}, value) for value in option.tried]
    for name, option in OPTIONS.items()
    if option.tried
}
SAME_BITS = ("lanes",)  # cuts are exact sums in any order; dual ascent alone depends on lanes
OF_DATA = ("validation", "warm_start")  # tried by a test of their own
CASES = [([*record.trains][k % len(record.trains)], name) for k, (name, record) in enumerate(SOLVER_TABLE.items(), 1)]
CASES[0] = ("binary", "bundle-dca")
CASES += [("crammer-singer", "bundle-dca"), ("ROC area", "newton")]


@cache
def data(name: str):
    """The first rows of one of ROWS; "clicks": those of "queries" with two labels, in queries of different lengths."""
    rows = ROWS["queries" if name == "clicks" else name][: 48 if name == "sequences" else 72]
    if name == "clicks":
        rows = Rows(rows.X, np.where(rows.y > 1, 1.0, 0.0), np.repeat([1, 2, 3], [6, 18, 48]))
    return rows.in_memory()


def asked(problem: str, solver: str) -> dict:
    record, options = SOLVER_TABLE[solver], {"solver": solver, **PROBLEMS[problem][0]}
    if record.curved or record.columns:
        smooth = {"binary": {"loss": "logistic"}, "regression": {"loss": "huber"}}.get(problem, {})
        options |= {"tol": 1e-9, "tol_relative": None, **smooth}
    if record.columns:
        options["l1_only"] = 0.05
    if problem == "one-vs-rest" and "strategy" in record.options:
        options["strategy"] = "one-vs-rest"
    if record.family == "exact-kernel" and not record.intercept:
        options["bias"] = 0.0
    if "max_passes" in record.options:
        options["max_passes"] = 25
    return {**options, **FAMILIES[record.family]}


def answer(name: str, options: dict) -> tuple:
    """All numbers that come out but for times and bytes, or what a run that was broken off at once says."""
    try:
        model = train(data(name), scheduler="sync", **options)
    except KeyboardInterrupt:
        return ("interrupted",)
    history = [{key: value for key, value in line.items() if key != "seconds"} for line in model.history]
    arrays: dict = {}
    packed(model, "", arrays)
    return {key: array.tobytes() for key, array in arrays.items()}, history, model.labels, model.stop_reason


def identity(name: str, options: dict) -> dict:
    with Session(data(name), TrainOptions(**options), scheduler="sync") as run:
        return run.job.identity(run.dataset.manifest.fingerprint, run.plan)


@pytest.mark.parametrize("case", CASES, ids="-".join)  # each takes seconds: one of each solver, and a few more
def test_every_option_that_is_accepted_changes_the_answer(case):
    problem, solver = case
    base, answers, dead, unknown = asked(problem, solver), {}, [], []
    name = "weighted" if problem == "binary" and SOLVER_TABLE[solver].family == "linear" else PROBLEMS[problem][1]

    def answer_of(options: dict) -> tuple:
        key = repr(sorted(options.items()))
        if key not in answers:
            answers[key] = answer(name, options)
        return answers[key]

    for option, changes in CHANGES.items():
        for others, value in changes:
            options = {**base, **others}
            changed = {**options, option: value}
            if options.get(option, FIELDS[option].default) == value:
                continue
            try:
                if not TrainOptions(**changed).has(option):
                    assert value == 0.0, "what the solver does not have anyway"
                    continue
                new, old = answer_of(changed), answer_of(options)
            except (UsageError, BadInputError):
                continue
            if new == old and (option not in SAME_BITS or SOLVER_TABLE[solver].dual):
                dead.append((option, value))
            deciding = option not in (*LIMITS, *WATCHERS, *SOLVER_TABLE[solver].limits)
            if deciding and identity(name, changed) == identity(name, options):
                unknown.append((option, value))
    assert dead == []
    assert unknown == [], "a run could go on from a checkpoint of another one"


@pytest.mark.parametrize(
    ("option", "solver"), [(o, name) for name, record in SOLVER_TABLE.items() for o in OF_DATA if o in record.options]
)
def test_a_model_to_begin_with_and_held_out_rows_change_the_answer(option, solver):
    options = asked("binary", solver)
    if option == "validation":
        assert answer("signs", {**options, option: data("signs")})[1] != answer("signs", options)[1]
        return
    changed = {**options, option: train(data("signs"), scheduler="sync", **{**options, "C": 0.05})}
    assert answer("signs", changed) != answer("signs", options)
    assert identity("signs", changed) != identity("signs", options)


def test_every_option_is_tried_or_exempt_and_of_some_solver():
    assert set(CHANGES) | set(OF_DATA) | set(RESOURCES) == set(FIELDS)
    assert not set(CHANGES) & set(RESOURCES)
    assert {*COMMON, *(option for record in SOLVER_TABLE.values() for option in record.options)} == set(FIELDS)


def test_what_the_table_of_solvers_says_is_there():
    for record in SOLVER_TABLE.values():
        assert set(record.limits) <= set(record.options) <= set(FIELDS)
        assert all(record.algorithm(problem) for problem in record.trains)
    assert {training.options["solver"] for training in FROZEN_CASES.values() if "solver" in training.options} == set(SOLVERS)
    assert set(frozen()) == set(FROZEN_CASES)


@pytest.mark.parametrize("record", [TrainOptions, CheckpointOptions, ConvertOptions])
def test_defaults_are_values_that_options_take(record):
    """Nobody checks them each time."""
    for name, option in options_of(record).items():
        if (default := default_of(record, name)) is not MISSING:
            assert not option.choices or default in option.choices, name
            assert option.check is None or option.check(default), name
            assert plain(default) is default


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_has_the_parameters_of_its_worker_and_documents_them(name):
    verb, worker = VERBS[name], getattr(import_module(VERBS[name].home), name)
    assert getattr(streamcut, name) is verb
    theirs = inspect.signature(worker).parameters
    any_other = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in theirs.values())
    assert "{options}" not in verb.__doc__
    for parameter in inspect.signature(verb).parameters.values():
        assert parameter.name in verb.__doc__ or parameter.name == "options"
        assert parameter.name in theirs or any_other, parameter
        if parameter.name in theirs and theirs[parameter.name].default is not inspect.Parameter.empty:
            assert parameter.default in (theirs[parameter.name].default, ...), parameter
