"""Every loss of the tables against its definition, and what it states of its rounding, in 500 bits."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.optimum import precision
from reference.truth import row_loss as terms_of
from scipy.optimize import minimize_scalar

from streamcut.compiled import row_losses
from streamcut.foundation.rounding import gamma
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES
from streamcut.losses import joint_loss, row_loss
from streamcut.losses.loss import TargetScale
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.losses.smoothed import Smoothed

PARAMETERS = {"epsilon": 0.3, "delta": 0.7, "quantile": 0.3}
LOSSES = {name: row_loss(name, PARAMETERS, 3.0) for name in ROW_LOSSES}
Y = 3.0  # the positive label, a number, a count

every = pytest.mark.parametrize("name", LOSSES)
kinked = pytest.mark.parametrize("name", [name for name, loss in ROW_LOSSES.items() if loss.kinks])
joint = pytest.mark.parametrize("name", JOINT_LOSSES)
z_values = st.floats(-8.0, 8.0) | st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.3, -0.3, 0.7, -0.7])

# --- losses of one score ---


def domain(loss, most: float) -> tuple[float, float]:
    """The shares of the conjugate's domain, between ± most."""
    return max(loss.lowest(Y), -most), min(loss.highest(Y), most)


@every
@given(z=z_values, other=z_values)
def test_a_share_and_its_conjugate_touch_the_loss_and_are_below_it_elsewhere(name, z, other):
    loss = LOSSES[name]
    f = loss.dual(z, Y)
    rounding = 1e-12 * max(1.0, abs(f * z), abs(f * other))
    assert -f * z - loss.conjugate(f, Y) == pytest.approx(loss.value(z, Y), rel=1e-9, abs=rounding)
    assert -f * other - loss.conjugate(f, Y) <= loss.value(other, Y) * (1.0 + 1e-9) + rounding


@every
def test_the_conjugate_is_the_greatest_difference(name):
    loss = LOSSES[name]
    for f in np.linspace(*domain(loss, 20.0), 41):
        least = minimize_scalar(lambda z, f=f: f * z + loss.value(z, Y), bounds=(-60.0, 60.0), method="bounded").fun
        assert loss.conjugate(f, Y) == pytest.approx(-least, abs=2e-5, rel=1e-6)
    assert loss.conjugate(0.0, Y) == 0.0


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if loss.smooth])
@given(z=z_values)
def test_the_curvature_is_the_slope_of_the_slope(name, z):
    loss, step = LOSSES[name], 1e-6
    sides = [-(loss.dual(z + h, Y) - loss.dual(z, Y)) / h for h in (step, -step)]
    slack = 1e-4 * max(1.0, *sides)
    assert min(sides) - slack <= loss.curvature(loss.dual(z, Y), z, Y) <= max(sides) + slack


@every
@given(z=z_values, q=st.floats(1e-3, 1e3), part=st.floats(0.0, 1.0))
def test_a_coordinate_step_is_the_best(name, z, q, part):
    loss = LOSSES[name]
    low, high = domain(loss, 5.0)
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
    low, high = domain(loss, 1e3)
    for f in (low + part * (high - low), low, high, 0.0):
        again = loss.decode(loss.code_type(loss.encode(f)), Y)
        assert loss.lowest(Y) <= again <= loss.highest(Y)
        assert again == pytest.approx(f, rel=2e-5, abs=1e-4)
        assert again == f or f not in (loss.lowest(Y), loss.highest(Y), 0.0)


@kinked
@given(z=st.floats(-5, 5), width=st.floats(0.01, 3))
def test_a_width_at_kinks_averages_slopes_and_costs_a_quarter_of_it(name, z, width):
    loss = row_loss(name, PARAMETERS, 1.0)
    smoothed = Smoothed(loss, width)
    f = smoothed.dual(z, 0.0)
    assert f == pytest.approx((loss.value(z - width, 0.0) - loss.value(z + width, 0.0)) / (2.0 * width), abs=1e-9)
    assert loss.lowest(0.0) <= f <= loss.highest(0.0)
    assert -1e-12 <= loss.value(z, 0.0) + f * z + loss.conjugate(f, 0.0) <= 0.25 * width * loss.kinks() + 1e-12
    if min(abs(abs(z - loss.kink(j)) - width) for j in range(loss.kinks())) > 1e-5:
        step = (smoothed.dual(z - 1e-6, 0.0) - smoothed.dual(z + 1e-6, 0.0)) / 2e-6
        assert smoothed.curvature(0.0, z, 0.0) == pytest.approx(step, abs=1e-6)


# --- joint losses ---


