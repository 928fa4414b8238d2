"""The elastic net: certificates against slow solvers, its parts against slow versions, and what must never change the answer."""

import warnings

import numpy as np
import pytest
from kit.shared.penalty import problem
from reference import elastic_net as slow
from sklearn.linear_model import LogisticRegression

import streamcut
from streamcut import load_model, save_model, train, verify
from streamcut.errors import UsageError

EXACT = {"tol": 1e-7, "tol_relative": None, "max_passes": 300}


def with_bias(X, bias):
    return np.hstack([X.toarray(), np.full((X.shape[0], 1), bias)]) if bias else X.toarray()


# --- the certificate ------------------------------------------------------------------------------------------------------------


@pytest.mark.thirds
@pytest.mark.parametrize("solver", ["bundle-dca", "ocas", "cpa"])
@pytest.mark.parametrize("loss", ["hinge", "squared-hinge", "logistic"])
@pytest.mark.parametrize(("l1", "C", "bias", "weights"), [(0.3, 0.1, 0.0, True), (4.0, 1.0, 1.0, False), (4.0, 5.0, 0.5, True)])
def test_the_optimum_is_between_bound_and_primal(solver, loss, l1, C, bias, weights):
    X, y, u = problem(seed=int(10 * l1 + C), weights=weights)
    model = train(
        streamcut.rows(X, y, weight=u, shard_nnz=200), solver=solver, loss=loss, l1=l1, C=C, bias=bias, scheduler="sync", lanes=2,
        **{**EXACT, "tol": 1e-5} if solver == "cpa" else EXACT,
    )  # fmt: skip
    found, A, each = model.certificate, with_bias(X, bias), np.ones(len(y)) if u is None else u
    least, most = slow.optimum(A, y, C, each, loss, l1)
    assert least - most <= 1e-5 * least  # the slow solver's own
    assert found.lower_bound <= least
    assert most <= found.primal
    assert found.primal == pytest.approx(slow.primal(model.augmented_weights, A, y, C, each, loss, l1), rel=1e-12)
    if solver != "cpa":  # which may need thousands of passes
        assert found.gap <= 1.01e-7 * found.c_bar
    checked = verify(model, (X, y) if u is None else (X, y, u))
    assert checked.consistent
    assert checked.lower_bound >= found.lower_bound - checked.slack


@pytest.mark.parametrize("solver", ["bundle-dca", "ocas"])
@pytest.mark.parametrize("l1", [0.5, 5.0])
def test_logistic_regression_is_that_of_saga(solver, l1):
    X, y, _ = problem(200, 10, seed=3)
    A = with_bias(X, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the newest, which would rather not be told the penalty
        saga = LogisticRegression(  # its objective is ours divided by 1 + λ
            C=1.0 / (1.0 + l1), l1_ratio=l1 / (1.0 + l1), penalty="elasticnet", solver="saga", tol=1e-8, max_iter=100_000,
            fit_intercept=False,
        ).fit(A, y)  # fmt: skip
    theirs = slow.primal(saga.coef_[0], A, y, 1.0, np.ones(len(y)), "logistic", l1)
    model = train(streamcut.rows(X, y), solver=solver, loss="logistic", l1=l1, scheduler="sync", **EXACT)
    assert model.certificate.lower_bound <= theirs * (1.0 + 1e-12)
    assert theirs <= model.certificate.primal + 1e-6 * theirs
    assert model.certificate.primal <= theirs + 1.01e-7 * model.certificate.c_bar
    np.testing.assert_allclose(model.augmented_weights, saga.coef_[0], atol=1e-2)


def test_a_large_lambda_leaves_nothing_and_a_smaller_one_the_features_that_matter():
    X, y, _ = problem(2000, 40, seed=5)
    data = streamcut.rows(X, y)
    assert np.count_nonzero(train(data, loss="logistic", l1=1e4).augmented_weights) == 0
    model = train(data, loss="logistic", l1=60.0, tol_relative=1e-4)
    assert set(np.flatnonzero(model.weights)) <= set(range(4))
    assert np.count_nonzero(model.weights) > 1
    assert "weights are not 0" in model.in_words()
    assert model.describe()["l1"] == 60.0


# --- what must not change the answer --------------------------------------------------------------------------------------------


def test_threads_change_no_bit():
    X, y, u = problem(300, seed=2, weights=True)
    options = {"loss": "hinge", "l1": 2.0, "lanes": 3, "row_cache": "40%", "max_passes": 7}
    models = [
        train(streamcut.rows(X, y, weight=u, shard_nnz=nnz), workers=workers, **options) for nnz, workers in ((100, 1), (100, 3))
    ]
    assert len({(model.weights.tobytes(), model.certificate) for model in models}) == 1


@pytest.mark.parametrize("solver", ["bundle-dca", "ocas", "cpa"])
def test_a_warm_start_begins_with_the_weights(tmp_path, solver):
    X, y, _ = problem(seed=6)
    data = streamcut.rows(X, y)
    save_model(train(data, l1=3.0, loss="logistic", **EXACT), tmp_path / "m.npz")
    model = load_model(tmp_path / "m.npz")
    assert model.problem.l1 == 3.0
    again = train(data, l1=3.0, loss="logistic", solver=solver, warm_start=model, max_passes=1)
    assert again.certificate.primal <= model.certificate.primal * (1.0 + 1e-12)
    other = train(data, l1=1.0, loss="logistic", solver=solver, warm_start=model, **EXACT)
    cold = train(data, l1=1.0, loss="logistic", **EXACT)
    assert other.certificate.lower_bound <= cold.certificate.primal
    assert cold.certificate.lower_bound <= other.certificate.primal


def test_a_model_of_few_weights_is_a_small_file(tmp_path):
    X, y, _ = problem(300, 3000, seed=7)
    models = [train(streamcut.rows(X, y), loss="logistic", l1=l1, solver="ocas") for l1 in (0.0, 12.0)]
    for k, model in enumerate(models):
        save_model(model, tmp_path / f"{k}.npz")
        same = load_model(tmp_path / f"{k}.npz")
        assert same.weights.tobytes() == model.weights.tobytes()
        assert same.witnesses[0].a.tobytes() == model.witnesses[0].a.tobytes()
        assert (same.problem.l1, same.intercept, same.certificate) == (model.problem.l1, model.intercept, model.certificate)
        assert verify(same, (X, y)).consistent
    assert 0 < np.count_nonzero(models[1].weights) < 100
    dense, sparse = ((tmp_path / f"{k}.npz").stat().st_size for k in (0, 1))
    assert sparse < dense - 40_000  # of the 48,000 bytes of weights and witness


def test_it_is_for_losses_of_single_rows():
    data = streamcut.rows(*problem()[:2])
    with pytest.raises(UsageError, match="l1"):
        train(data, l1=1.0, loss="f1")
    with pytest.raises(UsageError, match="l1"):
        train(data, l1=-1.0)


@pytest.mark.parametrize("part", ["0%", "-1%", "10", "ten%", "%"])
def test_what_is_no_part_is_refused(part):
    with pytest.raises(UsageError, match="l1"):
        train(streamcut.rows(*problem()[:2]), l1=part)
