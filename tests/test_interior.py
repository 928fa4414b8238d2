"""Interior points for cached rows: the gap that they leave, in one lane and several, and what they save."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.compiled import dual, interior, records
from streamcut.execution.row_cache import CacheSize
from streamcut.io.memory import MemoryDataset
from streamcut.jobs.binary import BinaryJob
from streamcut.losses.hinge import Hinge
from streamcut.oracles.dual import ascent
from streamcut.oracles.dual.interior import solve_cached, suits
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.training import train
from streamcut.verification import verify


class Lanes:
    """Runs passes over the caches of lanes, of whose other rows nobody asks."""

    def run(self, work):
        total = None
        for first_row in work.caches:
            sums = work.begin()
            work.finish(sums, {}, first_row)
            total = sums if total is None else work.merge(total, sums)
        return total, None


def cached(X, y, weight, shares, lanes):
    """{first row: a cache of all rows of a lane}, with these shares."""
    caches, codes = {}, Hinge().encode
    for rows in np.array_split(np.arange(len(y)), lanes):
        part, first_row = X[rows], int(rows[0])
        cache = caches[first_row] = LossCache(CacheSize(len(rows) + 1, part.nnz + 1, "int32", "float64"), Hinge())
        given = records.Rows(part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data, y[rows], weight[rows])
        coded = np.array([[codes(share)] for share in shares[rows]], np.uint16)
        keys, block = np.zeros(len(rows)), np.zeros(len(rows), np.int64)

        def offered(first, *buffers, given=given, keys=keys, coded=coded, rows=rows, block=block):
            return dual.offer(Hinge(), first, given, keys, coded, np.zeros(1, np.int64), 1.0, rows, block, *buffers)

        cache.fill(offered, len(rows))
    return caches


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-2, 1.0, 1e3]), st.sampled_from([1, 3]), st.booleans())
def test_cached_rows_are_left_the_gap_that_was_asked_for(seed, C, lanes, far):
    rng = np.random.default_rng(seed)
    n, d = 60, 7
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    X = X[np.diff(X.indptr) > 0]
    n = X.shape[0]
    y, weight, shares = rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 3.0, n), rng.choice([0.0, 1.0], n)
    A, c = np.hstack([X.toarray(), np.ones((n, 1))]) * y[:, None], C * weight
    rest = rng.standard_normal(d + 1)
    w = rest + A.T @ (c * shares)
    enough = 1e-5 * c.sum()
    caches = cached(X, y, weight, shares, lanes)
    near = 1e3 * rng.standard_normal(d + 1) if far else w
    step = solve_cached(Lanes(), caches, w, near, C, 1.0, enough, False)
    after = np.concatenate([cache._share[: cache.n] for cache in caches.values()])
    assert (after >= 0.0).all()
    assert (after <= 1.0).all()
    v = rest + A.T @ (c * after)
    np.testing.assert_allclose(w + step.delta, v, rtol=1e-9, atol=1e-9 * np.abs(v).max() + 1e-9 * np.abs(w).max())
    np.testing.assert_allclose(step.gain, c @ (after - shares), rtol=1e-9, atol=1e-12 * c.sum())
    u = v - rest
    gap = 0.5 * u @ u + c @ np.maximum(0.0, 1.0 - A @ v) - (c @ after - 0.5 * u @ u - rest @ u)
    assert gap <= 4.0 * enough  # at v; the one that was promised is at another w


def test_a_factor_solves_and_what_is_not_definite_is_seen():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((6, 4))
    matrix, vector = root @ root.T, rng.standard_normal(6)
    lower, found = np.tril(matrix), vector.copy()
    assert interior.factor(lower)
    interior.solve(lower, found)
    np.testing.assert_allclose((np.eye(6) + matrix) @ found, vector, rtol=1e-10)
    for wrong in (np.nan, np.inf, -2.0):
        assert not interior.factor(np.diag([1.0, wrong]))


def test_they_are_for_hinges_and_few_features():
    statistics = MemoryDataset(np.ones((4, 3)), np.array([1.0, -1.0, 1.0, -1.0])).manifest.statistics
    assert suits(Hinge(), statistics, 4)
    assert not suits(Hinge(), statistics, 5000)


def separable(rows=600, features=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, features)) * np.geomspace(0.1, 3.0, features)
    return MemoryDataset(X, np.where(X @ rng.standard_normal(features) + 0.1 * rng.standard_normal(rows) > 0.0, 1.0, -1.0))


@pytest.mark.parametrize(("lanes", "most"), [(1, 22), (8, 6)])
def test_a_large_cost_takes_few_passes_in_any_number_of_lanes(lanes, most):
    data = separable()
    model = train(data, C=1e4, solver="bundle-dca", row_cache="50%", lanes=lanes, scheduler="sync", max_passes=60)
    assert model.certificate.converged
    assert model.history[-1]["passes"] <= most
    assert verify(model, data).consistent


def hard():
    """A sum of features of very different size decides; few rows are far from the boundary."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 12)) * np.geomspace(0.02, 20.0, 12)
    return MemoryDataset(X, np.where(X @ np.geomspace(20.0, 0.02, 12) + 3.0 * rng.standard_normal(400) > 0.0, 1.0, -1.0))


@pytest.mark.parametrize(("C", "solved"), [(1e-4, False), (100.0, True)])
def test_one_lane_solves_at_once_where_accelerated_passes_are_slow(C, solved, monkeypatch):
    found = []
    monkeypatch.setattr(ascent, "solve_cached", lambda *given: found.append(given[-1]) or solve_cached(*given))
    monkeypatch.setattr(BinaryJob, "warm_up", lambda *_: None)
    model = train(hard(), C=C, solver="bundle-dca", row_cache="100%", lanes=1, scheduler="sync", max_passes=100)
    assert model.certificate.converged
    assert model.history[-1]["passes"] <= 30
    assert bool(found) == solved


def test_rows_too_long_for_squares_leave_numbers():
    X, y = sp.csr_array(np.array([[1e160, 1.0], [1.0, -1e160]])), np.array([1.0, -1.0])
    caches = cached(X, y, np.ones(2), np.array([1.0, 0.0]), 1)
    with np.errstate(all="ignore"):
        solve_cached(Lanes(), caches, np.array([1e160, 1.0, 1.0]), np.zeros(3), 1.0, 1.0, 1e-3, False)
    (cache,) = caches.values()
    assert np.isfinite(cache._share[: cache.n]).all()
