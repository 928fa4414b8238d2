"""Master problems next to exact ones: of many cuts, with a price of weights, and of two cuts of every column."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from streamcut.bundle import two_cuts
from streamcut.bundle.bundle import Bundle
from streamcut.bundle.intercept import Interval
from streamcut.bundle.penalty import ElasticNet
from streamcut.bundle.verified_master import solve_master, solve_penalised, solve_priced
from streamcut.foundation.rounding import CutError

EXACT = CutError(0.0, 0.0)


def shrunk(v, l1):
    """S(v, l1)."""
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)


def master_value(vectors, b, c_bar):
    """max over β ≥ 0, Σβ ≤ c_bar of ⟨b, β⟩ − ½‖βᵀA‖² by a general-purpose solver."""
    G = vectors @ vectors.T
    result = minimize(
        lambda beta: 0.5 * beta @ G @ beta - b @ beta,
        np.full(len(b), c_bar / (2 * len(b))),
        jac=lambda beta: G @ beta - b,
        bounds=[(0.0, c_bar)] * len(b),
        constraints={"type": "ineq", "fun": lambda beta: c_bar - beta.sum(), "jac": lambda beta: -np.ones(len(beta))},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -result.fun


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
    expected = master_value(vectors, b, c_bar)
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
    size = total * total * float(np.abs(G).max()) + total * n
    gap = solve_master(G, b, total, beta, 1e-12 * size)
    assert gap <= 1e-12 * size
    assert exact_gap(G, b, total, beta) <= 1e-11 * size
    assert beta.min() >= 0.0
    np.testing.assert_allclose(beta.sum(), total, rtol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_gap_of_a_priced_intercept_is_that_of_the_mixture_and_the_intercept_it_returns(seed):
    rng = np.random.default_rng(seed)
    T, d, total = int(rng.integers(2, 12)), int(rng.integers(1, 8)), float(10.0 ** rng.uniform(-1, 2))
    rows, b, pulls = np.vstack([np.zeros(d), rng.standard_normal((T, d))]), *rng.standard_normal((2, T + 1))
    b[0] = pulls[0] = 0.0  # the zero cut
    middle, half, beta = float(rng.normal()), float(rng.choice([0.3, 30.0])), np.zeros(T + 1)
    gap, intercept = solve_priced(rows @ rows.T, b, pulls, total, beta, Interval(middle - half, middle + half))
    w = -beta @ rows
    primal = 0.5 * w @ w + total * np.max(rows @ w + pulls * intercept + b)
    dual = (b + pulls * middle) @ beta - 0.5 * w @ w - half * abs(pulls @ beta)
    assert abs(intercept - middle) <= half * (1 + 1e-12)
    assert beta.min() >= 0.0
    assert gap == pytest.approx(primal - dual, abs=1e-9 * (1.0 + abs(primal)))
    assert gap <= 1e-6 * (1.0 + abs(primal))


def test_the_bound_is_below_the_exact_one():
    rng = np.random.default_rng(0)
    for _ in range(300):
        d, c_bar = int(rng.integers(1, 9)), float(10.0 ** rng.uniform(-6, 8))
        a = rng.standard_normal(d) * 10.0 ** rng.uniform(-8, 8, d)
        l1 = float(c_bar * abs(rng.choice(a)) * rng.choice([1.0, 1.0 + 1e-15, 1e-3, 0.3]))
        b = float(rng.standard_normal() * 10.0 ** rng.uniform(-3, 12))
        computed, _ = ElasticNet(l1).bound(c_bar, a, b, EXACT)
        C, L = Fraction(c_bar), Fraction(l1)
        w = [max(abs(C * Fraction(x)) - L, Fraction(0)) for x in a.tolist()]
        assert Fraction(computed) <= C * Fraction(b) - sum(x * x for x in w) / 2


@pytest.mark.parametrize("seed", range(12))
def test_the_master_problem_is_solved(seed):
    rng = np.random.default_rng(seed)
    T, d, total = int(rng.integers(2, 12)), int(rng.integers(1, 15)), float(10.0 ** rng.uniform(-1, 2))
    rows = np.vstack([np.zeros(d), rng.standard_normal((T, d)) / total])
    b, l1, beta = np.append(0.0, rng.random(T) / total), float(rng.choice([0.1, 0.5, 2.0])), np.zeros(T + 1)
    beta[0] = total

    def value(beta):
        w = shrunk(-beta @ rows, l1)
        return 0.5 * w @ w - b @ beta, -rows @ w - b

    gap = solve_penalised(rows, rows @ rows.T, b, total, beta, 1e-10, l1)
    found, slope = value(beta)
    assert gap <= 1e-10
    assert beta @ slope - total * slope.min() <= 1e-9  # what is left to gain, by convexity
    assert found <= min(value(total * point)[0] for point in [*np.eye(T + 1), *rng.dirichlet(np.ones(T + 1), 100)]) + 1e-9
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(total, rel=1e-14)


D, A = 35, 4
seeds = given(st.integers(0, 10**6))
many = settings(max_examples=20, deadline=None)


def squares(U, G):
    return np.stack([(G * G).sum(axis=0), (G * U).sum(axis=0), (U * U).sum(axis=0)])


def dual(cuts, a, l1, p, q, middle, half):
    """C (p b_G + q b) − ½‖S(C (p G + q U), l1)‖² of column a.

    Unless `half` is None, the last numbers of the cuts pull at an intercept, the worst one within `half` of `middle`.
    """
    U, G, b, b_G, C = (cut[..., a] for cut in cuts)
    v, pull = C * (np.multiply.outer(G, p) + np.multiply.outer(U, q)), 0.0
    if half is not None:
        v, pull = v[:-1], np.maximum(v[-1] * (middle - half), v[-1] * (middle + half))
    w = shrunk(v, 0.0 if l1 is None else l1[a])
    return C * (p * b_G + q * b) - 0.5 * (w * w).sum(axis=0) - pull


@many
@seeds
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("thresholds", [False, True])
def test_masters_of_two_cuts_are_solved_also_for_the_worst_free_intercept(thresholds, free, seed):
    rng = np.random.default_rng(seed)
    U, G = rng.standard_normal((2, D, A))
    G[:, 1], U[:, 2] = 0.0, G[:, 2]  # nothing is known yet; the same cut twice
    G[-1, 0] = -U[-1, 0]  # pulls that cancel
    b, b_G = rng.uniform(0.0, 60.0, (2, A))
    b_G[1], b[2] = 0.0, b_G[2]
    C, middle, half = 10.0 ** rng.uniform(-2, 1, A), rng.standard_normal(A), rng.choice([0.0, 0.3, 30.0], A)
    l1 = C * rng.choice([0.0, 0.1, 1.0], A) if thresholds else None
    if free:
        price = two_cuts.PullPrice(C * G[-1], C * U[-1], half)
        p, q = two_cuts.mix(U[:-1], G[:-1], b - middle * U[-1], b_G - middle * G[-1], C, l1, squares(U[:-1], G[:-1]), price)
    else:
        p, q = two_cuts.mix(U, G, b, b_G, C, l1, squares(U, G))
    parts = np.array([(i, j) for i in range(61) for j in range(61 - i)]).T / 60
    near = 1e-9 if l1 is None else 2e-2 if free else 1e-3
    for a in range(A):
        where = (middle[a], half[a]) if free else (0.0, None)
        assert min(p[a], q[a]) >= 0.0
        assert p[a] + q[a] <= 1.0
        best = dual((U, G, b, b_G, C), a, l1, *parts, *where).max()
        assert dual((U, G, b, b_G, C), a, l1, p[a], q[a], *where) >= best - near * (1.0 + abs(best))


@pytest.mark.parametrize("thresholds", [False, True])
def test_a_master_is_no_worse_than_what_was_known_whatever_the_scales(thresholds):
    rng = np.random.default_rng(0)
    U, G = rng.standard_normal((2, D, 200)) * 10.0 ** rng.uniform(-20, 20, (2, 1, 200))
    b, b_G = 10.0 ** rng.uniform(-20, 20, (2, 200))
    C = 10.0 ** rng.uniform(-6, 6, 200)
    l1 = C * 10.0 ** rng.uniform(-20, 20, 200) if thresholds else None
    p, q = two_cuts.mix(U, G, b, b_G, C, l1, squares(U, G))
    assert ((p >= 0.0) & (q >= 0.0) & (p + q <= 1.0)).all()
    for a in range(200):
        rounding = 1e-12 * C[a] * (p[a] * b_G[a] + q[a] * b[a])
        mixed, *others = (dual((U, G, b, b_G, C), a, l1, *part, 0.0, None) for part in ((p[a], q[a]), (1, 0), (0, 1), (0, 0)))
        assert mixed >= max(others) - rounding


class Line:
    """Convex functions of k with kinks: ½ A0 k² + B0 k + Σ u max(0, 1 − z_b − kΔ), or of log(1 + e^−z)."""

    def __init__(self, seed, smooth, n=25):
        rng = np.random.default_rng(seed)
        self.A0, self.B0 = 10.0 ** rng.uniform(-3, 1, A), rng.uniform(-5.0, 2.0, A)
        self.z_b, self.delta, self.u = rng.standard_normal((n, A)), rng.standard_normal((n, A)), rng.uniform(0.1, 2.0, (n, 1))
        self.z_b[:4] = 1.0
        self.smooth, self.asked = smooth, 0

    def value(self, k):
        z = self.z_b + k * self.delta
        losses = np.logaddexp(0.0, -z) if self.smooth else np.maximum(0.0, 1.0 - z)
        return 0.5 * self.A0 * k * k + self.B0 * k + (self.u * losses).sum(axis=0)

    def slopes(self, k):
        self.asked += 1
        z = self.z_b + k * self.delta
        shares = np.exp(-np.logaddexp(0.0, z)) if self.smooth else ((z < 1.0) | ((z == 1.0) & (self.delta < 0.0))).astype(float)
        return self.A0 * k + self.B0 - (self.u * shares * self.delta).sum(axis=0)


@many
@seeds
@pytest.mark.parametrize("smooth", [False, True])
def test_line_searches_end_near_the_least(smooth, seed):
    line = Line(seed, smooth)
    k = two_cuts.minimise(line.slopes, A)
    assert line.asked <= 65
    found, zero = line.value(k), line.value(np.zeros(A))
    assert (found <= zero).all()
    for a in range(A):

        def own(t, a=a):
            return line.value(np.full(A, t))[a]

        high = 1.0
        while own(2.0 * high) < own(high):
            high *= 2.0
        best = min(minimize_scalar(own, bounds=(0.0, 2.0 * high), method="bounded", options={"xatol": 1e-12}).fun, zero[a])
        assert found[a] <= best + 0.05 * (zero[a] - best) + 1e-12  # kinks: of 3,753 lines two left more than a fiftieth


def test_lines_that_do_not_fall_stay_and_those_without_an_end_go_far():
    k = two_cuts.minimise(lambda k: np.array([1.0, -1.0, 0.0]) + 0.0 * k, 3)
    np.testing.assert_array_equal(k[[0, 2]], 0.0)
    assert k[1] >= 2.0**19
