"""Few passes where trainings took many: large costs, sorted rows, counts; what ends a run, and what its history says."""

from __future__ import annotations

import numpy as np
import pytest
from laws.problems import ROWS

import streamcut
from streamcut import train, verify
from streamcut.errors import CorruptError


def separable(rows=600, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * np.geomspace(0.1, 3.0, features)
    return streamcut.rows(X, np.where(X @ rng.standard_normal(features) + 0.1 * rng.standard_normal(rows) > 0.0, 1.0, -1.0))


@pytest.mark.parametrize(("lanes", "most"), [(1, 16), (8, 6)])
def test_a_large_cost_takes_few_passes_in_any_number_of_lanes(lanes, most):
    data = separable()
    model = train(data, C=1e4, solver="bundle-dca", row_cache="50%", lanes=lanes, scheduler="sync", max_passes=60)
    assert model.certificate.converged
    assert model.history[-1]["passes"] <= most
    assert verify(model, data).consistent


def test_small_data_in_order_of_labels_takes_no_more_passes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 8)) * np.geomspace(0.1, 1.0, 8)
    y = np.where(X @ rng.standard_normal(8) + 0.5 * rng.standard_normal(len(X)) > 0.6, 1.0, -1.0)
    order = np.argsort(y, kind="stable")
    passes = []
    for data in (streamcut.rows(X, y), streamcut.rows(X[order], y[order])):
        model = streamcut.train(data, C=10.0, solver="bundle-dca", lanes=1, scheduler="sync", max_passes=60)
        passes.append(model.history[-1]["passes"])
    assert passes[1] <= passes[0] + 1


@pytest.mark.parametrize("intercept", ["free", "regularised"])
@pytest.mark.parametrize("size", [1e9, 30.0])
def test_large_counts_train(size, intercept):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 4))
    y = np.abs(size * (X @ rng.normal(size=4) + rng.normal(size=500)))
    options = {"task": "regression", "loss": "poisson", "intercept": intercept, "max_passes": 60, "tol_relative": 1e-3}
    model = train(streamcut.rows(X, y), **options)
    assert model.certificate.converged
    assert model.solver == "newton"


def test_what_ends_a_training_is_told_and_no_step_takes_anything_back():
    data = ROWS["signs"].in_memory()
    limited = train(data, max_passes=3)
    assert (limited.certificate.stop_reason, limited.history[-1]["passes"]) == ("max_passes", 3)
    assert train(data, max_time=1e-9).certificate.stop_reason == "time"
    assert train(data, target=1e9).certificate.stop_reason == "target"
    tight = train(data, tol=1e-30, tol_relative=None)
    assert tight.certificate.stop_reason == "stalled"
    assert tight.certificate.gap < 1e-11 * tight.certificate.primal
    assert (np.diff([line["primal"] for line in tight.history]) <= 1e-9).all()
    assert (np.diff([line["lower_bound"] for line in tight.history]) >= 0).all()
    rest = {"task": "multiclass", "strategy": "one-vs-rest", "tol": 1e-12, "tol_relative": None}
    several = train(ROWS["classes"].in_memory(), **rest, max_time=1e-9)
    assert {certificate.stop_reason for certificate in several.certificates} == {"time"}
    assert several.in_words().startswith("0 of 3 classes converged.")
    assert set(several.result()["classes"]) == {"1", "2", "3"}


def test_a_score_that_is_not_finite_names_its_row():
    X, y = ROWS["signs"].X.copy(), ROWS["signs"].y
    data = streamcut.rows(X, y)
    data.read(0).data[X.indptr[18]] = np.inf  # behind the back of the check at the border
    with pytest.raises(CorruptError, match="row 19"):
        train(data)
