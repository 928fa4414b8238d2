"""Every joint loss of the table against its definition: slopes, constants, steps, what it says of itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.compiled import multiclass
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


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(-1, 1))
def test_along_a_line(name, seed, K, power):
    rng, loss, z, t = drawn(name, seed, K, power)
    there, h, k = z + rng.standard_normal(K), 1e-4, float(rng.uniform(0.0, 2.0))
    at, ahead = (loss.value(z + step * (there - z), t) for step in (k, k + h))
    slope, beyond = (loss.slope(z, there, step, t) for step in (k, k + h))
    assert slope - 1e-6 <= (ahead - at) / h <= beyond + 1e-6
    if not loss.smooth:
        lines = [loss.margin(k, t) + z[k] - z[t] for k in range(K)]
        assert loss.value(z, t) == pytest.approx(max(lines), abs=1e-14 * (1.0 + np.abs(z).max()))
        assert loss.margin(t, t) == 0.0


def test_what_it_says_of_itself(name):
    loss = joint_loss(name)(5)
    assert loss.value(np.zeros(5), 2) == pytest.approx(loss.at_zero)
    assert loss.rounding.value > 0
    if not loss.bounded():  # every class has some share, wherever the scores are
        assert shares_of(loss, np.array([3.0, 0.0, -3.0, 1.0, 0.0]), 0).min() > 0.0


@settings(max_examples=20, deadline=None)
@given(*CASES)
def test_kernels_compute_what_python_does(name, seed, K, power):
    rng, loss, _, _ = drawn(name, seed, K, power)
    z, target = 10.0**power * rng.standard_normal((6, K)), rng.integers(0, K, 6)
    found = np.empty(6)
    assert multiclass.losses(loss, target, z, found) == -1
    for i, t in enumerate(target.tolist()):
        assert found[i] == pytest.approx(loss.value(z[i], t), rel=1e-12, abs=1e-15)


def test_losses_of_large_scores(name):
    loss, found = joint_loss(name)(2), []
    for z in ([800.0, -800.0], [-800.0, 800.0]):
        found.append(loss.value(np.array(z), 0))
    assert found == [0.0, 1600.0 + (not loss.smooth)]
