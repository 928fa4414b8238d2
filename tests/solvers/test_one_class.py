"""Task one-class: Schölkopf's problem by cutting planes, next to LIBSVM (scikit-learn), with a certificate for its optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import OneClassSVM

import streamcut
from streamcut import train, verify


def rows() -> sp.csr_array:
    """Rows that mostly lie to one side of the origin."""
    rng = np.random.default_rng(0)
    return sp.random_array(
        (300, 8), density=0.6, format="csr", rng=rng, data_sampler=lambda size: rng.gamma(2.0, 0.5, size) - 0.3
    )


def mean_of_lowest(scores: np.ndarray, nu: float) -> float:
    """The slow way: sorted, the last one counts in part."""
    k = nu * len(scores)
    parts = np.clip(k - np.arange(len(scores)), 0.0, 1.0)
    return float(np.sort(scores) @ parts / k)


@pytest.mark.parametrize("nu", [0.1, 0.37])
def test_the_plane_is_libsvms(nu):
    X, data = rows().toarray(), streamcut.rows(rows(), np.ones(300), shard_nnz=400)
    model = train(data, task="one-class", nu=nu, tol=1e-7, tol_relative=None, max_passes=500)
    theirs = OneClassSVM(kernel="linear", nu=nu, tol=1e-10).fit(X)
    found, length = model.certificate, np.linalg.norm(theirs.coef_)
    assert found.converged
    optimum = 0.5 / (mean_of_lowest(X @ theirs.coef_[0], nu) / length) ** 2
    assert found.lower_bound <= optimum * (1.0 + 1e-12)
    assert found.primal >= optimum * (1.0 - 1e-6)
    assert found.primal == pytest.approx(optimum, rel=1e-4)
    direction = model.weights / np.linalg.norm(model.weights)
    np.testing.assert_allclose(direction, theirs.coef_[0] / length, atol=5e-3)
    assert -model.intercept / np.linalg.norm(model.weights) == pytest.approx(-theirs.intercept_[0] / length, rel=2e-2)
    outside = model.predict(rows()) == -1.0
    assert outside.sum() == int(nu * 300)
    assert np.mean(model.predict(rows()) == theirs.predict(X)) > 0.97
    assert verify(model, data).consistent


def test_units_of_features_are_of_no_matter():
    models = [train(streamcut.rows(rows() * unit, np.ones(300)), task="one-class", nu=0.1) for unit in (1.0, 2.0**-20, 2.0**20)]
    directions = [model.weights / np.linalg.norm(model.weights) for model in models]
    for model, direction in zip(models, directions, strict=True):
        assert len(model.history) == len(models[0].history)
        np.testing.assert_allclose(direction, directions[0], rtol=1e-9)


def test_rows_around_the_origin_have_no_plane(caplog):
    X = np.random.default_rng(0).standard_normal((200, 3))
    model = train(streamcut.rows(np.vstack([X, -X]), np.ones(400)), task="one-class", nu=0.5)
    assert model.converged
    assert not model.weights.any()
    assert "the origin lies amid the rows" in caplog.text
