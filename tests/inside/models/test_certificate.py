"""Bounds of witnesses, of dual points and of several problems next to exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamcut.foundation.rounding import CutError
from streamcut.models.certificate import Certificate, DualPoint, StopReason, Witness, certificate_of

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("l1", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_a_witness_is_below_its_exact_value_and_near_it(seed, l1):
    random = np.random.default_rng(seed)
    a, b, c_bar = random.standard_normal(6), 0.5 + 5 * random.random(), 0.1 + random.random()
    exact = Fraction(c_bar) * Fraction(b)
    exact -= sum(max(abs(Fraction(c_bar) * Fraction(x)) - Fraction(l1), Fraction(0)) ** 2 for x in a.tolist()) / 2
    whole = Witness(a, b, CutError(0.0, 0.0))
    for witness in (whole, whole.reduced(c_bar, l1)):
        bound = witness.bound(c_bar, l1)
        assert Fraction(bound) <= max(exact, 0)  # losses are not negative
        assert bound == pytest.approx(max(float(exact), 0.0), rel=1e-9, abs=1e-9)
    for error in (CutError(0.01, 0.0), CutError(0.0, 0.01)):
        assert Witness(a, b, error).bound(c_bar, l1) < whole.bound(c_bar, l1) or whole.bound(c_bar, l1) == 0.0


def test_the_value_of_a_dual_point_is_below_the_exact_one():
    alpha = np.array([0.5, -1.25, 0.0, 2.0])
    point = DualPoint(alpha, np.zeros(0))
    assert point.offset == 3.75
    assert DualPoint(np.array([[0.5, -0.5], [-1.0, 1.0]]), np.zeros(0)).offset == 1.5  # of its own class alone
    for square, doubt in ((2.0, 0.0), (2.0, 0.25), (-1e-9, 0.0)):
        exact = Fraction(15, 4) - (max(Fraction(square), Fraction(0)) + Fraction(doubt)) / 2
        assert Fraction(point.value(square, doubt)) <= exact
        assert point.value(square, doubt) == pytest.approx(float(exact), rel=1e-11)
    assert point.value(100.0, 0.0) == 0.0


def test_a_sum_of_problems_is_rounded_outwards():
    random = np.random.default_rng(0)
    for bounds in random.uniform(0.0, 1.0, (50, 3)).tolist():
        problems = [Certificate(2.0 * bound, bound, 1.0, 1e-3, None, True, StopReason.CONVERGED) for bound in bounds]
        exact, whole = sum(map(Fraction, bounds)), certificate_of(problems)
        assert Fraction(whole.lower_bound) <= exact
        assert Fraction(whole.primal) >= 2 * exact
