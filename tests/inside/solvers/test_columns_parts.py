"""Parts of training columns: masters of two cuts, line searches, vectors side by side."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import columns as slow
from scipy.optimize import minimize_scalar

from streamcut.bundle import two_cuts

D, A = 35, 4
seeds = given(st.integers(0, 10**6))
many = settings(max_examples=60, deadline=None)


def squares(U, G):
    return np.stack([(G * G).sum(axis=0), (G * U).sum(axis=0), (U * U).sum(axis=0)])


@many
@seeds
@pytest.mark.parametrize("thresholds", [False, True])
def test_masters_of_two_cuts_are_solved(thresholds, seed):
    rng = np.random.default_rng(seed)
    U, G = rng.standard_normal((2, D, A))
    G[:, 1], U[:, 2] = 0.0, G[:, 2]  # nothing is known yet; the same cut twice
    b, b_G = rng.uniform(0.0, 60.0, (2, A))
    b_G[1], b[2] = 0.0, b_G[2]
    C = 10.0 ** rng.uniform(-2, 1, A)
    l1 = C * rng.choice([0.0, 0.1, 1.0], A) if thresholds else None
    p, q = two_cuts.mix(U, G, b, b_G, C, l1, squares(U, G))
    parts = [(i / 60, j / 60) for i in range(61) for j in range(61 - i)]
    for a in range(A):
        own = U[:, a], G[:, a], b[a], b_G[a], C[a], 0.0 if l1 is None else l1[a]
        assert min(p[a], q[a]) >= 0.0
        assert p[a] + q[a] <= 1.0
        found, best = slow.dual_of_mixture(*own, p[a], q[a]), max(slow.dual_of_mixture(*own, *each) for each in parts)
        assert found >= best - (1e-9 if l1 is None else 1e-3) * (1.0 + abs(best))


@many
@seeds
@pytest.mark.parametrize("thresholds", [False, True])
def test_masters_with_free_intercepts_are_solved_for_the_worst_of_them(thresholds, seed):
    rng = np.random.default_rng(seed)
    U, G = rng.standard_normal((2, D, A))
    G[-1, 0] = -U[-1, 0]  # pulls that cancel
    G[:, 1], U[-1, 2] = 0.0, 0.0
    b, b_G = rng.uniform(0.0, 60.0, (2, A))
    C, middle, half = 10.0 ** rng.uniform(-2, 1, A), rng.standard_normal(A), rng.choice([0.0, 0.3, 30.0], A)
    l1 = C * rng.choice([0.0, 0.1, 1.0], A) if thresholds else None
    price = two_cuts.Price(C * G[-1], C * U[-1], half)
    given = U[:-1], G[:-1], b - middle * U[-1], b_G - middle * G[-1]
    p, q = two_cuts.mix(*given, C, l1, squares(*given[:2]), price)
    parts = [(i / 60, j / 60) for i in range(61) for j in range(61 - i)]
    for a in range(A):
        own, where = (U[:, a], G[:, a], b[a], b_G[a], C[a], 0.0 if l1 is None else l1[a]), (middle[a], half[a])
        assert min(p[a], q[a]) >= 0.0
        assert p[a] + q[a] <= 1.0
        found = slow.dual_of_priced(*own, p[a], q[a], *where)
        best = max(slow.dual_of_priced(*own, *each, *where) for each in parts)
        assert found >= best - (1e-9 if l1 is None else 2e-2) * (1.0 + abs(best))


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
        own = U[:, a], G[:, a], b[a], b_G[a], C[a], 0.0 if l1 is None else l1[a]
        found = slow.dual_of_mixture(*own, p[a], q[a])
        rounding = 1e-12 * C[a] * (p[a] * b_G[a] + q[a] * b[a])
        others = ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))
        assert found >= max(slow.dual_of_mixture(*own, *each) for each in others) - rounding


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
