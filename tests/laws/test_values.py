"""Every accepted value ends, however it is spelt and however extreme it is, and what is claimed then is true.

Trainings run in a process of their own under a hard time limit (`alone`): one that never ends fails, and does not hang.
"""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from laws.alone import Alone
from laws.problems import KERNELS, ROW_LOSSES, ROWS, TRAININGS, Rows, objective

import streamcut
from streamcut.errors import StreamcutError
from streamcut.sklearn import KernelSVM, LinearSVM

ALL = {**TRAININGS, **KERNELS}
FIRST = 400.0  # seconds of a call that may have to compile
AGAIN = 100.0  # of one that others of its kind, which take milliseconds, have been before


@pytest.fixture(scope="module")
def alone():
    alone = Alone()
    yield alone
    alone.close()


def answer(rows: Rows, options: dict) -> tuple:
    """The bits of the answer."""
    model = streamcut.train(rows.in_memory(), **options)
    names = ("weights", "intercept", "intercepts", "transitions", "coefficients", "support")
    parts = [np.asarray(getattr(getattr(model, name), "data", getattr(model, name))) for name in names if hasattr(model, name)]
    return tuple(part.tobytes() for part in parts)


def outcome(rows: Rows, options: dict) -> dict:
    """What a linear training, or smo, claims, and what is true of it; problems of one-vs-rest add up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = streamcut.train(rows.in_memory(), **options)
    many = model.certificates
    return {
        "F": objective(model, rows, options),
        "primal": sum(c.primal for c in many),
        "bound": sum(c.lower_bound for c in many),
        "converged": model.converged,
        "intercept": model.intercept if hasattr(model, "intercept") else None,
    }


def spellings(value: float) -> list:
    """The same number in other types."""
    if isinstance(value, int):
        return [np.int64(value), np.uint8(value), np.array(value)]
    whole = [int(value), np.int64(value)] if value == int(value) else []
    return [*whole, np.float32(value), np.array(value)]


SPELT = [(name, "C", 2.0) for name in list(TRAININGS)[::3] if not name.startswith("one class")]  # they are read in one place
SPELT += [
    *[("hinge", option, value) for option, value in (("positive_weight", 2.0), ("bias", 2.0), ("tol", 1.0), ("target", 100.0))],
    *[("hinge", option, value) for option, value in (("sweeps", 5), ("seed", 3), ("lanes", 2), ("workers", 2))],
    *[("hinge", option, value) for option, value in (("max_time", 100.0), ("tol_relative", 1.0))],
    *[("logistic, newton, free intercept", option, value) for option, value in (("max_cuts", 4), ("tol_relative", 0.25))],
    ("elastic net", "l1", 2.0),
    ("lasso", "l1_only", 3.0),
    ("huber", "delta", 2.0),
    ("epsilon-insensitive", "epsilon", 1.0),
    ("quantile", "quantile", 0.25),
    ("one class", "nu", 0.5),
    *[("smo", option, value) for option, value in (("C", 2.0), ("gamma", 1.0), ("tol", 1.0))],
    *[("smo, values 1, polynomial", option, value) for option, value in (("degree", 2), ("coef0", 1.0), ("bias", 0.0))],
    *[("bsca", option, value) for option, value in (("C", 2.0), ("budget", 20), ("epochs", 2.0), ("seed", 3))],
    *[("bsgd, classes", option, value) for option, value in (("C", 2.0), ("budget", 20), ("epochs", 2.0))],
    *[("sbp", option, value) for option, value in (("nu", 0.25), ("epochs", 2.0))],
    *[("sampled-linear", option, value) for option, value in (("C", 2.0), ("samples", 25))],
    ("nystroem", "nystroem", 30),
    ("fourier", "fourier", 64),
]


@pytest.mark.parametrize(("name", "option", "value"), SPELT)
def test_a_number_may_be_spelt_in_any_type(name, option, value, alone):
    rows, options, passes = ALL[name]
    options = {**({} if passes is None else {"max_passes": 4}), **options, option: value}
    expected = alone(answer, ROWS[rows], options, seconds=FIRST)
    for same in spellings(value):
        assert alone(answer, ROWS[rows], {**options, option: same}, seconds=AGAIN) == expected, type(same)


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("name", [name for name in (*TRAININGS, "smo") if not name.startswith("one class")])
def test_an_extreme_weight_of_the_loss_ends_and_claims_nothing_false(name, C, alone):
    rows, options, passes = ALL[name]
    guard = {"max_time": 5.0} if passes is None else {"max_passes": 60}
    end = alone(outcome, ROWS[rows], {**options, **guard, "C": C}, seconds=FIRST)
    assert -np.inf < end["bound"] <= end["F"] * (1 + 1e-9)
    assert end["F"] <= end["primal"] * (1 + 1e-9) < np.inf


@pytest.mark.parametrize("kind", [int, np.int64, np.float32, np.array])
def test_grids_and_class_weights(kind):
    plain, other = (
        streamcut.tune((_X, TARGETS["labels"]), {"C": [each(1), each(4)], "l1": [each(1), each(2)]}, folds=3, max_passes=40)
        for each in (float, kind)
    )
    assert (plain.best.options, plain.best.values) == (other.best.options, other.best.values)
    np.testing.assert_array_equal(plain.model.weights, other.model.weights)
    for make in (LinearSVM, KernelSVM):
        plain, other = (make(class_weight={-1.0: each(2), 1.0: each(3)}).fit(_X, TARGETS["labels"]) for each in (float, kind))
        np.testing.assert_array_equal(plain.decision_function(_X), other.decision_function(_X))


@pytest.mark.parametrize("rows", [12, 12.0, np.int64(12), np.float32(12)])
def test_a_number_of_rows(rows):
    plain, other = (streamcut.train((_X, TARGETS["labels"]), loss="prec@k", k=k, max_passes=40) for k in ("12", rows))
    assert other.parameters == plain.parameters
    np.testing.assert_array_equal(plain.weights, other.weights)
    with pytest.raises(streamcut.errors.UsageError, match=r"^k: 0 is 0 of 300 rows"):
        streamcut.train((_X, TARGETS["labels"]), loss="prec@k", k=0 * rows)


@pytest.mark.parametrize("option", ["C", "l1", "bias", "positive_weight", "sweeps", "seed", "memory"])
def test_none_is_refused_by_name_where_an_option_has_no_such_state(option):
    with pytest.raises(streamcut.errors.UsageError, match=rf"^{option}: None is not? "):
        streamcut.train((_X, TARGETS["labels"]), **{option: None})


@pytest.mark.parametrize("value", [True, "2", 0, -1, float("nan"), float("inf"), 10**400, np.array([1.0]), 1e200])
def test_what_is_no_cost_is_refused_by_name(value):
    with pytest.raises(streamcut.errors.UsageError, match=r"^C: "):
        streamcut.train((_X, TARGETS["labels"]), C=value)


# --- degenerate data ------------------------------------------------------------------------------------------------------------

_RNG = np.random.default_rng(11)
_X = _RNG.standard_normal((300, 4))
_S = _X @ [1.0, -1.0, 0.5, 2.0] + 0.5 * _RNG.standard_normal(300)
TARGETS = {"labels": np.where(_S > 0.5, 1.0, -1.0), "numbers": _S, "counts": np.round(np.exp(np.clip(_S, -2, 2)))}
CLASSIFIES = ("hinge", "squared-hinge", "smoothed-hinge", "logistic")
INTERCEPTS = ("regularised", "free")
LOSSES = [(loss, intercept) for loss in ROW_LOSSES for intercept in INTERCEPTS]


def asked(loss: str, intercept: str, **options) -> tuple[str, dict]:
    """The name of the targets of a loss, and options: the default solver, with more passes than any of these should take."""
    kind = "labels" if loss in CLASSIFIES else "counts" if loss == "poisson" else "numbers"
    task = "binary" if kind == "labels" else "regression"
    return kind, {
        "loss": loss,
        "task": task,
        "intercept": intercept,
        "max_passes": 300,
        **options,
        **({"quantile": 0.3} if loss == "quantile" else {}),
    }


@pytest.mark.parametrize(("loss", "intercept"), LOSSES)
def test_a_column_of_unix_time_among_ordinary_ones_converges(loss, intercept, alone):
    kind, options = asked(loss, intercept)
    for seed in range(3):
        time = 1.7e9 + np.random.default_rng(seed).uniform(0, 1e7, 300)
        rows = Rows(sp.csr_array(np.column_stack([_X, time])), TARGETS[kind], weight=np.ones(300))
        assert alone(outcome, rows, options, seconds=FIRST)["converged"], seed


@pytest.mark.parametrize(("loss", "intercept"), LOSSES)
def test_columns_without_entries_change_no_optimum(loss, intercept, alone):
    kind, options = asked(loss, intercept)
    wide = sp.hstack([sp.csr_array(_X), sp.csr_array((300, 5))], format="csr")
    rows = [Rows(X, TARGETS[kind], weight=np.ones(300)) for X in (sp.csr_array(_X), wide)]
    ends = [alone(outcome, each, options, seconds=FIRST) for each in rows]
    for end, other in (ends, ends[::-1]):
        assert end["converged"]
        assert end["bound"] <= other["F"]


def searched(rows: Rows, grid: dict, options: dict) -> str:
    """What `tune` ends with: the best options, or a message."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return str(streamcut.tune(rows.in_memory(), grid, folds=3, **options).best.options)
        except StreamcutError as error:
            return str(error)


def test_a_search_with_a_free_intercept_ends(alone):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    rows = Rows(sp.csr_array(X), np.where(X[:, 0] + rng.standard_normal(400) > 0, 1.0, -1.0))
    options = {"loss": "logistic", "intercept": "free"}
    assert "1e-05" in alone(searched, rows, {"C": [1e-5]}, options, seconds=FIRST)
    assert "1.0" in alone(searched, rows, {"C": [1e-6, 1.0]}, options, seconds=10)


@pytest.mark.parametrize("strategy", ["crammer-singer", "one-vs-rest"])
def test_a_class_that_a_fold_lacks_is_no_end_of_the_search_or_is_named(strategy, alone):
    rows = ROWS["classes"]._replace(y=np.append(ROWS["classes"].y[:-1], 9.0))
    end = alone(searched, rows, {"C": [0.1, 1.0]}, {"task": "multiclass", "strategy": strategy}, seconds=FIRST)
    assert re.search(r"'C': (0.1|1.0)|\b9\b", end)
