"""Task one-class: Schölkopf's problem by cutting planes, next to LIBSVM (scikit-learn), with a certificate for its optimum."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.one_class import mean_of_lowest, rows

import streamcut
from streamcut.bundle.one_class import FreeOffset, without_offset
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import CutError
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.one_class import ordered


@pytest.mark.parametrize("nu", [0.001, 0.1, 0.37, 1.0 - 1e-13, 1.0])
@pytest.mark.parametrize("pull", [-0.2, -1e-14, 0.0, 1e-14, 0.3])
def test_any_shares_become_a_cut_of_the_risk(nu, pull):
    """For any weights the risk is at least what the cut says, whatever the shares added up to."""
    rng, n, constant = np.random.default_rng(3), 50, 0.5
    X = rng.standard_normal((n, 4)) + 1.0
    mean = min(1.0, max(0.0, nu - pull))  # of the shares
    f = np.clip(rng.random(n), 0.0, 1.0)
    f = f * mean / f.mean() if mean <= f.mean() else 1.0 - (1.0 - f) * (1.0 - mean) / (1.0 - f.mean())
    exact = CutError(1e-15, 1e-15)
    ones = Cut(np.append(-X.mean(axis=0), constant * (nu - 1.0)), 1.0, exact)
    penalty = FreeOffset.of(ones, nu, constant, 1.0, 9.0)
    a = -(f @ X) / n
    b, error = penalty.feasible(a, float(f.mean()), CutError(1e-13, 1e-13), constant * (nu - float(f.mean())))
    a, b, error = without_offset(a, b, error, nu, 1e6)
    assert error.slope < 1e-3 or nu < 1.0 - 1e-9
    for w in 10.0 ** rng.uniform(-3, 2, (200, 1)) * rng.standard_normal((200, 4)):
        risk = max(0.0, 1.0 - mean_of_lowest(X @ w, nu))
        doubt = error.slope * np.linalg.norm(w) + error.offset
        assert a @ w + b <= risk + doubt + 1e-12 * (1.0 + np.abs(X @ w).max())


def test_order_statistics_are_those_of_a_sort():
    z = np.random.default_rng(4).standard_normal(5000).round(2)
    z[:7] = [-0.0, 0.0, np.inf, -1e-320, 1e300, -1e300, 5e-324]
    with Runner(Feed(streamcut.rows(rows(5000), np.ones(5000)), frozenset([0])), Lanes((0, 1234, 5000)), 1) as runner:
        runner.row_state.add("z")
        runner.row_state.arrays["z"][:] = z
        for place in (0, 1, 77, 2500, 4998, 4999):
            assert ordered(runner, "z", place) == np.sort(z)[place]
