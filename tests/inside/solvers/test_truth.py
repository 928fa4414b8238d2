"""No false stop, no lost point, nothing that is not finite: trainings against optima in 500 bits, and data that is badly scaled.

scripts/checks/check_truth.py tries as many more problems as one likes.
"""

import numpy as np
import pytest
from kit.nights import by_night
from reference import truth

from streamcut.solvers.best import Best

EACH = 200 // len(truth.KINDS) + 1


# Alike with others but for the loss, and slow.
NIGHTLY = [kind for kind in truth.KINDS if kind.endswith("l1") and kind.split()[0] not in ("hinge", "logistic", "poisson")]


@pytest.mark.thirds
@pytest.mark.parametrize("kind", by_night(truth.KINDS, NIGHTLY))
def test_claims_hold_against_the_optimum_in_500_bits(kind):
    false = [violation for seed in range(EACH) for violation in truth.check(kind, seed)]
    assert not false, false[:3]


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


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_better_point_from_before_is_not_taken_for_one_that_rounding_made(loss):
    """Rounding of the last step is no reason for the gap of the point that is returned."""
    assert truth.check(f"one-vs-rest {loss} free l1", 28) == []