@joint
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), K=st.integers(2, 12), power=st.floats(-3, 3), curvature=st.floats(-3, 4))
def test_slopes_of_joint_losses_touch_them_and_steps_are_the_best_of_the_simplex(name, seed, K, power, curvature):
    rng, loss = np.random.default_rng(seed), joint_loss(name)(K)
    z, t = 10.0**power * rng.standard_normal(K), int(rng.integers(K))
    slope, after, size = np.empty(K), np.empty(K), 1.0 + np.abs(z).max()
    loss.dual(z, t, slope)
    slope[t] = 1.0 - (slope.sum() - slope[t])

    def dual(p):
        return p @ z - z[t] + loss.constant(p, t)

    vertices = [*rng.dirichlet(np.full(K, 0.5), 8), *np.eye(K)]
    assert dual(slope) == pytest.approx(loss.value(z, t), abs=1e-12 * size)
    assert max(map(dual, vertices)) <= loss.value(z, t) + 1e-12 * size
    assert loss.constant(np.eye(K)[t], t) == 0.0

    p, q = rng.dirichlet(np.full(K, 0.5)), 10.0**curvature
    loss.step(p, z, q, t, after)
    assert after.min() >= 0.0
    assert after.sum() == pytest.approx(1.0, abs=1e-12)

    def gain(at):
        return dual(at) - 0.5 * q * ((at - p) ** 2).sum()

    for vertex in (p, *vertices):
        for part in (1e-3, 1.0):
            assert gain(after + part * (vertex - after)) <= gain(after) + 1e-9 * (q + size)


@joint
def test_joint_losses_of_large_scores(name):
    loss = joint_loss(name)(2)
    values = [loss.value(np.array(z), 0) for z in ([800.0, -800.0], [-800.0, 800.0])]
    assert values == [0.0, 1600.0 + (not loss.smooth)]


# --- rounding ---

OPTIONS = {"epsilon": 0.3, "delta": 0.7, "quantile": 0.9}


def rows(name: str):
    """(scores, targets): of every size, at kinks and at the best score, and as near to them as floats are."""
    rng = np.random.default_rng(3)
    kinks = np.array([0.0, 1.0, OPTIONS["epsilon"], -OPTIONS["epsilon"], OPTIONS["delta"], 1.0 - OPTIONS["quantile"]])
    if ROW_LOSSES[name].targets == "labels":
        y = rng.choice([-1.0, 1.0], 600)
        best, largest = y * rng.choice(kinks, 600), 2.8
    elif name == "poisson":
        y = rng.choice([0.0, 1.0, 2.0, 5.0, 1.0 + 1e-9, 1e-300, 1e6, 123.4], 600) * rng.choice([1.0, 1.0 + 2.0**-52], 600)
        best, largest = np.log(np.where(y > 0.0, y, 1.0)), 2.0
    else:
        y = rng.choice([-1.0, 1.0], 600) * 10.0 ** rng.uniform(-8, 8, 600)
        best, largest = y + rng.choice(kinks, 600), 8.0
    return best + rng.choice([-1.0, 0.0, 1.0, 1.0], 600) * 10.0 ** rng.uniform(-17, largest, 600), y


def exactly(name: str, s: float, y: float) -> arb:
    """An enclosure of the loss."""
    return sum((term.value([arb(s)]) for term in terms_of(name, OPTIONS, [arb(1)], y, arb(1))), arb(0))


@every
def test_values_are_off_by_what_is_stated(name):
    loss, (scores, targets) = row_loss(name, OPTIONS, 1.0), rows(name)
    risk = PointwiseRisk(loss)
    near = 2.0 * gamma(2) * (np.abs(scores) + risk.target_sizes(targets))  # of z: its difference and what is subtracted
    values = risk.values(targets, scores)
    with precision():
        for s, y, value, moved in zip(scores.tolist(), targets.tolist(), values.tolist(), near.tolist(), strict=True):
            share = abs(loss.dual(loss.sign(y) * s - loss.offset(y), y))
            slope = loss.steepest(share, moved, TargetScale(1.0, min(y, 0.0), max(y, 0.0), abs(y), 1.0))
            stated = gamma(loss.rounding.value) * value + gamma(loss.rounding.near_one) + slope * moved + 1e-300
            assert not abs(exactly(name, s, y) - value) > stated, (s, y)


@every
def test_constants_are_too_large_by_no_more_than_what_is_stated(name):
    loss, (scores, targets) = row_loss(name, OPTIONS, 1.0), rows(name)
    signed, constants, sizes = (numbers.tolist() for numbers in PointwiseRisk(loss).duals(targets, scores))
    with precision():
        for i, (s, y) in enumerate(zip(scores.tolist(), targets.tolist(), strict=True)):
            stated = gamma(loss.rounding.conjugate) * sizes[i] + 1e-300
            for at in (s, float(np.nextafter(s, np.inf)), float(np.nextafter(s, -np.inf)), 0.5 * s, 2.0 * s):
                assert not exactly(name, at, y) < constants[i] - arb(signed[i]) * at - stated, (s, y, at)


@pytest.mark.parametrize(("weights", "infinite"), [((1.0, 1.0, 1.0), True), ((1.0, 0.0, 1.0), False)])
def test_an_infinite_loss_is_infinite_and_counts_only_with_a_weight(weights, infinite):
    loss, y, sums = PointwiseRisk(row_loss("poisson", {})).loss, np.array([1.0, 2.0, 0.0]), np.zeros(3)
    row_losses.margins(loss, y, np.array(weights), np.array([0.5, 800.0, 1.0]), sums)
    total = sums[0] + sums[1]
    assert np.isinf(total) if infinite else np.isfinite(total)
    assert not np.isnan(sums).any()
