"""Cutting planes: the paper's path, merged cuts, what ends a run, and rows that end it."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference import svm

import streamcut
from streamcut import train
from streamcut.errors import CorruptError, MemoryBudgetError


def problem(n=200, d=12, *, seed=0, density=0.4, weights=False, dtype=np.float64):
    """A noisy sparse two-class problem; some rows have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X.data = X.data.astype(dtype)
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0.2, 3.0, 1.0)
    return X, y, rng.uniform(0.2, 3.0, n) if weights else None


def dense(X, bias):
    X = X.toarray().astype(np.float64)
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X


def test_ocas_takes_the_path_of_the_paper():
    X, y, _ = problem(seed=5)
    sign = np.where(y == 3.0, 1.0, -1.0)
    _, F, bound, iterations = svm.ocas(dense(X, 1.0), sign, 1.0, np.ones(len(y)), 1e-3)
    model = train(streamcut.rows(X, y), solver="ocas", cut="exact", tol=1e-3, tol_relative=None)
    assert abs(model.history[-1]["iteration"] - iterations) <= 2
    assert model.certificate.primal == pytest.approx(F, rel=5e-3)
    assert model.certificate.lower_bound == pytest.approx(bound, rel=5e-3)


def test_exact_cuts_take_two_passes_and_predicted_ones_one():
    X, y, _ = problem()
    exact = train(streamcut.rows(X, y), cut="exact", tol_relative=None)
    predicted = train(streamcut.rows(X, y), cut="predicted", tol_relative=None)
    assert exact.history[3]["passes"] == 1 + 2 * exact.history[3]["iteration"]
    assert predicted.history[3]["passes"] == 1 + predicted.history[3]["iteration"]


def test_best_point_never_gets_worse_and_bound_never_falls():
    X, y, _ = problem(seed=8)
    history = train(streamcut.rows(X, y), tol=1e-6, tol_relative=None).history
    assert (np.diff([h["primal"] for h in history]) <= 1e-9).all()
    assert (np.diff([h["lower_bound"] for h in history]) >= 0).all()


def test_stop_reasons():
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    assert train(data, max_passes=3).certificate.stop_reason == "max_passes"
    assert train(data, max_passes=3).history[-1]["passes"] == 3
    assert train(data, max_time=1e-9).certificate.stop_reason == "time"
    assert train(data, target=1e9).certificate.stop_reason == "target"
    assert train(data, tol=1e-30, tol_relative=None, max_cuts=32).certificate.stop_reason == "stalled"
    few = train(data, tol=1e-30, tol_relative=None).certificate  # sixteen cuts bring it to rounding, too
    assert few.stop_reason == "stalled"
    assert few.gap < 1e-11 * few.primal


def test_memory_that_cannot_be_kept_is_refused_with_both_numbers():
    X, y, _ = problem(20)
    with pytest.raises(MemoryBudgetError, match=r"1\.00 MB is too little: this run needs at least \d+MB"):
        train(streamcut.rows(X, y), memory="1MB")


def test_a_score_that_is_not_finite_names_its_row():
    X, y, _ = problem(20, density=1.0)
    data = streamcut.rows(X, y)
    data.read(0).data[17 * X.shape[1]] = np.inf  # behind the back of the check at the border
    with pytest.raises(CorruptError, match="row 18"):
        train(data)
