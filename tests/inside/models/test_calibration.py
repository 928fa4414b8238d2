"""Probabilities of greatest likelihood: of a convex cost nothing near the answer, and so nothing at all, is less."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from streamcut.calibration import platt, tempered
from streamcut.errors import BadInputError


def expect_least(cost, x: np.ndarray, scale: np.ndarray) -> None:
    """Among points that are 1e-3 to 1 away, in units of `scale`."""
    rng = np.random.default_rng(0)
    near = [x + scale * size * rng.standard_normal(len(x)) for size in (1e-3, 1e-2, 1e-1, 1.0) for _ in range(50)]
    assert cost(x) <= min(map(cost, near)) + 1e-9 * abs(cost(x))


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("scale", [0.01, 1.0, 300.0])
def test_two_numbers_of_two_classes(scale, separable):
    rng = np.random.default_rng(3)
    positive = np.append(rng.random(60) < 0.3, [True, False])
    scores = scale * (np.where(positive, 1.0, -1.0) + (0 if separable else 1.5) * rng.standard_normal(62))
    weights = rng.uniform(0.1, 4.0, 62)
    up, down = weights[positive].sum(), weights[~positive].sum()
    targets = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))

    def cost(AB):
        f = AB[0] * scores + AB[1]
        return float(weights @ (targets * np.logaddexp(0, f) + (1 - targets) * np.logaddexp(0, -f)))

    expect_least(cost, np.array(platt(scores, positive.astype(np.int64), weights)), np.array([1.0 / scale, 1.0]))


def test_a_temperature_with_offsets_of_several_classes():
    rng = np.random.default_rng(6)
    scores, target, u = rng.normal(size=(200, 3)), rng.integers(0, 3, 200), rng.integers(0, 3, 200).astype(float)
    scores[np.arange(200), target] += 1.0

    def cost(x):
        p = softmax(x[0] * scores + x[1:], axis=1)
        return -float(u @ np.log(p[np.arange(200), target])) + 0.5e-6 * float(x[1:] @ x[1:])

    a, b = tempered(scores, target.astype(np.int64), u)
    expect_least(cost, np.array([a, *b]), np.ones(4))
    with pytest.raises(BadInputError, match="two classes"):
        tempered(scores, np.ones(200, np.int64), u)
