"""Scaling as a training option: that of scikit-learn's scalers, with a certificate of the scaled problem."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import streamcut
from streamcut import load_model, predict, save_model, train, verify
from streamcut.errors import UsageError

SCALERS = {"max-abs": MaxAbsScaler(), "std": StandardScaler(with_mean=False)}


def problem(n=200, d=9, dtype=np.float64):
    """Rows whose features differ in scale by 1e8; one never occurs, one is constant."""
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.5, format="lil", rng=rng, data_sampler=rng.standard_normal)
    X[:, 3], X[:, 5] = 0.0, 2.5
    X = (X.tocsr() @ sp.diags_array(10.0 ** np.linspace(-4, 4, d))).tocsr().astype(dtype)
    X.eliminate_zeros()
    score = MaxAbsScaler().fit_transform(X) @ rng.standard_normal(d)
    return X, np.where(score + 0.1 * rng.standard_normal(n) > np.median(score), 1.0, -1.0)


EXACT = {"tol": 1e-6, "tol_relative": None, "scheduler": "sync"}


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize(("scale", "solver"), [("max-abs", "bundle-dca"), ("std", "ocas")])
def test_a_model_is_that_of_scaled_rows(tmp_path, scale, solver, loss):
    X, y = problem()
    options = {"solver": solver, "loss": loss, **EXACT}
    data, scaled = (streamcut.rows(rows, y, weight=np.ones(len(y))) for rows in (X, SCALERS[scale].fit_transform(X)))
    model = train(data, scale=scale, l1=0.1, **options)
    there = train(scaled, l1=0.1, **options)
    assert model.certificate.lower_bound <= there.certificate.primal
    assert there.certificate.lower_bound <= model.certificate.primal
    np.testing.assert_array_equal(predict(model, X), there.predict(SCALERS[scale].transform(X)))
    save_model(model, tmp_path / "m.npz")
    again = load_model(tmp_path / "m.npz")
    checked = verify(again, data)
    assert checked.same_data
    assert checked.consistent
    assert again.weights[3] == 0.0
    with pytest.raises(UsageError, match="fingerprints"):
        verify(again, (2.0 * X, y))
