"""What a certificate says, what of it can be changed, and the bounds of witnesses and dual points next to exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from streamcut.foundation.rounding import CutError
from streamcut.models.certificate import Certificate, DualPoint, StopReason, Tolerance, Witness, certificate_of

pytestmark = pytest.mark.smoke


def certificate(primal: float = 10.5, lower_bound: float = 10.0, **more) -> Certificate:
    told = {"tol": 1e-3, "tol_relative": None, "converged": False, "stop_reason": StopReason.MAX_PASSES, **more}
    return Certificate(primal, lower_bound, 100.0, **told)


def test_it_says_how_far_the_model_is_from_the_optimum():
    found = certificate()
    assert (found.gap, found.gap_per_c_bar) == (0.5, 0.005)
    assert found.tolerance == Tolerance(0.1, "tol 0.001")
    assert certificate(unit=3.0).tolerance.gap == pytest.approx(0.3, rel=1e-15)
    assert found.in_words() == (
        "Not converged: the allowed number of passes was used up, and the gap is 0.5 where 0.1 was asked for (tol 0.001). The "
        "objective is 10.5 and no weights can reach less than 10, so the model is at most 5 % above the optimum "
        "(0.005 in mean loss)."
    )
    assert found.briefly() == "not converged, at most 5 % above the optimum (0.005 in mean loss)"
    done = certificate(10.05, converged=True, stop_reason=StopReason.CONVERGED, detail="in one pass")
    assert done.in_words().startswith(
        "Converged: the gap is within the tolerance (in one pass) (tol 0.001). The objective is 10.05 "
    )
    assert done.briefly() == "at most 0.5 % above the optimum (0.0005 in mean loss)"


@pytest.mark.parametrize("l1", [0.0, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_a_witness_is_below_its_exact_value_and_near_it(seed, l1):
    random = np.random.default_rng(seed)
    a, b, c_bar = random.standard_normal(6), 0.5 + 5 * random.random(), 0.1 + random.random()
    exact = Fraction(c_bar) * Fraction(b)
    for each in a.tolist():
        pull = abs(Fraction(c_bar) * Fraction(each)) - Fraction(l1)
        exact -= max(pull, Fraction(0)) ** 2 / 2
    for witness in (Witness(a, b, CutError(0.0, 0.0)), Witness(a, b, CutError(0.0, 0.0)).reduced(c_bar, l1)):
        found = witness.bound(c_bar, l1)
        assert Fraction(found) <= max(exact, 0)
        assert found == pytest.approx(max(float(exact), 0.0), rel=1e-9, abs=1e-9)


def test_errors_of_a_cut_lower_its_bound():
    a, exact = np.array([0.3, -0.4]), Witness(np.array([0.3, -0.4]), 2.0, CutError(0.0, 0.0)).bound(1.0)
    assert Witness(a, 2.0, CutError(0.01, 0.0)).bound(1.0) < exact
    assert Witness(a, 2.0, CutError(0.0, 0.01)).bound(1.0) <= exact - 0.01 + 1e-12
    assert Witness(a, -5.0, CutError(0.0, 0.0)).bound(1.0) == 0.0  # losses are not negative


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
        each = [Certificate(2.0 * bound, bound, 1.0, 1e-3, None, True, StopReason.CONVERGED) for bound in bounds]
        exact, whole = sum(map(Fraction, bounds)), certificate_of(each)
        assert Fraction(whole.lower_bound) <= exact
        assert Fraction(whole.primal) >= 2 * exact
