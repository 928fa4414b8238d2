"""An intercept that costs nothing: its interval, and master problems that price it."""

from __future__ import annotations

import numpy as np
import pytest

from streamcut.bundle import priced_master
from streamcut.bundle.bundle import Bundle
from streamcut.bundle.intercept import Interval, Nearby
from streamcut.bundle.penalty import FreeIntercept
from streamcut.foundation.rounding import CutError


def test_nothing_is_proved_as_long_as_nothing_bounds_the_intercept():
    bundle = Bundle(2, 10.0, 4, penalty=FreeIntercept())
    bundle.add(np.array([0.5, -0.25, 1.0]), 0.75, CutError(0.0, 0.0))
    found = bundle.solve(1e-9, near=Interval(-1.0, 1.0))
    assert found.lower_bound == found.taken == 0.0
    bundle.penalty = bundle.penalty.known(-0.5, 0.5)
    assert bundle.solve(1e-9, near=Interval(-1.0, 1.0)).lower_bound > 0.0


@pytest.mark.parametrize("primal", [3.0, 40.0])  # a ball that ends before −C̄a, and one that holds it
def test_an_intercept_is_no_further_than_a_cut_allows_and_hardly_less(primal):
    """½‖w‖² + C̄(⟨a, w⟩ + pull·t + b) ≤ F* ≤ primal for some w of the ball ½‖w − near‖² ≤ primal − bound."""
    random = np.random.default_rng(4)
    near, a, c_bar, pull, b = random.normal(size=5), random.normal(size=5), 1.5, 0.7, 0.2
    radius, away = np.sqrt(2.0 * (primal - 2.0)), np.linalg.norm(near + c_bar * a)
    assert (away > radius) == (primal == 3.0)
    w = -c_bar * a if away <= radius else near - radius * (near + c_bar * a) / away
    expected = (primal - 0.5 * w @ w - c_bar * (a @ w + b)) / (c_bar * pull)
    found = Nearby(c_bar, near, primal, 2.0).farthest(pull, a @ a, a @ near, b, CutError(0.0, 0.0))
    assert expected <= found <= expected + 1e-6 * abs(expected)


def priced(seed: int) -> tuple:
    """Cuts (the zero cut first), their pulls, an interval, and the gap of the master problem at β and c, by its formula."""
    rng = np.random.default_rng(seed)
    A, b, pulls = rng.standard_normal((7, 4)), rng.standard_normal(7), 10.0 ** rng.integers(-2, 3) * rng.standard_normal(7)
    A[0], b[0], pulls[0] = 0.0, 0.0, 0.0
    total, within = 10.0 ** rng.integers(-1, 3), Interval(*np.sort(rng.normal(scale=5.0, size=2)))

    def gap(beta, c):
        w = -beta @ A
        primal = 0.5 * w @ w + total * np.max(b + A @ w + pulls * c)
        return primal - ((b + pulls * within.middle) @ beta - 0.5 * w @ w - within.half * abs(pulls @ beta))

    return A @ A.T, b, pulls, total, within, gap


@pytest.mark.parametrize("seed", range(12))
def test_a_free_intercept_is_priced_by_its_interval(monkeypatch, seed):
    gram, b, pulls, total, within, gap = priced(seed)
    beta = np.zeros(7)
    told, c = priced_master.solve_priced(gram, b, pulls, total, beta, within)
    assert within.low - 1e-12 <= c <= within.high + 1e-12
    assert beta.min() >= 0.0
    assert beta.sum() == pytest.approx(total)
    size = total * (1.0 + np.abs(gram).max() * total + np.abs(pulls).max() * 20.0)
    assert gap(beta, c) <= told + 1e-14 * size
    assert told <= 1e-8 * size

    poor = np.random.default_rng(seed).dirichlet(np.ones(7))
    monkeypatch.setattr(priced_master, "interior_point", lambda *_: (np.append(poor, [0.0, 0.0]), np.array([0.0, 0.0])))
    told, c = priced_master.solve_priced(gram, b, pulls, total, beta, within)
    assert c == within.middle
    assert told == pytest.approx(gap(beta, c), rel=1e-9)
