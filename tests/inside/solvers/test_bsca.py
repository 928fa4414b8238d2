"""BSCA and BSGD: against a slow version, and against the optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference.budget import bsca, bsgd

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
