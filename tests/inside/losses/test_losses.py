"""Every loss of the table against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss

PARAMETERS = {"epsilon": 0.3, "delta": 0.7, "quantile": 0.3}
LOSSES = {name: row_loss(name, PARAMETERS, 3.0) for name in ROW_LOSSES}
SMOOTH = [name for name, loss in LOSSES.items() if loss.smooth]
Y = 3.0  # the positive label, a number, a count

every = pytest.mark.parametrize("name", LOSSES)
z_values = st.floats(-8.0, 8.0) | st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.3, -0.3, 0.7, -0.7])


def shares_of(loss):
    """Some shares in the domain of the conjugate."""
    return np.linspace(max(loss.lowest(Y), -20.0), min(loss.highest(Y), 20.0), 41)


@every
@given(z=z_values)
def test_the_share_is_minus_the_slope(name, z):
    loss, step = LOSSES[name], 1e-6
    right, left = ((loss.value(z + h, Y) - loss.value(z, Y)) / h for h in (step, -step))
    slack = 1e-4 * max(1.0, abs(right))
    assert left - slack <= -loss.dual(z, Y) <= right + slack
    assert loss.value(z, Y) >= 0.0


@pytest.mark.parametrize("name", SMOOTH)
@given(z=z_values)
def test_the_curvature_is_the_slope_of_the_slope(name, z):
    loss, step = LOSSES[name], 1e-6
    sides = [-(loss.dual(z + h, Y) - loss.dual(z, Y)) / h for h in (step, -step)]
    slack = 1e-4 * max(1.0, *sides)
    assert min(sides) - slack <= loss.curvature(loss.dual(z, Y), z, Y) <= max(sides) + slack


@every
def test_the_conjugate_is_the_greatest_difference(name):
    loss = LOSSES[name]
    for f in shares_of(loss):
        found = minimize_scalar(lambda z, f=f: f * z + loss.value(z, Y), bounds=(-60.0, 60.0), method="bounded").fun
        assert loss.conjugate(f, Y) == pytest.approx(-found, abs=2e-5, rel=1e-6)
    assert loss.conjugate(0.0, Y) == 0.0


@every
@given(z=z_values)
def test_a_share_and_its_conjugate_touch_the_loss(name, z):
    loss = LOSSES[name]
    f = loss.dual(z, Y)
    assert -f * z - loss.conjugate(f, Y) == pytest.approx(loss.value(z, Y), rel=1e-9, abs=1e-12 * max(1.0, abs(f * z)))


@every
@given(z=z_values, q=st.floats(1e-3, 1e3), part=st.floats(0.0, 1.0))
def test_a_coordinate_step_is_the_best(name, z, q, part):
    loss = LOSSES[name]
    low, high = max(loss.lowest(Y), -5.0), min(loss.highest(Y), 5.0)
    f = low + part * (high - low)
    after = loss.step(f, z, q, Y)
    assert loss.lowest(Y) <= after <= loss.highest(Y)

    def cost(share):
        return share * z + 0.5 * q * (share - f) ** 2 + loss.conjugate(share, Y)

    others = np.clip(after + np.array([1e-4, -1e-4, 1e-2, -1e-2, 0.3, -0.3]), loss.lowest(Y), loss.highest(Y))
    assert cost(after) <= min(cost(share) for share in others) + 1e-10 * max(1.0, abs(z), q)


@every
@given(part=st.floats(0.0, 1.0))
def test_codes_are_near_their_shares_and_in_the_domain(name, part):
    loss = LOSSES[name]
    low, high = max(loss.lowest(Y), -1e3), min(loss.highest(Y), 1e3)
    for f in (low + part * (high - low), low, high, 0.0):
        again = loss.decode(loss.code_type(loss.encode(f)), Y)
        assert loss.lowest(Y) <= again <= loss.highest(Y)
        assert again == pytest.approx(f, rel=2e-5, abs=1e-4)
        if f in (loss.lowest(Y), loss.highest(Y), 0.0):
            assert again == f
