"""No option does nothing: whatever is accepted changes the answer; all else is refused. Every task and solver, every option.

An option's declaration says which values are tried (streamcut.options), with FAMILIES asked for, too.

The exceptions are named: RESOURCES say where and how fast a run is, and must not change the answer; SAME_BITS are other sums of
the same numbers, which may not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from reference.frozen_weights import DATA

import streamcut
from streamcut import train
from streamcut.config import LIMITS, OPTIONS, RESOURCES, WATCHERS, TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.io.stores.writer import StoreWriter
from streamcut.models.packing import packed
from streamcut.solver_table import SOLVER_TABLE
from streamcut.training import Session

PROBLEMS = {  # (options, data)
    "binary": ({}, "two"),
    "labelling": ({"loss": "prec@k", "k": "20%"}, "two"),
    "regression": ({"task": "regression"}, "queries"),
    "one-class": ({"task": "one-class", "nu": 0.05, "tol": 1e-9, "tol_relative": None}, "two"),
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
GIVEN = ("validation", "warm_start")  # by the tests below

CASES = [(problem, solver) for solver, record in SOLVER_TABLE.items() for problem in record.trains]
CASES += [("ROC area", solver) for problem, solver in CASES if problem == "ranking"]


_made: dict[str, Any] = {}


def data(name: str) -> Any:
    """The first rows of one of DATA; "clicks": those of "queries" with two labels, in queries of different lengths."""
    if name not in _made:
        rows = DATA[name if name in DATA else "queries"]().read(0).rows(0, 72)
        indptr, indices, values = rows.indptr, rows.indices[: rows.nnz], rows.data[: rows.nnz]
        X = sp.csr_array((values, indices, indptr), shape=(rows.n_rows, 10))
        y = rows.y if name in DATA else np.where(rows.y > 1, 1.0, 0.0)
        _made[name] = streamcut.rows(X, y, qid=rows.qid if name in DATA else np.repeat([1, 2, 3], [6, 18, 48]))
    return _made[name]


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
    chosen = TrainOptions(**options)
    with Session(data(name), chosen, scheduler="sync") as run:
        return run.job.identity(run.dataset.manifest.fingerprint, run.plan)


@pytest.mark.parametrize("case", CASES[::3], ids="-".join)  # each takes seconds: every third of a list that has every solver
def test_every_option_that_is_accepted_changes_the_answer(case):
    problem, solver = case
    base, name, known, dead, unknown = asked(problem, solver), PROBLEMS[problem][1], {}, [], []

    def answer_of(options: dict) -> tuple:
        key = repr(sorted(options.items()))
        if key not in known:
            known[key] = answer(name, options)
        return known[key]

    for option, changes in CHANGES.items():
        for others, value in changes:
            options = {**base, **others}
            changed = {**options, option: value}
            if options.get(option, TrainOptions.__dataclass_fields__[option].default) == value:
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


@pytest.mark.parametrize("solver", [name for name, record in SOLVER_TABLE.items() if "warm_start" in record.options])
def test_a_model_to_begin_with_changes_the_answer(solver):
    options = asked("binary", solver)
    start = train(data("two"), scheduler="sync", **{**options, "C": 0.05})
    assert answer("two", {**options, "warm_start": start}) != answer("two", options)
    assert identity("two", {**options, "warm_start": start}) != identity("two", options)


@pytest.mark.parametrize("solver", [name for name, record in SOLVER_TABLE.items() if "validation" in record.options])
def test_validation_data_is_measured_on(solver, tmp_path):
    rows = data("two").read(0)
    with StoreWriter(tmp_path / "rows.zarr", shard_nnz=1000, n_features=10, options={}) as writer:
        writer.append(rows, {})
        writer.finish({})
    options = asked("binary", solver)
    assert answer("two", {**options, "validation": str(tmp_path / "rows.zarr")})[1] != answer("two", options)[1]


def test_every_option_is_tried_or_exempt():
    assert set(CHANGES) | set(GIVEN) | set(RESOURCES) == set(TrainOptions.__dataclass_fields__)
    assert not set(CHANGES) & set(RESOURCES)
