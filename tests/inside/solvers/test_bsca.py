"""BSCA and BSGD: against a slow version, and against the optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference.budget import bsca, bsgd, sca_optimum
from reference.kernels import matrix

from streamcut.compiled import budget as passes
from streamcut.compiled.budget import SparseRows
from streamcut.kernels.kernel import Kernel
from streamcut.solvers.budget import MODES, exported, new_slots
from streamcut.solvers.budget_problem import Problem

NEVER = (1 << 61, 1 << 62)
GAMMA = 0.4


def _rows(n=60, d=6, seed=0):
    generator = np.random.default_rng(seed)
    X = sp.csr_array(generator.normal(size=(n, d)) * (generator.random((n, d)) < 0.7))
    y = np.where(X.sum(axis=1) + 0.5 * generator.normal(size=n) > 0, 1.0, -1.0)
    C = generator.uniform(0.5, 3.0, n)
    return X, y, C, of_labels(X, y, C)


def of_labels(X, y, C):
    """Rows of two classes, y ±1, as compiled code takes them."""
    return SparseRows(X.indptr.astype(np.int64), X.indices, X.data, y, np.minimum(C * y, 0.0), np.maximum(C * y, 0.0), 0.0, 0)


def _slots(n, d, budget, maintenance, kernel=None):
    kernel = kernel or Kernel("rbf", gamma=GAMMA)
    model = new_slots(Problem(kernel, 1.0, (1.0,), n, d), budget, MODES[maintenance])
    return model, kernel.compiled, MODES[maintenance]


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_a_thousand_steps_are_those_of_the_slow_version(maintenance):
    X, y, C, rows = _rows()
    order = np.random.default_rng(1).integers(0, 60, 1000)
    model, parameters, mode = _slots(60, 6, 20, maintenance)
    alpha = np.zeros(60)
    passes.ascend(order, rows, alpha, NEVER, parameters, mode, model)
    slow, slow_alpha = bsca(X.toarray(), y, C, GAMMA, 20, order, maintenance)
    np.testing.assert_allclose(alpha * y, slow_alpha, atol=1e-10)
    _assert_same(exported(model, 1.0), slow)
    assert model.counts[passes.MAINTAINED] > 100
    used = int(model.counts[passes.USED])
    np.testing.assert_allclose(model.R[:used].T, model.V[:, :used])
    np.testing.assert_allclose(model.square[:used], (model.R[:used] ** 2).sum(axis=1))
    assert model.sums[passes.ALPHA] == pytest.approx(slow_alpha.sum())


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_gradient_steps_are_those_of_the_slow_version(maintenance):
    X, y, C, rows = _rows(seed=2)
    order = np.random.default_rng(3).integers(0, 60, 250)
    model, parameters, mode = _slots(60, 6, 15, maintenance)
    passes.descend(order, rows, 60, parameters, mode, model)
    _assert_same(exported(model, 1.0 / 250), bsgd(X.toarray(), y, C, GAMMA, 15, order, maintenance))


def _assert_same(found, slow):
    """The same vectors with the same coefficients, in any order."""
    coefficients, vectors = found
    expected = np.array([(beta, *z) for beta, z, _ in slow.vectors if beta != 0.0])
    both = np.column_stack([coefficients, vectors])
    assert both.shape == expected.shape
    np.testing.assert_allclose(both[np.lexsort(both.T)], expected[np.lexsort(expected.T)], rtol=1e-10, atol=1e-10)


def test_projection_moves_the_model_less_than_removal():
    _, _, _, rows = _rows(seed=4)
    order = np.random.default_rng(5).permutation(60)
    lost = {}
    for maintenance in ("remove", "project"):
        model, parameters, mode = _slots(60, 6, 30, maintenance)
        passes.ascend(order[:30], rows, np.zeros(60), NEVER, parameters, mode, model)
        while model.counts[passes.MAINTAINED] == 0:
            before = exported(model, 1.0)
            passes.ascend(order[30:], replace_costs(rows), np.zeros(60), NEVER, parameters, mode, model)
        lost[maintenance] = model.sums[passes.DEGRADATION] / model.counts[passes.MAINTAINED]
        assert len(before[0]) <= 30
    assert lost["project"] < 0.9 * lost["remove"]


def replace_costs(rows):
    return rows._replace(low=2.0 * np.sign(rows.low), high=2.0 * np.sign(rows.high))


@pytest.mark.parametrize("kernel", [Kernel("rbf", gamma=GAMMA), Kernel("poly", gamma=0.5, degree=2, coef0=1.0), Kernel("linear")])
def test_without_a_budget_the_dual_reaches_its_optimum(kernel):
    X, y, _, rows = _rows(n=150, seed=6)
    rows = of_labels(X, y, np.full(150, 1.5))
    best, _ = sca_optimum(matrix(kernel, X, X), y, 1.5)
    model, parameters, mode = _slots(150, 6, None, "none", kernel)
    alpha, generator = np.zeros(150), np.random.default_rng(7)
    for _ in range(400):
        passes.ascend(generator.permutation(150), rows, alpha, NEVER, parameters, mode, model)
    K = matrix(kernel, X, X)
    assert best - (alpha @ y - 0.5 * alpha @ K @ alpha) <= 1e-4 * best
    coefficients, vectors = exported(model, 1.0)
    np.testing.assert_allclose(matrix(kernel, X, vectors) @ coefficients, K @ alpha, atol=1e-8)


@pytest.mark.parametrize("damping", [NEVER, (5000, 10000)])
def test_without_a_budget_a_row_that_comes_back_keeps_its_slot(damping):
    # rows like a9a's, each with a value 1 in 14 of 123 columns: the α of many goes back to 0 and up again
    generator = np.random.default_rng(11)
    columns = np.sort(generator.integers(0, 9, (500, 14)) ** 2 // 8 + 9 * np.arange(14), axis=1)
    X = sp.csr_array((np.ones(columns.size), columns.ravel(), 14 * np.arange(501)), shape=(500, 126))
    y = np.where(X @ generator.normal(size=126) + 2.0 * generator.normal(size=500) > 1.0, 1.0, -1.0)
    kernel = Kernel("rbf", gamma=1 / 128)
    rows = of_labels(X, y, np.full(500, 32.0))
    model, parameters, mode = _slots(500, 126, None, "none", kernel)
    alpha, order = np.zeros(500), np.concatenate([generator.permutation(500) for _ in range(20)])
    passes.ascend(order, rows, alpha, damping, parameters, mode, model)
    slow, returned = _slow_sca(matrix(kernel, X, X), y, 32.0, order, damping)
    assert returned > 100
    np.testing.assert_allclose(alpha * y, slow, atol=1e-9)
    used = model.counts[passes.USED]
    assert used == len(np.unique(model.source[:used])) <= 500
    expected = np.zeros(500)
    expected[model.source[:used]] = model.beta[:used]
    np.testing.assert_allclose(expected, slow * y, atol=1e-9)


def _slow_sca(K, y, C, order, damping):
    """(α, how many steps began at an α that had come back to 0): coordinate ascent with all kernel values at hand."""
    alpha, met, returned = np.zeros(len(y)), np.zeros(len(y), bool), 0
    for step, i in enumerate(order.tolist(), 1):
        target = np.clip(alpha[i] + (1.0 - y[i] * (K[i] @ (alpha * y))) / K[i, i], 0.0, C)
        if step > damping[0]:
            target = alpha[i] + (damping[1] - step + 1) / (damping[1] - damping[0]) * (target - alpha[i])
        returned += bool(met[i] and alpha[i] == 0.0 and target > 0.0)
        met[i] |= target > 0.0
        alpha[i] = target
    return alpha, returned
