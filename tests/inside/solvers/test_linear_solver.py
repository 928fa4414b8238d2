"""Kernels, line search, master problem and the solvers against their slow versions, and what must never change the answer."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.linear_solver import dense
from reference import svm

from streamcut.bundle.bundle import Bundle
from streamcut.bundle.verified_master import solve_master
from streamcut.compiled import linear
from streamcut.foundation.rounding import CutError, Grids

EXACT = CutError(0.0, 0.0)


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, None])
@pytest.mark.parametrize("bias", [0.0, 2.0])
def test_scores_and_scatter_equal_dense_products(dtype, bias):
    rng = np.random.default_rng(2)
    X = sp.random_array((60, 100), density=0.5, format="csr", rng=rng)  # rows on both sides of the unrolled length
    X.data = np.ones_like(X.data) if dtype is None else rng.integers(-9, 9, X.nnz).astype(dtype)
    data = None if dtype is None else X.data
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    A = dense(X, bias)
    w, c = rng.standard_normal(A.shape[1]), rng.standard_normal(60)
    c[::3] = 0.0
    out = np.empty(60)
    linear.scores(indptr, indices, data, w, bias, out)
    np.testing.assert_allclose(out, A @ w, rtol=1e-12, atol=1e-12)
    grids = Grids.holding(1e4, 1e4)
    for grid in (grids, grids.finer(60)):
        total = np.zeros((grid.folds, A.shape[1]))
        linear.scatter(indptr, indices, data, c, bias, grid, total)
        np.testing.assert_allclose(total.sum(axis=0), A.T @ c, rtol=1e-9, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 400), st.booleans())
def test_sums_on_a_grid_do_not_depend_on_order_or_parts(seed, n, fine):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(n) * 10.0 ** rng.integers(-8, 3, n)
    grids = Grids.holding(float(np.abs(values).sum()), 1.0)
    grids = grids.finer(n) if fine else grids
    indptr, indices, sums = np.arange(n + 1), np.zeros(n, np.int32), []
    for order in (np.arange(n), rng.permutation(n), np.argsort(values)):
        total = np.zeros((grids.folds, 1))
        cut = n // 3
        linear.scatter(indptr[: cut + 1], indices[:cut], values[order][:cut], np.ones(cut), 0.0, grids, total)
        linear.scatter(indptr[: n - cut + 1], indices[cut:], values[order][cut:], np.ones(n - cut), 0.0, grids, total)
        sums.append(total[:, 0].tolist())
    assert sums[0] == sums[1] == sums[2]
    exact = sum(map(Fraction, values))
    assert abs(sum(map(Fraction, sums[0])) - exact) <= grids.vector_error(n, n)
    assert grids.vector_error(n, n) <= n * (n * 1e-30 if fine else 2.0**-51) * np.abs(values).sum()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 7), st.integers(1, 6), st.floats(0.1, 100))
def test_master_problem_reaches_its_optimum_also_when_singular(seed, T, d, c_bar):
    rng = np.random.default_rng(seed)
    vectors, b = rng.standard_normal((T, d)), rng.uniform(-0.5, 1, T)
    vectors[T // 2] = vectors[0]  # more cuts than dimensions, and equal ones
    bundle = Bundle(d, c_bar, 10)
    for a, offset in zip(vectors, b, strict=True):
        bundle.add(a, offset, EXACT)
    solution = bundle.solve(1e-9 * c_bar)
    expected = svm.master_value(vectors, b, c_bar)
    assert solution.lower_bound == pytest.approx(expected, abs=1e-6 * c_bar)
    # the dual value never exceeds the primal value of the master problem at its own w
    value = 0.5 * solution.w @ solution.w + c_bar * max(0.0, np.max(vectors @ solution.w + b))
    assert solution.lower_bound <= value + 1e-12 * c_bar
    assert value - solution.lower_bound <= 1.1e-9 * c_bar
    assert solution.qp_gap <= 1e-9 * c_bar


def exact_gap(G, b, total, beta):
    """total·max g − ⟨β, g⟩ with g = b − Gβ in rational arithmetic, β made to add up to `total`."""
    exact = [Fraction(x) for x in beta.tolist()]
    factor = Fraction(total) / sum(exact)
    exact = [factor * x for x in exact]
    used = [t for t, x in enumerate(exact) if x]
    g = [Fraction(b[t]) - sum(Fraction(G[t, s]) * exact[s] for s in used) for t in range(len(b))]
    return float(Fraction(total) * max(g) - sum(exact[t] * g[t] for t in used))


@pytest.mark.parametrize("seed", range(4))
def test_master_problem_with_more_cuts_than_dimensions_is_finished(seed):
    rng = np.random.default_rng(seed)
    w = rng.normal(0, 1, (200, 3)) * [1e-2, 1e-3, 1e-1]  # tangents of a smooth function in 3 dimensions of very unequal scale:
    scale = np.array([100.0, 255.0, 1.0])  # pairwise steps zigzag for ever
    root = np.sqrt(1.0 + np.sum((scale * w) ** 2, axis=1))
    A, b = scale**2 * w / root[:, None], 1.0 / root
    beta = np.full(200, 500.0)
    gap = solve_master(A @ A.T, b, 1e5, beta, 1e-3)
    assert gap <= 1e-3  # of about 1e5
    assert exact_gap(A @ A.T, b, 1e5, beta) <= 2e-3
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(1e5, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 12), st.floats(-4, 4))
def test_master_problem_of_nearly_equal_cuts(seed, n, d, scale):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    A[n // 2 :] = A[: n - n // 2] * (1.0 + 1e-9 * rng.standard_normal((n - n // 2, d)))
    G, b, total = A @ A.T, rng.uniform(-0.5, 1.0, n), 10.0**scale
    beta = total * rng.dirichlet(np.full(n, 0.3))
    worth = total * total * float(np.abs(G).max()) + total * n
    gap = solve_master(G, b, total, beta, 1e-12 * worth)
    assert gap <= 1e-12 * worth
    assert exact_gap(G, b, total, beta) <= 1e-11 * worth
    assert beta.min() >= 0.0
    np.testing.assert_allclose(beta.sum(), total, rtol=1e-12)
