"""No false stop, no lost point, nothing that is not finite: trainings against optima in 500 bits, and data that is badly scaled.

scripts/checks/check_truth.py tries as many more problems as one likes.
"""

import numpy as np
import pytest
from kit.nights import by_night
from reference import truth

from streamcut.bundle.kinks import Kinks, minimise_with_kinks
from streamcut.bundle.precise_master import solve_precisely
from streamcut.bundle.verified_master import solve_verified
from streamcut.models.certificate import Certificate, StopReason
from streamcut.solvers.best import Best
from streamcut.solvers.standstill import Standing, Standstill

EACH = 200 // len(truth.KINDS) + 1


# Alike with others but for the loss, and slow.
NIGHTLY = [kind for kind in truth.KINDS if kind.endswith("l1") and kind.split()[0] not in ("hinge", "logistic", "poisson")]


@pytest.mark.thirds
@pytest.mark.parametrize("kind", by_night(truth.KINDS, NIGHTLY))
def test_claims_hold_against_the_optimum_in_500_bits(kind):
    false = [violation for seed in range(EACH) for violation in truth.check(kind, seed)]
    assert not false, false[:3]


# --- the master problem -------------------------------------------------------------------------------------------------------


def cuts(large: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(8, 4))
    rows[:, 3] *= large
    rows[0], b = 0.0, np.append(0.0, rng.random(7))
    return rows, b


@pytest.mark.parametrize("l1", [0.0, 0.05])
@pytest.mark.parametrize("large", [1.0, 1e6, 1e9])
def test_its_gap_is_known_whatever_the_columns(large, l1):
    rows, b = cuts(large)
    beta = np.append(60.0, np.zeros(7))
    found = solve_verified(rows, rows @ rows.T, b, 60.0, beta, 1e-8, l1)
    assert found.gap <= 1e-6
    v = -(beta @ rows) if found.v is None else found.v
    w = np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)
    assert 60.0 * np.max(b + rows @ w) - beta @ (b + rows @ w) <= 1e-6  # of what w says of itself


def test_more_digits_find_what_fewer_do():
    rows, b = cuts(1.0)
    few, many = np.append(60.0, np.zeros(7)), np.append(60.0, np.zeros(7))
    solve_verified(rows, rows @ rows.T, b, 60.0, few, 1e-12)
    assert solve_precisely(rows, b, 60.0, many, 1e-12).gap <= 1e-11
    np.testing.assert_allclose(few, many, atol=1e-9)


def test_its_value_never_falls_even_where_it_cannot_be_solved():
    rows, b = cuts(1e200)  # whose products are not float64
    beta = np.append(60.0, np.zeros(7))
    with np.errstate(all="ignore"):
        gram = rows @ rows.T
        solve_verified(rows, gram, b, 60.0, beta, 1e-8)
    np.testing.assert_array_equal(beta, np.append(60.0, np.zeros(7)))


def test_its_gap_is_no_rounding():
    standstill = Standstill()
    for _ in range(10):
        standstill.see(Standing(primal=10.0, value=9.0, qp_gap=5.0, error=0.0, full=False))
    assert standstill.reason() is StopReason.SCALE


# --- the best point -----------------------------------------------------------------------------------------------------------


def test_only_a_lower_and_finite_objective_is_taken():
    zero, other = np.zeros(2), np.ones(2)
    best = Best(zero, 5.0, 0.0)
    assert not any(best.offer(other, F, 0.0) for F in (6.0, np.inf, np.nan))
    assert best.w is zero
    assert best.offer(other, 4.0, 1.0)
    assert best.F == 4.0


def test_the_point_before_a_doubtful_step_is_kept():
    moving = np.ones(2)
    best = Best(moving, 5.0, 0.0)
    best.before(moving, doubt=1e-6, gap=1.0)
    assert best.w is moving
    best.before(moving, doubt=1.0, gap=1.0)
    moving += 1.0
    best.offer(moving, 9.0, 4.0)
    assert best.F == 5.0
    assert best.w.tolist() == [1.0, 1.0]


def test_a_line_on_which_the_loss_is_infinite_is_searched_nearer():
    def slopes(k: float) -> tuple[float, float]:
        with np.errstate(over="ignore"):
            return float(np.exp(1e3 * k) - 2.0), float(1e3 * np.exp(1e3 * k))

    kinks = Kinks(np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.1)
    k = minimise_with_kinks(1e-9, -1e-9, 1.0, slopes, kinks)
    assert k == pytest.approx(np.log(1.8) / 1e3, rel=1e-6)


def test_a_certificate_says_its_detail():
    words = Certificate(10.0, 9.0, 1e3, 1e-3, 1e-2, False, StopReason.SCALE, detail="feature 2 is large; --scale").in_words()
    assert "columns of one size (scale) or more max_cuts may help (feature 2 is large; scale), and the gap is 1" in words


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_better_point_from_before_is_not_taken_for_one_that_rounding_made(loss):
    """Rounding of the last step is no reason for the gap of the point that is returned."""
    assert truth.check(f"one-vs-rest {loss} free l1", 28) == []
