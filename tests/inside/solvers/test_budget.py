"""Models on a budget: steps next to the papers' algorithms, merging next to brute force."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.budget import best_merge, bsca, bsgd

from streamcut.compiled import budget as passes
from streamcut.compiled import kernel_rows
from streamcut.compiled.budget import SparseRows
from streamcut.compiled.merging import best_h, best_partner, least_degradations, smallest
from streamcut.kernels.kernel import Kernel
from streamcut.solvers.budget import MODES, BudgetProblem, exported, new_slots

GAMMA, NEVER = 0.4, (1 << 61, 1 << 62)


def two_classes(maintenance, budget, n=60, d=6, seed=0):
    """(X, y, C, rows of two classes as compiled code takes them, an empty model, parameters of its kernel, its mode)."""
    rng = np.random.default_rng(seed)
    X = sp.csr_array(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7))
    y = np.where(X.sum(axis=1) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    C, kernel = rng.uniform(0.5, 3.0, n), Kernel("rbf", gamma=GAMMA)
    rows = SparseRows(X.indptr.astype(np.int64), X.indices, X.data, y, np.minimum(C * y, 0.0), np.maximum(C * y, 0.0), 0.0, 0)
    model = new_slots(BudgetProblem(kernel, 1.0, (1.0,), n, d), budget, MODES[maintenance])
    return X.toarray(), y, C, rows, model, kernel.compiled, MODES[maintenance]


def expect_same(vectors, slow):
    """The same vectors with the same coefficients, in any order."""
    ours, theirs = np.column_stack(vectors), np.array([(beta, *z) for beta, z, _ in slow.vectors if beta != 0.0])
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours[np.lexsort(ours.T)], theirs[np.lexsort(theirs.T)], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_a_thousand_steps_are_those_of_the_slow_version(maintenance):
    X, y, C, rows, model, parameters, mode = two_classes(maintenance, 20)
    order, alpha = np.random.default_rng(1).integers(0, 60, 1000), np.zeros(60)
    passes.ascend(order, rows, alpha, NEVER, parameters, mode, model)
    slow, slow_alpha = bsca(X, y, C, GAMMA, 20, order, maintenance)
    np.testing.assert_allclose(alpha * y, slow_alpha, atol=1e-10)
    expect_same(exported(model, 1.0), slow)
    assert model.counts[passes.MAINTAINED] > 100
    used = int(model.counts[passes.USED])
    np.testing.assert_allclose(model.R[:used].T, model.V[:, :used])
    np.testing.assert_allclose(model.square[:used], (model.R[:used] ** 2).sum(axis=1))
    assert model.sums[passes.ALPHA] == pytest.approx(slow_alpha.sum())


@pytest.mark.parametrize("maintenance", ["merge", "remove"])
def test_gradient_steps_are_those_of_the_slow_version(maintenance):
    X, y, C, rows, model, parameters, mode = two_classes(maintenance, 15, seed=2)
    order = np.random.default_rng(3).integers(0, 60, 250)
    passes.descend(order, rows, 60, parameters, mode, model)
    expect_same(exported(model, 1.0 / 250), bsgd(X, y, C, GAMMA, 15, order, maintenance))


LEAST = least_degradations()
ODD = [np.nan, np.inf, -np.inf, 1.0000001, 1e300, -1.0]


def test_h_is_that_of_brute_force_everywhere():
    rng = np.random.default_rng(0)
    near = [(0.5 + x * x * 0.05, np.exp(-2) + y**3 * 0.05) for x, y in rng.uniform(-1, 1, (200, 2))]
    for m, kappa in [*rng.uniform(0, 1, (600, 2)).tolist(), *near, (1.0, 0.5), (0.3, 1e-12)]:
        h, s = best_h(m, kappa)
        expected, best = best_merge(m, 1.0 - m, kappa)
        assert s == pytest.approx(best, rel=1e-9)
        if abs(m - 0.5) > 1e-6:  # at 1/2 there are two
            assert abs(h - expected) < 1e-4, (m, kappa)
    assert best_h(0.25, 0.0) == (0.0, 0.75)
    assert best_h(0.7, 1.0) == pytest.approx((0.7, 1.0))
    assert [best_h(0.5, kappa)[0] for kappa in (0.9, 0.1361, np.exp(-2.0))] == [0.5] * 3


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.01, 1.0, 20.0, 400.0]), st.sampled_from([0.1, 3.0, 30.0]))
def test_the_partner_is_the_best_of_all(seed, distance, spread):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    beta = np.exp(spread * rng.normal(size=n)) * rng.choice([-1.0, 1.0], n)
    kappa, least = np.exp(-distance * rng.random(n)), smallest(beta, n)
    assert least == np.argmin(np.abs(beta))
    lost = {}
    for j in range(n):
        if j != least and beta[j] * beta[least] > 0.0:
            _, merged = best_merge(abs(beta[least]), abs(beta[j]), kappa[j])
            lost[j] = beta[least] ** 2 + beta[j] ** 2 + 2 * beta[least] * beta[j] * kappa[j] - merged**2, merged
    slot, degradation, _, merged, *_ = best_partner(least, beta, kappa, n, LEAST, np.empty(n, np.int32), np.empty(n))
    if not lost:
        assert slot == -1
        return
    size = np.max(beta**2)  # of what degradations are the difference of
    assert degradation == pytest.approx(lost[slot][0], abs=1e-11 * size)
    assert degradation <= min(lost.values())[0] + 1e-11 * size
    assert merged == pytest.approx(lost[slot][1], rel=1e-9)


@pytest.mark.parametrize("odd", ODD)
def test_odd_numbers_find_no_place_outside_the_tables(odd):
    assert best_h(0.7, odd) == (1.0, 0.7)
    assert best_h(odd, 0.5)[0] == 1.0 or odd < 0.0 or odd == 1.0000001
    for beta, kappa in (
        ([1.0, 0.5, 2.0, -1.0, 100.0], [1.0, 0.3, odd, 0.2, odd]),
        ([1.0, odd, 2.0, odd, 1.0], [1.0, 0.3, 0.5, 0.2, 1.0]),
    ):
        for least in (0, 1):
            slot, *_ = best_partner(least, np.array(beta), np.array(kappa), 5, LEAST, np.empty(5, np.int32), np.empty(5))
            assert -1 <= slot < 5
            assert slot != least


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-750.0, 0.0), min_size=1, max_size=40))
def test_the_exponential(xs):
    x, out = np.array([*xs, 0.0]), np.empty(len(xs) + 1)
    kernel_rows.kernel_values(np.zeros(len(x)), 0.0, -x, np.uint64(len(x)), Kernel("rbf", 1.0).compiled, out)
    normal = x > -700.0
    np.testing.assert_allclose(out[normal], np.exp(x[normal]), rtol=1e-15)
    assert np.all(out[~normal] < 1e-303)
    assert out[-1] == 1.0
