"""lower bound ≤ F(w) ≤ primal, in exact arithmetic and without any tolerance, on thousands of badly scaled problems.

scripts/checks/exact_bounds.py tries as many more as one likes.
"""

import pytest
from kit.nights import by_night
from reference import exact_classes
from reference.exact import LOSSES
from reference.exact_bounds import check

from streamcut.loss_table import ROW_LOSSES

PROBLEMS = 2000 // len(ROW_LOSSES) + 1  # of each loss
CLASSES = 40  # problems of several classes, of each way to train them


def test_each_loss_has_an_exact_counterpart():
    assert set(ROW_LOSSES) <= set(LOSSES), "give streamcut's new loss its definition in tests/reference/exact.py"


# Each kind of rows has kernels of its own, which take longer to compile than problems to solve: nights have all of them.
LOSSES_BY_NIGHT = ("smoothed-hinge", "huber", "squared", "squared-epsilon-insensitive", "quantile")
NIGHTLY = ("one-vs-rest squared-hinge", "one-vs-rest smoothed-hinge")  # alike with the other losses but for the loss
EVERY_NIGHT = pytest.param(False, marks=pytest.mark.long, id="rows of all kinds")


@pytest.mark.thirds
@pytest.mark.parametrize("one_type", [pytest.param(True, id="rows of one kind"), EVERY_NIGHT])
@pytest.mark.parametrize("loss", by_night(ROW_LOSSES, LOSSES_BY_NIGHT))
def test_claims_are_true_in_exact_arithmetic(loss, one_type):
    false = [violation for seed in range(PROBLEMS) for violation in check(loss, seed, one_type=one_type)]
    assert not false, f"{len(false)} of {PROBLEMS} problems: {false[:3]}"


@pytest.mark.thirds
@pytest.mark.parametrize("one_type", [pytest.param(True, id="rows of one kind"), EVERY_NIGHT])
@pytest.mark.parametrize("way", by_night(exact_classes.WAYS, NIGHTLY))
def test_claims_about_several_classes_are_true_in_exact_arithmetic_and_forged_ones_are_caught(way, one_type):
    false = [violation for seed in range(CLASSES) for violation in exact_classes.check(way, seed, one_type=one_type)]
    assert not false, f"{len(false)} of {CLASSES} problems: {false[:3]}"
