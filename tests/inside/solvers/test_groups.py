"""Groups of columns, the classes of a joint loss: sums are those of the shares that rows remember, up to the errors stated."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.softmax import LABELS, problem
from reference import softmax as slow

import streamcut
from streamcut.compiled import groups
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.losses.columns import Column, ColumnsRisk
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.losses.softmax import Softmax
from streamcut.oracles.columns import ColumnsOracle, Start
from streamcut.oracles.columns_cache import ColumnsCache

pytestmark = pytest.mark.smoke
losses = pytest.mark.parametrize("kind", [CrammerSinger, Softmax])


def dense(X, bias):
    X = X.toarray()
    return np.hstack([X, np.full((len(X), 1), bias)])


def oracle_of(runner, kind, columns, bias=1.0, size=None):
    return ColumnsOracle(runner, ColumnsRisk(PointwiseRisk(kind(4)), LABELS), columns, bias=bias, size=size, sweeps=3)


def start(rng, oracle, stretch, enough=0.0):
    W, running = (rng.standard_normal((oracle.dimension, 4 * len(oracle.columns))) for _ in range(2))
    ones = np.ones(len(oracle.columns))
    return Start(W, running, stretch * ones, enough * ones)


@losses
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_sums_are_those_of_the_shares(kind, seed, ones):
    """Of two groups that differ in C: wherever passes begin, U is Σ u (e_t − p) x of the shares p in the codes, and b theirs."""
    X, y, u = problem(60, seed=seed % 7, weights=True)
    if ones:
        X.data[:] = 1.0
    data, target, rng = streamcut.rows(X, y, weight=u), np.searchsorted(LABELS, y), np.random.default_rng(seed)
    size = CacheSize.planned(data.manifest, 20_000, 2, ColumnsCache.row_bytes(8))
    with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = oracle_of(runner, kind, [Column(1.0), Column(7.0)], size=size)
        U, b = np.zeros((oracle.dimension, 8)), np.zeros((1, 2))
        for number in range(3):
            sums = oracle.ascend(start(rng, oracle, 0.5**number))
            U, b = U + sums.U, b + sums.b
            for g in range(2):
                p = runner.rows["codes"][:, oracle._half, 4 * g : 4 * g + 4].astype(np.float64)
                assert (p[np.arange(60), target] == 0.0).all()
                assert p.min() >= 0.0
                assert p.sum(axis=1).max() <= 1.0
                p[np.arange(60), target] = 1.0 - p.sum(axis=1)
                expected = dense(X, 1.0).T @ ((np.eye(4)[target] - p) * u[:, None])
                np.testing.assert_allclose(U[:, 4 * g : 4 * g + 4], expected, atol=1e-10)
                constants = [kind(4).constant(row, t) for row, t in zip(p, target.tolist(), strict=True)]
                assert b[0, g] == pytest.approx(u @ constants, abs=1e-10)


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1e-150, 1.0, 1e150]))
def test_cuts_know_how_far_rounding_moved_them(seed, scale):
    """Against sums in 60 digits."""
    rng = np.random.default_rng(seed)
    X, y, u = problem(25, 4, seed=seed % 9, weights=True)
    data, target = streamcut.rows(X * scale, y, weight=u), np.searchsorted(LABELS, y)
    with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = oracle_of(runner, Softmax, [Column(1.0)], bias=scale)
        given = start(rng, oracle, 1.0)
        given.W[:], given.running[:] = given.W / scale, given.running / scale
        sums, M = oracle.ascend(given), oracle.total_weight
        p = runner.rows["codes"][:, oracle._half].astype(np.float64)
        a, b = slow.exact_cut(p, dense(X * scale, scale), target, u, M)
        (error,) = oracle.cut_errors(sums.b)
        off = [float((Decimal(-x / M) - y) / Decimal(scale)) for x, y in zip(sums.U.ravel().tolist(), a.ravel(), strict=True)]
        assert np.linalg.norm(off) <= error.slope / scale
        assert abs(float(Decimal(float(sums.b[0, 0]) / M) - b)) <= error.offset


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 40))
def test_codes_are_of_the_simplex_and_near(seed, K):
    rng = np.random.default_rng(seed)
    share, codes, back = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-2, 1))), np.empty(K, np.float32), np.empty(K)
    groups.encode(K - 1, share, codes)
    groups.decode(K - 1, codes, back)
    assert codes[-1] == 0.0
    assert sum(codes.tolist()) <= 1.0
    np.testing.assert_allclose(back, share, atol=1e-6)
