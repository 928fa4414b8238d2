"""Losses with a width at their kinks: shares, slopes and curvatures against the loss averaged over a window."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.losses.smoothed import Smoothed

KINKED = [name for name, loss in ROW_LOSSES.items() if loss.kinks]
PARAMETERS = {"epsilon": 0.4, "quantile": 0.3}
pytestmark = pytest.mark.parametrize("name", KINKED)
NUMBERS = st.floats(-5, 5), st.floats(0.01, 3)


def averaged(loss, z, width):
    """The mean of the loss over z ± width: exact, as it is linear between kinks."""
    ends = sorted({z - width, z + width, *(k for k in map(loss.kink, range(loss.kinks())) if abs(k - z) < width)})
    areas = (0.5 * (b - a) * (loss.value(a, 0.0) + loss.value(b, 0.0)) for a, b in pairwise(ends))
    return sum(areas) / (2.0 * width)


@settings(max_examples=100, deadline=None)
@given(*NUMBERS)
def test_its_slope_is_that_of_the_averaged_loss(name, z, width):
    loss, h = row_loss(name, PARAMETERS, 1.0), 1e-5
    smoothed = Smoothed(loss, width)
    low, here, high = (averaged(loss, z + k, width) for k in (-h, 0.0, h))
    assert -smoothed.dual(z, 0.0) == pytest.approx((high - low) / (2 * h), abs=1e-5 + h / width)
    if min(abs(abs(z - loss.kink(j)) - width) for j in range(loss.kinks())) > 2 * h:
        assert smoothed.curvature(0.0, z, 0.0) == pytest.approx((high - 2 * here + low) / h**2, abs=1e-3)


@settings(max_examples=100, deadline=None)
@given(*NUMBERS, st.floats(-5, 5))
def test_its_shares_are_a_lower_bound_and_cost_a_quarter_of_the_width(name, z, width, other):
    loss = row_loss(name, PARAMETERS, 1.0)
    smoothed = Smoothed(loss, width)
    f = smoothed.dual(z, 0.0)
    assert loss.lowest(0.0) <= f <= loss.highest(0.0)
    for at in (z, other):  # Fenchel-Young
        assert loss.value(at, 0.0) + f * at + loss.conjugate(f, 0.0) >= -1e-12
    assert loss.value(z, 0.0) + f * z + loss.conjugate(f, 0.0) <= 0.25 * width * loss.kinks() + 1e-12
    assert smoothed.value(z, 0.0) == loss.value(z, 0.0)
