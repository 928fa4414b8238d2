"""Every loss of the table against its definition."""

from __future__ import annotations

import importlib
import pkgutil
import typing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.linear_solver import problem
from scipy.optimize import minimize_scalar

import streamcut
import streamcut.compiled
from streamcut import train
from streamcut.compiled import loss as methods
from streamcut.errors import BadInputError, UsageError
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk

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
def test_rows_at_rest_come_after_all_free_ones_in_a_cache(name):
    """So a cache that takes free rows alone needs no entries of rows at rest (streamcut.execution.cluster)."""
    loss, rests = LOSSES[name], 0
    for f in shares_of(loss):
        share = loss.decode(loss.encode(f), Y)
        for z in (*np.linspace(-8.0, 8.0, 65), 0.3, -0.3, 0.7, -0.7):
            if loss.stays(share, z, 0.0, Y):
                rests += 1
                assert loss.priority(share, z, 1.0, Y) >= loss.free_below
    assert rests > 0 or loss.smooth


def test_no_record_of_kernels_has_a_field_with_the_name_of_a_method():
    declared = set(methods._METHODS)
    assert {"value", "dual", "step", "encode"} <= declared
    for info in pkgutil.iter_modules(streamcut.compiled.__path__):
        module = importlib.import_module(f"streamcut.compiled.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, tuple) and typing.get_type_hints(value):
                assert not declared & set(value._fields), value


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


@every
def test_values_of_many_scores_are_those_of_each(name):
    loss, scores, y = LOSSES[name], np.linspace(-3.0, 3.0, 7), np.array([3.0, 1.0] * 4)[:7]
    expected = [loss.value(loss.sign(t) * s - loss.offset(t), t) for s, t in zip(scores, y, strict=True)]
    np.testing.assert_allclose(PointwiseRisk(loss).values(y, scores), expected, rtol=1e-14)


def test_a_loss_that_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="'absolute' is not a loss of single rows; those are hinge"):
        row_loss("absolute", {})
    X, y, _ = problem(30)
    with pytest.raises(UsageError, match="'squared' is not one of task binary, which has hinge"):
        train(streamcut.rows(X, y), task="binary", loss="squared")
    with pytest.raises(UsageError, match="'logistic' is not one of task regression, which has squared, huber"):
        train(streamcut.rows(X, y), task="regression", loss="logistic")
    with pytest.raises(UsageError, match="delta: loss 'squared' does not have it"):
        train(streamcut.rows(X, y), task="regression", delta=2.0)
    with pytest.raises(BadInputError, match=r"row 2: its target is -1; loss 'poisson' takes targets from 0 to 1e\+100"):
        train(streamcut.rows(X[:3], [1.0, -1.0, -3.0]), task="regression", loss="poisson")
