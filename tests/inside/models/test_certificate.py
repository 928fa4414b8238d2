"""Bounds of proofs, of dual points and of several problems next to exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamcut.models.certificate import Certificate, DualPoint, StopReason, certificate_of

pytestmark = pytest.mark.smoke


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
