"""Kernels, line search, master problem and the solvers against their slow versions, and what must never change the answer."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from kit.linear_solver import dense, problem
from reference import svm

import streamcut
from streamcut import train
from streamcut.errors import BadInputError, CorruptError, MemoryBudgetError, UsageError


@cache
def enclosed_optimum(weights, positive_weight, bias):
    """(primal, dual) around min F of `problem(120, weights=weights, seed=3)` at C = 0.8, and the rows' weights."""
    X, y, u = problem(120, weights=weights, seed=3)
    sign = np.where(y == 3.0, 1.0, -1.0)
    every = (np.ones(len(y)) if u is None else u) * np.where(sign > 0, positive_weight, 1.0)
    return *svm.optimum(dense(X, bias), sign, 0.8, every), every


@pytest.mark.thirds
@pytest.mark.parametrize("max_cuts", [2, 3, 8])
def test_merged_cuts_keep_the_bound_valid(max_cuts):
    X, y, _ = problem()
    best, bound = svm.optimum(dense(X, 1.0), np.where(y == 3, 1.0, -1.0), 1.0, np.ones(len(y)))
    model = train(streamcut.rows(X, y), solver="ocas", max_cuts=max_cuts, tol=1e-2, max_passes=2000)
    assert model.history[-1]["cuts"] <= max_cuts
    for line in model.history:
        assert line["lower_bound"] <= best * (1 + 1e-12)
        assert line["primal"] >= bound * (1 - 1e-12)
    assert model.certificate.converged


SOLVERS = [{"solver": "ocas", "cut": "predicted"}, {"solver": "ocas", "cut": "exact"}, {"solver": "cpa"}]


@pytest.mark.thirds
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize(("weights", "positive_weight"), [(False, 1.0), (True, 1.0), (False, 3.5), (True, 0.4)])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_certificate_encloses_the_optimum(solver, weights, positive_weight, bias):
    X, y, u = problem(120, weights=weights, seed=3)
    data = streamcut.rows(X, y, weight=u)
    model = train(data, C=0.8, bias=bias, positive_weight=positive_weight, tol=1e-5, tol_relative=1e-4, **solver)
    sign = np.where(y == 3.0, 1.0, -1.0)
    best, bound, every = enclosed_optimum(weights, positive_weight, bias)
    certificate = model.certificate
    assert certificate.converged
    assert certificate.lower_bound <= best * (1 + 1e-12)
    assert certificate.primal >= bound * (1 - 1e-12)
    assert certificate.gap <= 1e-5 * certificate.c_bar
    assert certificate.gap <= 1e-4 * certificate.primal
    assert certificate.c_bar == pytest.approx(0.8 * every.sum(), rel=1e-12)
    fresh = svm.primal(model.augmented_weights, dense(X, bias), sign, 0.8, every)
    assert certificate.primal == pytest.approx(fresh, rel=1e-11)
    assert certificate.lower_bound == pytest.approx(model.witnesses[0].bound(certificate.c_bar), rel=1e-9)


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


def same(a, b):
    np.testing.assert_array_equal(a.weights, b.weights)
    assert (a.intercept, a.certificate.primal, a.certificate.lower_bound) == (
        b.intercept,
        b.certificate.primal,
        b.certificate.lower_bound,
    )


@pytest.mark.thirds
@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(s.values()))
@pytest.mark.parametrize("weights", [False, True])
def test_shards_workers_and_memory_do_not_change_a_bit(solver, weights):
    X, y, u = problem(5000, 40, density=0.2, weights=weights, dtype=np.float32)
    solver = {**solver, "lanes": 5}
    base = train(streamcut.rows(X, y, weight=u), workers=1, **solver)
    for shard_nnz, options in ((997, {"workers": 2}), (5000, {"scheduler": "sync"}), (20_000, {"workers": 2, "memory": "3GB"})):
        same(base, train(streamcut.rows(X, y, weight=u, shard_nnz=shard_nnz), **options, **solver))


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: "-".join(s.values()))
def test_order_of_rows_changes_nothing_beyond_the_last_digits(solver):
    X, y, u = problem(3000, 30, weights=True, seed=11)
    order = np.random.default_rng(0).permutation(3000)
    one = train(streamcut.rows(X, y, weight=u), **solver).certificate
    other = train(streamcut.rows(X[order], y[order], weight=u[order]), **solver).certificate
    assert other.primal == pytest.approx(one.primal, rel=1e-9)
    assert other.lower_bound == pytest.approx(one.lower_bound, rel=1e-9)


def test_two_equal_rows_are_one_of_weight_two_and_weight_zero_is_no_row():
    X, y, _ = problem(150, 10, seed=4)
    twice = train(streamcut.rows(sp.vstack([X, X]), np.tile(y, 2)), tol=1e-7, tol_relative=None)
    double = train(streamcut.rows(X, y, weight=np.full(150, 2.0)), tol=1e-7, tol_relative=None)
    assert twice.certificate.primal == pytest.approx(double.certificate.primal, rel=1e-6)
    some = np.arange(150) % 3 > 0
    removed = train(streamcut.rows(X[some], y[some]), tol=1e-7, tol_relative=None)
    silenced = train(streamcut.rows(X, y, weight=some.astype(float)), tol=1e-7, tol_relative=None)
    assert removed.certificate.primal == pytest.approx(silenced.certificate.primal, rel=1e-6)


def test_stop_reasons():
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    assert train(data, max_passes=3).certificate.stop_reason == "max_passes"
    assert train(data, max_passes=3).history[-1]["passes"] == 3
    assert train(data, max_time=1e-9).certificate.stop_reason == "time"
    assert train(data, target=1e9).certificate.stop_reason == "target"
    assert train(data, tol=1e-30, tol_relative=None).certificate.stop_reason == "stalled"
    few = train(data, tol=1e-30, tol_relative=None).certificate  # sixteen cuts bring it to rounding, too
    assert few.stop_reason == "stalled"
    assert few.gap < 1e-11 * few.primal


def test_one_label_against_the_rest():
    X, y, _ = problem()
    y[:60] = 7.0
    with pytest.raises(BadInputError, match="positive_label"):
        train(streamcut.rows(X, y), task="binary")
    model = train(streamcut.rows(X, y), positive_label=7.0)
    two = train(streamcut.rows(X, np.where(y == 7.0, 1.0, -1.0)))
    same(model, two)
    with pytest.raises(BadInputError, match="no row has the positive label 9"):
        train(streamcut.rows(X, y), positive_label=9.0)
    with pytest.raises(BadInputError, match="two classes"):
        train(streamcut.rows(X, np.ones(len(y))))


@pytest.mark.parametrize(
    "options",
    [{"C": 0}, {"C": -1.0}, {"C": float("nan")}, {"tol": -1}, {"max_passes": 0}, {"workers": 0}, {"bias": -1}, {"max_cuts": 1},
     {"lanes": 1.5}, {"no_such": 1}, {"tol": None, "tol_relative": None}, {"memory": "4"}, {"C": "1"},
     {"solver": "cpa", "cut": "exact"}],
    ids=str,
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options):
    X, y, _ = problem(20)
    with pytest.raises(UsageError):
        train(streamcut.rows(X, y), **options)


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
