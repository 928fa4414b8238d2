"""The elastic net: scikit-learn's optimum, few weights, small files, and trainings that start from a model."""

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import load_model, save_model, train, verify


def problem(n=120, d=14, *, seed=0, weights=False):
    """Noisy rows, a few features of which matter; row weights that may be 0."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ (rng.standard_normal(d) * (np.arange(d) < 4)) + 0.5 * rng.standard_normal(n) > 0.1, 1.0, -1.0)
    return X, y, rng.uniform(0.2, 3.0, n) * (rng.random(n) < 0.9) if weights else None


EXACT = {"tol": 1e-7, "tol_relative": None, "max_passes": 300}


# --- the certificate ------------------------------------------------------------------------------------------------------------


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
