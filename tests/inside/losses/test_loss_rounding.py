"""What losses state of their rounding is true, in exact arithmetic: of values, and of what shares add to bounds."""

from fractions import Fraction

import numpy as np
import pytest
from reference.exact import LOSSES

from streamcut.compiled import row_losses
from streamcut.foundation.rounding import gamma
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.losses.loss import TargetScale
from streamcut.losses.pointwise import PointwiseRisk

OPTIONS = {"epsilon": 0.3, "delta": 0.7, "quantile": 0.9}


def rows(name: str):
    """(scores, targets): of every size, at kinks and at the best score, and as near to them as floats are."""
    rng = np.random.default_rng(3)
    kinks = np.array([0.0, 1.0, OPTIONS["epsilon"], -OPTIONS["epsilon"], OPTIONS["delta"], 1.0 - OPTIONS["quantile"]])
    if ROW_LOSSES[name].targets == "labels":
        y = rng.choice([-1.0, 1.0], 600)
        best = y * rng.choice(kinks, 600)
        sizes = 10.0 ** rng.uniform(-17, 2.8, 600)
    elif name == "poisson":
        y = rng.choice([0.0, 1.0, 2.0, 5.0, 1.0 + 1e-9, 1e-300, 1e6, 123.4], 600) * rng.choice([1.0, 1.0 + 2.0**-52], 600)
        best = np.log(np.where(y > 0.0, y, 1.0))
        sizes = 10.0 ** rng.uniform(-17, 2.0, 600)
    else:
        y = rng.choice([-1.0, 1.0], 600) * 10.0 ** rng.uniform(-8, 8, 600)
        best = y + rng.choice(kinks, 600)
        sizes = 10.0 ** rng.uniform(-17, 8, 600)
    return best + rng.choice([-1.0, 0.0, 1.0, 1.0], 600) * sizes, y


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_values_are_off_by_what_is_stated(name):
    loss, known = row_loss(name, OPTIONS, 1.0), {option: Fraction(value) for option, value in OPTIONS.items()}
    risk, (scores, targets) = PointwiseRisk(loss), rows(name)
    near = 2.0 * gamma(2) * (np.abs(scores) + risk.target_sizes(targets))  # of z: its difference and what is subtracted
    for s, y, value, moved in zip(scores.tolist(), targets.tolist(), risk.values(targets, scores), near.tolist(), strict=True):
        low, high = LOSSES[name](Fraction(s), Fraction(y), known)
        share = abs(loss.dual(loss.sign(y) * s - loss.offset(y), y))
        slope = loss.steepest(share, moved, TargetScale(1.0, min(y, 0.0), max(y, 0.0), abs(y), 1.0))
        stated = gamma(loss.rounding.value) * float(value) + gamma(loss.rounding.near_one) + slope * moved + 1e-300
        assert low - Fraction(stated) <= Fraction(float(value)) <= high + Fraction(stated), (s, y)


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_constants_are_too_large_by_no_more_than_what_is_stated(name):
    loss, known = row_loss(name, OPTIONS, 1.0), {option: Fraction(value) for option, value in OPTIONS.items()}
    scores, targets = rows(name)
    signed, constants, sizes = PointwiseRisk(loss).duals(targets, scores)
    for i, (s, y) in enumerate(zip(scores.tolist(), targets.tolist(), strict=True)):
        stated = Fraction(gamma(loss.rounding.conjugate) * float(sizes[i]) + 1e-300)
        for at in (s, np.nextafter(s, np.inf), np.nextafter(s, -np.inf), 0.5 * s, 2.0 * s):
            most = LOSSES[name](Fraction(float(at)), Fraction(y), known)[1]
            assert most >= Fraction(float(constants[i])) - Fraction(float(signed[i])) * Fraction(float(at)) - stated, (s, y, at)


@pytest.mark.parametrize(("weights", "infinite"), [((1.0, 1.0, 1.0), True), ((1.0, 0.0, 1.0), False)])
def test_an_infinite_loss_is_infinite_and_counts_only_with_a_weight(weights, infinite):
    loss, y, sums = PointwiseRisk(row_loss("poisson", {})).loss, np.array([1.0, 2.0, 0.0]), np.zeros(3)
    row_losses.margins(loss, y, np.array(weights), np.array([0.5, 800.0, 1.0]), sums)
    total = sums[0] + sums[1]
    assert np.isinf(total) if infinite else np.isfinite(total)
    assert not np.isnan(sums).any()
