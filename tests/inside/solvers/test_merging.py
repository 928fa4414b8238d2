"""Merging: table and Newton steps against brute force; the compiled exponential."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.budget import best_merge
from scipy.optimize import minimize_scalar

from streamcut.compiled import kernel_rows
from streamcut.compiled.merging import best_h, best_partner, merging_tables, smallest
from streamcut.kernels.kernel import Kernel

TABLES = merging_tables()


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0), st.floats(1e-12, 1.0))
def test_h_and_the_merged_coefficient_are_those_of_brute_force(a, b, kappa):
    m = a / (a + b)
    _, best = best_merge(a, b, kappa)
    h, s = best_h(TABLES, m, kappa)
    assert 0.0 <= h <= 1.0
    assert (a + b) * s == pytest.approx(best, rel=1e-9)
    assert (a + b) * s == pytest.approx(a * kappa ** ((1 - h) ** 2) + b * kappa ** (h**2), rel=1e-12)
    assert a * a + b * b + 2 * a * b * kappa - ((a + b) * s) ** 2 >= -1e-12 * (a + b) ** 2


def _lost(h, m, kappa):
    return -(m * kappa ** ((1.0 - h) ** 2) + (1.0 - m) * kappa ** (h * h))


def test_the_table_gives_h_to_one_in_ten_thousand_everywhere():
    generator = np.random.default_rng(0)
    near = [(0.5 + x * x * 0.05, np.exp(-2) + y**3 * 0.05) for x, y in generator.uniform(-1, 1, (200, 2))]
    for m, kappa in [*generator.uniform(0, 1, (600, 2)), *near]:
        side = (0.5, 1.0) if m >= 0.5 else (0.0, 0.5)  # which has no other maximum
        found = minimize_scalar(_lost, args=(m, kappa), bounds=side, method="bounded", options={"xatol": 1e-9})
        h, best = found.x, -found.fun
        table_h, table_s = best_h(TABLES, m, kappa)
        assert table_s == pytest.approx(best, rel=1e-9)
        if abs(m - 0.5) > 1e-6:  # at 1/2 there are two
            assert abs(table_h - h) < 1e-4, (m, kappa)


def test_edges():
    assert best_h(TABLES, 1.0, 0.5) == (1.0, 1.0)
    assert best_h(TABLES, 0.25, 0.0) == (0.0, 0.75)
    h, s = best_h(TABLES, 0.7, 1.0)
    assert (h, s) == (pytest.approx(0.7), pytest.approx(1.0))
    for kappa in (0.9, 0.1361, np.exp(-2.0)):
        assert best_h(TABLES, 0.5, kappa)[0] == 0.5


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.01, 1.0, 20.0, 400.0]), st.sampled_from([0.1, 3.0, 30.0]))
def test_the_partner_is_the_best_of_all(seed, distance, spread):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(2, 40))
    beta = np.exp(spread * generator.normal(size=n)) * generator.choice([-1.0, 1.0], n)
    kappa, least = np.exp(-distance * generator.random(n)), smallest(beta, n)
    lost = {}
    for j in range(n):
        if j != least and beta[j] * beta[least] > 0.0:
            h, merged = best_merge(abs(beta[least]), abs(beta[j]), kappa[j])
            lost[j] = beta[least] ** 2 + beta[j] ** 2 + 2 * beta[least] * beta[j] * kappa[j] - merged**2, h, merged
    found = best_partner(least, beta, kappa, n, TABLES, np.empty(n, np.int32), np.empty(n))
    if not lost:
        assert found[0] == -1
        return
    size = np.max(beta**2)  # of what degradations are the difference of
    assert found[1] == pytest.approx(lost[found[0]][0], abs=1e-11 * size)
    assert found[1] <= min(line[0] for line in lost.values()) + 1e-11 * size
    assert found[3] == pytest.approx(lost[found[0]][2], rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=50))
def test_the_smallest_is_the_first_of_the_smallest(values):
    assert smallest(np.array(values), len(values)) == np.argmin(np.abs(values))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-750.0, 0.0), min_size=1, max_size=40))
def test_the_exponential(xs):
    x, out = np.array([*xs, 0.0]), np.empty(len(xs) + 1)
    kernel_rows.kernel_values(np.zeros(len(x)), 0.0, -x, np.uint64(len(x)), Kernel("rbf", 1.0).compiled, out)
    seen = x > -700.0
    np.testing.assert_allclose(out[seen], np.exp(x[seen]), rtol=1e-15)
    assert np.all(out[~seen] < 1e-303)
    assert out[-1] == 1.0
