"""Certificates of kernel models are recomputed from rows and support vectors, forged ones are caught; several classes, too."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.kernels import matrix

import streamcut
from streamcut import load_model, save_model, train, verify
from streamcut.errors import BadInputError, UsageError

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.4},
    "poly": {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
    "linear": {"kernel": "linear"},
}


def problem(seed=0, n=150, classes=2, weighted=False, repeated=False):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 6), density=0.6, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.argmax(X @ rng.standard_normal((6, classes)) + 0.4 * rng.standard_normal((n, classes)), axis=1).astype(float)
    if repeated:  # equal rows of both classes
        some = rng.integers(0, n // 8, n)
        X, y = X[some], rng.integers(0, 2, n).astype(float)
    return X, y, rng.uniform(0.1, 3.0, n) if weighted else None


def objective(model, X, y, weight) -> float:
    """½‖w‖² + C Σ u max(0, 1 − y f(x)), from matrices."""
    square = model.coefficients @ matrix(model.kernel, model.support, model.support) @ model.coefficients
    scores = matrix(model.kernel, X, model.support) @ model.coefficients + model.intercept
    u = np.where(y == model.labels[1], model.problem.positive_weight, 1.0) * (1.0 if weight is None else weight)
    return 0.5 * square + model.C * float(u @ np.maximum(0.0, 1.0 - np.where(y == model.labels[1], 1, -1) * scores))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", [1.0, 0.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("repeated", [False, True])
def test_the_certificate_of_smo_is_confirmed(tmp_path, kernel, bias, weighted, repeated):
    X, y, weight = problem(weighted=weighted, repeated=repeated)
    data = streamcut.rows(X, y, weight=weight, shard_nnz=200)
    model = train(data, solver="smo", C=3.0, bias=bias, positive_weight=1.7, **KERNELS[kernel])
    save_model(model, tmp_path / "m.npz")
    found = verify(load_model(tmp_path / "m.npz"), data)
    assert found.outcome == "reached"
    assert found.lower_bound <= found.primal
    assert found.primal == pytest.approx(objective(model, X, y, weight), rel=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_no_claimed_dual_beats_the_optimum(seed):
    """Whatever coefficients a file claims, the bound is below the optimum: it is 0 unless they are a feasible point."""
    rng = np.random.default_rng(seed)
    X, y, _ = problem(n=40)
    data = streamcut.rows(X, y)
    model = train(data, solver="smo", C=1.0, bias=0.0, tol=1e-8, tol_relative=None, **KERNELS["rbf"])
    beta = model.coefficients * rng.choice([0.3, 1.0, 1.5], model.n_support)
    found = verify(replace(model, coefficients=beta), data)
    assert found.lower_bound <= model.certificate.primal * (1 + 1e-12)
    assert (found.lower_bound == 0.0) == bool(np.any(np.abs(beta) > 1.0 + 1e-9))


def test_the_certificate_in_nystroem_features_is_confirmed(tmp_path):
    X, y, _ = problem()
    data = streamcut.rows(X, y, shard_nnz=200)
    model = train(data, nystroem=20, C=0.1, **KERNELS["rbf"])
    save_model(model, tmp_path / "m.npz")
    found = verify(load_model(tmp_path / "m.npz"), data)
    assert found.outcome == "reached"
    with pytest.raises(UsageError, match="force=True"):
        verify(replace(model, map=replace(model.map, identity={**model.map.identity, "seed": 1})), data)
    with pytest.raises(BadInputError, match="7 features, the model only 6"):
        verify(model, (sp.hstack([X, X[:, :1]], format="csr"), y), force=True)
