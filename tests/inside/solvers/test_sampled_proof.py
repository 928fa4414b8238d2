"""What is proved of sampled cuts: F over all rows, a bound below every answer, and that estimates are not taken for either."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.sampled_proof import RBF, SOLVERS, problem
from reference import sampled as slow
from reference.kernels import matrix

import streamcut
from streamcut import train, verify
from streamcut.kernels.kernel import Kernel


def by_row(model, X, coefficients):
    """`coefficients` of the support vectors by row of X; rows of X differ."""
    places = {row.tobytes(): i for i, row in enumerate(X)}
    found = np.zeros((len(X), *coefficients.shape[1:]))
    found[[places[vector.tobytes()] for vector in model.support.toarray()]] = coefficients
    return found


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("samples", "seed"), [(5, 0), (12, 1), (30, 2), (80, 3)])
def test_primal_and_bound_of_two_classes(solver, weighted, samples, seed):
    X, y, weight = problem(seed)
    kernel, C, bias, sign = Kernel("rbf", 0.5), 2.0, 0.7, np.where(y == 1.0, 1.0, -1.0)
    u = weight * np.where(y == 1.0, 1.6, 1.0) if weighted else np.ones(len(y))
    data = streamcut.rows(X, y, weight=weight if weighted else None)
    model = train(
        data, solver=solver, C=C, bias=bias, samples=samples, seed=seed, tol=1e-2, max_passes=60,
        positive_weight=1.6 if weighted else 1.0, **RBF,
    )  # fmt: skip
    K = matrix(kernel, X, X) + bias**2
    found = model.certificate
    f = K @ by_row(model, X, model.coefficients)
    w = by_row(model, X, model.coefficients)
    primal = 0.5 * w @ f + C * u @ np.maximum(0.0, 1.0 - sign * f)
    assert found.primal - found.raised == pytest.approx(primal, rel=1e-11)
    assert primal < found.primal < primal * (1 + 1e-9)
    alpha = sign * by_row(model, X, model.point.coefficients)
    assert np.all(alpha >= 0.0)
    assert np.all(alpha <= C * u * (1 + 1e-12))
    value = alpha.sum() - 0.5 * (alpha * sign) @ K @ (alpha * sign)
    assert found.lower_bound == pytest.approx(max(value, 0.0), rel=1e-9)
    assert found.lower_bound <= value
    if not weighted:
        assert found.lower_bound <= slow.hinge_optimum(K, sign, C, 300)[1] * (1 + 1e-12)
    checked = verify(model, data)
    assert checked.consistent
    assert checked.outcome == "reached"


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("samples", "weighted"), [(8, False), (25, True), (80, True)])
def test_primal_and_bound_of_several_classes(solver, samples, weighted):
    X, y, weight = problem(4, classes=4)
    data, C, target = streamcut.rows(X, y, weight=weight if weighted else None), 1.5, y.astype(int)
    u = weight if weighted else np.ones(len(y))
    model = train(data, task="multiclass", solver=solver, C=C, bias=0, samples=samples, tol=1e-2, max_passes=60, **RBF)
    K, rows = matrix(Kernel("rbf", 0.5), X, X), np.arange(len(y))
    f = K @ by_row(model, X, model.coefficients)
    margins = f - f[rows, target][:, None] + 1.0
    margins[rows, target] = 0.0
    primal = 0.5 * np.sum(by_row(model, X, model.coefficients) * f) + C * u @ margins.max(axis=1)
    assert model.certificate.primal - model.certificate.raised == pytest.approx(primal, rel=1e-11)
    assert primal < model.certificate.primal < primal * (1 + 1e-9)
    dual = by_row(model, X, model.point.coefficients)
    alpha = -dual
    alpha[rows, target] = 0.0
    assert np.all(alpha >= 0.0)
    assert np.all(alpha.sum(axis=1) <= C * u * (1 + 1e-12))
    assert np.allclose(dual[rows, target], alpha.sum(axis=1), rtol=1e-12)
    value = alpha.sum() - 0.5 * np.sum(dual * (K @ dual))
    assert model.certificate.lower_bound == pytest.approx(value, rel=1e-9)
    assert model.certificate.lower_bound < value
    checked = verify(model, data)
    assert checked.consistent
    assert checked.outcome == "reached"
