"""Few passes where trainings took many: large costs, sorted rows, pairs, kinks, counts; what ends a run."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from kit import ranking
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Ridge

import streamcut
from streamcut import load_model, train, verify
from streamcut.errors import CorruptError, MemoryBudgetError


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


def test_newton_takes_fewer_passes_than_ocas():
    X, y, qid = ranking.problem(900, 20, queries=30)
    above = streamcut.rows(X, np.where(y > y.mean(), 1.0, -1.0))
    for data, task, most in ((streamcut.rows(X, y, qid=qid), "ranking", 1.0), (above, "roc-area", 0.7)):
        by = {solver: train(data, task=task, C=1.0, solver=solver) for solver in ("newton", "ocas", "auto")}
        passes = {solver: model.history[-1]["passes"] for solver, model in by.items()}
        assert by["auto"].solver == "newton"
        assert passes["auto"] == passes["newton"] <= most * passes["ocas"]
        assert by["newton"].certificate.lower_bound <= by["ocas"].certificate.primal
        assert by["ocas"].certificate.lower_bound <= by["newton"].certificate.primal


def test_commands_print_readings(run, tmp_path):
    X = np.eye(4).repeat(40, axis=0)
    store, model = tmp_path / "d.zarr", tmp_path / "m.npz"
    dump_svmlight_file(X, np.arange(160) % 2, str(tmp_path / "d.svm"), zero_based=False)
    streamcut.convert(str(tmp_path / "d.svm"), str(store))
    lines = [json.loads(line) for line in run("train", store, "--output", model, "--json")[1].splitlines()]
    assert lines[-1]["readings"] == load_model(str(model)).readings >= 1.0
    tuned = run("train", store, "--output", tmp_path / "t.npz", "--C", "1,2", "--folds", 2, "--json")[1]
    assert json.loads(tuned.splitlines()[-1])["readings"] >= 1.0


KINKED = ("hinge", "epsilon-insensitive", "quantile")
OF_LABELS = ("logistic", "squared-hinge", "smoothed-hinge")


def scored(n=300, d=12, *, density=0.4, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    score = X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    return X, score, rng.uniform(0.2, 3.0, n)


def targets(loss: str, score: np.ndarray) -> tuple[dict, np.ndarray]:
    """(options, what is to be learned from the scores)."""
    if loss in (*OF_LABELS, "hinge"):
        return {"loss": loss}, np.where(score > 0.1, 1.0, -1.0)
    y = np.round(np.exp(0.3 * score)) if loss == "poisson" else score + 2.0
    return {"loss": loss, "task": "regression"}, y


@pytest.mark.parametrize("loss", KINKED)
def test_kinks_need_no_cache_where_features_are_badly_scaled(loss):
    X, score, _ = scored(2000, 12, density=1.0)
    given, y = targets(loss, score)
    options = {"C": 1.0, "max_passes": 40, **given}
    model = train((X * np.geomspace(1e-2, 1e2, 12), y), solver="newton", **options)
    assert model.certificate.converged
    plain = train((X * np.geomspace(1e-2, 1e2, 12), y), solver="bundle-dca", row_cache="0", **options)
    assert not plain.certificate.converged
    assert plain.certificate.lower_bound <= model.certificate.primal


def test_a_quadratic_loss_takes_one_pass_and_one_to_prove():
    X, score, _ = scored(density=1.0)
    model = train((X, score), task="regression", loss="squared", C=2.0, bias=0.0)
    assert model.solver == "newton"
    assert model.history[-1]["passes"] == 2
    np.testing.assert_allclose(model.weights, Ridge(alpha=0.5, fit_intercept=False).fit(X.toarray(), score).coef_, rtol=1e-9)


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


def problem(n=200, d=12, *, seed=0, density=0.4, weights=False, dtype=np.float64):
    """A noisy sparse two-class problem; some rows have no features."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=density, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X.data = X.data.astype(dtype)
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0.2, 3.0, 1.0)
    return X, y, rng.uniform(0.2, 3.0, n) if weights else None


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
    few = train(data, tol=1e-30, tol_relative=None).certificate
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
