"""lower bound ≤ F(w) ≤ primal, in exact arithmetic and without any tolerance, on badly scaled problems.

scripts/checks/exact_bounds.py tries as many more as one likes, of all losses and rows.
"""

import pytest
from reference import exact_classes
from reference.exact import LOSSES
from reference.exact_bounds import check

from streamcut.loss_table import ROW_LOSSES

# Each loss has kernels of its own, which take longer to compile than problems to solve: these are one of every kind.
KINDS = ("hinge", "logistic", "poisson", "epsilon-insensitive")
WAYS = ("crammer-singer", "softmax", "one-vs-rest hinge", "one-vs-rest logistic")


def test_each_loss_has_an_exact_counterpart():
    assert set(ROW_LOSSES) <= set(LOSSES), "give streamcut's new loss its definition in tests/reference/exact.py"


@pytest.mark.parametrize("loss", KINDS)
def test_claims_are_true_in_exact_arithmetic(loss):
    false = [violation for seed in range(60) for violation in check(loss, seed, one_type=True)]
    assert not false, false[:3]


@pytest.mark.parametrize("way", WAYS)
def test_claims_about_several_classes_are_true_in_exact_arithmetic_and_forged_ones_are_caught(way):
    false = [violation for seed in range(20) for violation in exact_classes.check(way, seed, one_type=True)]
    assert not false, false[:3]
