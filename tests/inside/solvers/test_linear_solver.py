"""Kernels, line search, master problem and the solvers against their slow versions, and what must never change the answer."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import svm

from streamcut.bundle.bundle import Bundle
from streamcut.bundle.verified_master import solve_master
from streamcut.foundation.rounding import CutError

EXACT = CutError(0.0, 0.0)


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
