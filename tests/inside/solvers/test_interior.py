"""Interior points for cached rows: the gap that they leave, for losses with kinks, and what they save."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import streamcut
from streamcut import train
from streamcut.losses.epsilon_insensitive import EpsilonInsensitive
from streamcut.losses.hinge import Hinge
from streamcut.losses.quantile import Quantile
from streamcut.oracles import interior
from streamcut.oracles.interior import solve_rows

pytestmark = pytest.mark.smoke


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([1e-2, 1.0, 1e3]),
    st.sampled_from([Hinge(), EpsilonInsensitive(0.3), EpsilonInsensitive(0.0), Quantile(0.2)]),
    st.booleans(),
)
def test_cached_rows_are_left_the_gap_that_was_asked_for(seed, C, loss, far):
    rng = np.random.default_rng(seed)
    n, d = 60, 7
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X = X[np.diff(X.indptr) > 0]
    n = X.shape[0]
    y, weight = rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 3.0, n)
    if loss.targets == "numbers":
        y = 3.0 * rng.standard_normal(n)
    shares = rng.choice([loss.lowest(0.0), loss.highest(0.0)], n)
    sign, offset, c = np.array([loss.sign(each) for each in y]), np.array([loss.offset(each) for each in y]), C * weight
    A = np.hstack([X.toarray(), np.ones((n, 1))]) * sign[:, None]
    rest = rng.standard_normal(d + 1)
    w = rest + A.T @ (c * shares)
    enough = 1e-5 * c.sum()
    after, step = solve_rows(loss, A, c, offset, shares, w, 1e3 * rng.standard_normal(d + 1) if far else w, enough)
    assert (after >= loss.lowest(0.0)).all()
    assert (after <= loss.highest(0.0)).all()
    v = rest + A.T @ (c * after)
    np.testing.assert_allclose(w + step.delta, v, rtol=1e-9, atol=1e-9 * np.abs(v).max() + 1e-9 * np.abs(w).max())

    def constants(shares):
        return c @ [loss.constant(*each) for each in zip(shares, y, strict=True)]

    def primal(w):
        return 0.5 * (w - rest) @ (w - rest) + c @ [loss.value(*each) for each in zip(A @ w - offset, y, strict=True)]

    np.testing.assert_allclose(step.gain, constants(after) - constants(shares), rtol=1e-9, atol=1e-9 * c.sum())
    dual_value = constants(after) - 0.5 * (v - rest) @ (v - rest) - rest @ (v - rest)
    assert primal(v) - dual_value <= 4.0 * enough + 1e-11 * primal(v)
    assert primal(step.point) - dual_value <= 4.0 * enough + 1e-11 * primal(v)


def hard():
    """A sum of features of very different size decides; few rows are far from the boundary."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 12)) * np.geomspace(0.02, 20.0, 12)
    return streamcut.rows(X, np.where(X @ np.geomspace(20.0, 0.02, 12) + 3.0 * rng.standard_normal(400) > 0.0, 1.0, -1.0))


@pytest.mark.parametrize(("C", "wanted"), [(1e-4, False), (100.0, True)])
def test_they_are_asked_where_accelerated_passes_are_slow(C, wanted, monkeypatch):
    found = []
    monkeypatch.setattr(interior, "solve_rows", lambda *given: found.append(given) or solve_rows(*given))
    model = train(hard(), C=C, solver="bundle-dca", row_cache="100%", lanes=1, scheduler="sync", max_passes=100)
    assert model.certificate.converged
    assert model.history[-1]["passes"] <= 14
    assert bool(found) == wanted


def test_rows_too_long_for_squares_leave_numbers():
    A, c, before = np.array([[1e160, 1.0, 1.0], [-1.0, 1e160, -1.0]]), np.ones(2), np.array([1.0, 0.0])
    shares, _ = solve_rows(Hinge(), A, c, np.zeros(2), before, np.array([1e160, 1.0, 1.0]), np.zeros(3), 1e-3)
    assert np.isfinite(shares).all()
