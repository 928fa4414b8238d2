"""Every joint loss of the table against its definition: slopes, constants, steps, what it says of itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.loss_table import JOINT_LOSSES
from streamcut.losses import joint_loss

pytestmark = pytest.mark.parametrize("name", JOINT_LOSSES)
CASES = st.integers(0, 10**6), st.integers(2, 12), st.floats(-3, 3)


def drawn(name, seed, K, power):
    """(generator, loss, scores, target)"""
    rng = np.random.default_rng(seed)
    return rng, joint_loss(name)(K), 10.0**power * rng.standard_normal(K), int(rng.integers(K))


def shares_of(loss, z, t):
    """The shares of the slope at z, summing to 1."""
    p = np.empty(len(z))
    loss.dual(z, t, p)
    p[t] = 0.0
    p[t] = 1.0 - p.sum()
    return p


def dual(loss, p, s, t):
    """⟨p − e_t, s⟩ + c(p)."""
    return p @ s - s[t] + loss.constant(p, t)


@settings(max_examples=60, deadline=None)
@given(*CASES)
def test_a_slope_touches_the_loss_and_every_other_point_of_the_simplex_is_below(name, seed, K, power):
    rng, loss, z, t = drawn(name, seed, K, power)
    value, size = loss.value(z, t), 1.0 + np.abs(z).max()
    assert value >= 0.0
    assert dual(loss, shares_of(loss, z, t), z, t) == pytest.approx(value, abs=1e-12 * size)
    for p in (*rng.dirichlet(np.full(K, 0.5), 8), *np.eye(K)):
        assert dual(loss, p, z, t) <= value + 1e-12 * size
    assert loss.constant(np.eye(K)[t], t) == 0.0


@settings(max_examples=60, deadline=None)
@given(*CASES, st.floats(-3, 4))
def test_a_step_is_the_best_of_the_simplex(name, seed, K, power, curvature):
    rng, loss, s, t = drawn(name, seed, K, power)
    p, q, found = rng.dirichlet(np.full(K, 0.5)), 10.0**curvature, np.empty(K)
    loss.step(p, s, q, t, found)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0, abs=1e-12)

    def gain(at):
        return dual(loss, at, s, t) - 0.5 * q * ((at - p) ** 2).sum()

    near = 1e-9 * (1.0 + q + np.abs(s).max())
    for other in (p, *rng.dirichlet(np.full(K, 0.5), 8), *np.eye(K)):
        for part in (1e-3, 1.0):
            assert gain(found + part * (other - found)) <= gain(found) + near


def test_losses_of_large_scores(name):
    loss, found = joint_loss(name)(2), []
    for z in ([800.0, -800.0], [-800.0, 800.0]):
        found.append(loss.value(np.array(z), 0))
    assert found == [0.0, 1600.0 + (not loss.smooth)]
