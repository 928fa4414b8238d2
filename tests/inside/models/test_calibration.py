"""Probabilities of greatest likelihood: nothing that other optimisers find is better."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import softmax

from streamcut.calibration import platt, tempered
from streamcut.errors import BadInputError


def kept(scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows as `platt` and `tempered` take them: scores (n,) or (n, K), classes (bool, or numbers) and weights (n)."""
    return scores, truth.astype(np.int64), weights


def targets(positive, weights):
    """Platt's targets, and the weights of the two classes."""
    up, down = weights[positive].sum(), weights[~positive].sum()
    return np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))


def value(AB, scores, positive, weights):
    f = AB[0] * scores + AB[1]
    t = targets(positive, weights)
    return float(weights @ (t * np.logaddexp(0, f) + (1 - t) * np.logaddexp(0, -f)))


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 300.0]), st.booleans())
def test_nothing_beats_it(seed, scale, separable):
    rng = np.random.default_rng(seed)
    positive = np.append(rng.random(60) < 0.3, [True, False])
    scores = scale * (np.where(positive, 1.0, -1.0) + (0 if separable else 1.5) * rng.standard_normal(62))
    weights = rng.uniform(0.1, 4.0, 62)
    found = value(platt(*kept(scores, positive, weights)), scores, positive, weights)
    start = np.array([0.0, np.log((weights[~positive].sum() + 1) / (weights[positive].sum() + 1))])
    best = minimize(value, start * [1.0 / scale, 1.0], (scores, positive, weights), method="Nelder-Mead",
                    options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000})  # fmt: skip
    assert found <= best.fun + 1e-6 * (1 + best.fun)


def test_scores_and_offsets_are_those_of_greatest_likelihood():
    rng = np.random.default_rng(6)
    scores, target, u = rng.normal(size=(200, 3)), rng.integers(0, 3, 200), rng.integers(0, 3, 200).astype(float)
    scores[np.arange(200), target] += 1.0

    def cost(x: np.ndarray) -> float:
        p = softmax(x[0] * scores + x[1:], axis=1)
        return -float(u @ np.log(p[np.arange(200), target])) + 0.5e-6 * float(x[1:] @ x[1:])

    a, b = tempered(*kept(scores, target, u))
    reached, best = cost(np.array([a, *b])), minimize(cost, np.zeros(4), method="Nelder-Mead", options={"maxiter": 4000}).fun
    assert reached <= best + 1e-6
    with pytest.raises(BadInputError, match="two classes"):
        tempered(*kept(scores, np.ones(200, np.int64), u))
