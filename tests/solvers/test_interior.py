"""Interior points for cached rows: the gap that they leave, for losses with kinks, and what they save."""

import numpy as np
import pytest

import streamcut
from streamcut import train, verify

pytestmark = pytest.mark.smoke


def separable(rows=600, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * np.geomspace(0.1, 3.0, features)
    return streamcut.rows(X, np.where(X @ rng.standard_normal(features) + 0.1 * rng.standard_normal(rows) > 0.0, 1.0, -1.0))


@pytest.mark.parametrize(("lanes", "most"), [(1, 16), (8, 6)])
def test_a_large_cost_takes_few_passes_in_any_number_of_lanes(lanes, most):
    data = separable()
    model = train(data, C=1e4, solver="bundle-dca", row_cache="50%", lanes=lanes, scheduler="sync", max_passes=60)
    assert model.certificate.converged
    assert model.history[-1]["passes"] <= most
    assert verify(model, data).consistent
