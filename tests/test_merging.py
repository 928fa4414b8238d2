"""Merging: golden section, table and Newton steps against brute force; the compiled exponential; projection."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.budget import best_merge

from streamcut.passes import budget
from streamcut.passes.merging import golden_section, merging_tables

TABLES = merging_tables()


@settings(max_examples=150, deadline=None)
@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0), st.floats(1e-12, 1.0))
def test_h_and_the_merged_coefficient_are_those_of_brute_force(a, b, kappa):
    m = a / (a + b)
    _, best = best_merge(a, b, kappa)
    for h, s in (golden_section(m, kappa, 1e-10), budget.best_h(TABLES, m, kappa)):
        assert 0.0 <= h <= 1.0
        assert (a + b) * s == pytest.approx(best, rel=1e-9)
        assert (a + b) * s == pytest.approx(a * kappa ** ((1 - h) ** 2) + b * kappa ** (h**2), rel=1e-12)
        assert a * a + b * b + 2 * a * b * kappa - ((a + b) * s) ** 2 >= -1e-12 * (a + b) ** 2


def test_the_table_gives_h_to_one_in_ten_thousand_everywhere():
    generator = np.random.default_rng(0)
    near = [(0.5 + x * x * 0.05, np.exp(-2) + y**3 * 0.05) for x, y in generator.uniform(-1, 1, (500, 2))]
    for m, kappa in [*generator.uniform(0, 1, (2000, 2)), *near]:
        h, s = golden_section(m, kappa, 1e-9)
        table_h, table_s = budget.best_h(TABLES, m, kappa)
        assert table_s == pytest.approx(s, rel=1e-9)
        if abs(m - 0.5) > 1e-6:  # at 1/2 there are two
            assert abs(table_h - h) < 1e-4, (m, kappa)


def test_edges():
    assert budget.best_h(TABLES, 1.0, 0.5) == (1.0, 1.0)
    assert budget.best_h(TABLES, 0.25, 0.0) == (0.0, 0.75)
    h, s = budget.best_h(TABLES, 0.7, 1.0)
    assert (h, s) == (pytest.approx(0.7), pytest.approx(1.0))
    assert budget.best_h(TABLES, 0.5, 0.9)[0] == 0.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-750.0, 0.0), min_size=1, max_size=40))
def test_the_exponential(xs):
    x, out = np.array(xs), np.empty(len(xs))
    budget.exponentials(x, out)
    seen = x > -700.0
    np.testing.assert_allclose(out[seen], np.exp(x[seen]), rtol=budget.EXP_ERROR)
    assert np.all(out[~seen] < 1e-303)


def test_the_exponential_of_zero_is_one():
    out = np.empty(3)
    budget.exponentials(np.zeros(3), out)
    assert out.tolist() == [1.0, 1.0, 1.0]
