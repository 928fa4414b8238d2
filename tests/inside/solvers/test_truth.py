"""No false stop, no lost point, nothing that is not finite: trainings against optima in 500 bits, and data that is badly scaled.

scripts/checks/check_truth.py tries as many more problems as one likes.
"""

import pytest
from reference import truth


@pytest.mark.parametrize("kind", truth.KINDS)
def test_claims_hold_against_the_optimum_in_500_bits(kind):
    false = [violation for seed in range(2) for violation in truth.check(kind, seed)]
    assert not false, false[:3]


# --- the best point -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic"])
def test_a_better_point_from_before_is_not_taken_for_one_that_rounding_made(loss):
    """Rounding of the last step is no reason for the gap of the point that is returned."""
    assert truth.check(f"one-vs-rest {loss} free l1", 28) == []
