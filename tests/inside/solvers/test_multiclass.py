"""Crammer-Singer: kernels and cuts against slow versions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.multiclass import LABELS, dense, problem
from reference import multiclass as slow

import streamcut
from streamcut.compiled import multiclass
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.crammer_singer import CrammerSinger, project
from streamcut.oracles.dual.classes import MulticlassDualOracle, row_bytes
from streamcut.oracles.dual.passes import Ascent

pytestmark = pytest.mark.smoke
HINGE = CrammerSinger(len(LABELS))


def rows_of(X, y):
    X = sp.csr_array(X)
    return Chunk(X.indptr.astype(np.int64), X.indices, X.data, y)


class TestKernels:
    @pytest.mark.parametrize("bias", [0.0, 0.5])
    @pytest.mark.parametrize("weights", [False, True])
    def test_scores_losses_and_cut(self, bias, weights):
        X, y, u = problem(weights=weights)
        rng, D = np.random.default_rng(1), X.shape[1] + (bias != 0)
        W, target = rng.standard_normal((D, 4)), np.searchsorted(LABELS, y)
        chunk, Z, found = rows_of(X, y), np.empty((len(y), 4)), np.empty(len(y))
        multiclass.scores(chunk.indptr, chunk.indices, chunk.data, W, bias, Z)
        np.testing.assert_allclose(Z, dense(X, bias) @ W, atol=1e-12)
        assert multiclass.losses(HINGE, target, Z, found) == -1
        np.testing.assert_allclose(found, slow.losses(target, Z), atol=1e-12)
        rival, a = np.empty(len(y), np.int64), np.zeros((D, 4))
        multiclass.rivals(HINGE, target, Z, rival)
        multiclass.scatter(chunk.indptr, chunk.indices, chunk.data, target, rival, u, bias, 0.0, a)
        every = np.ones(len(y)) if u is None else u
        expected, offset = slow.cut(W, dense(X, bias), target, every)
        np.testing.assert_allclose(a / every.sum(), expected, atol=1e-12)
        assert every[rival != target].sum() / every.sum() == pytest.approx(offset)
        Z[3, 2], Z[5, 0] = np.inf, np.nan
        assert multiclass.losses(HINGE, target, Z, found) == 3

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.floats(-5, 5), min_size=2, max_size=8))
    def test_projection_on_the_simplex(self, values):
        point = np.array(values)
        expected = slow.project_on_simplex(point)
        project(point)
        np.testing.assert_allclose(point, expected, atol=1e-9)
        assert point.sum() == pytest.approx(1.0)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_both_cuts_are_what_rows_remember(seed, ones):
    """Whatever w and the mixture: each cut is Σ π (e_k − e_t) xᵀ of the shares in its slot, and those are feasible."""
    X, y, u = problem(60, seed=seed % 7, weights=True)
    if ones:
        X.data[:] = 1.0
    data, target, rng = streamcut.rows(X, y, weight=u), np.searchsorted(LABELS, y), np.random.default_rng(seed)
    size = CacheSize.planned(data.manifest, 20_000, 2, row_bytes(4))
    with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = MulticlassDualOracle(runner, ClassesRisk(LABELS), C=1.0, bias=1.0, cuts=6, size=size, sweeps=3)
        for number in range(3):
            w, mixture = rng.standard_normal(oracle.dimension), np.zeros(6)
            mixture[: 2 * number] = rng.dirichlet(np.ones(2 * number)) if number else 0.0
            slots = 2 * number, 2 * number + 1
            cuts = oracle.ascend(Ascent(w, mixture, *slots, 1.0, 0.0), first=number == 0)
            for cut, slot in zip(cuts, slots, strict=True):
                share = (runner.rows["codes"][:, slot] / 65535.0) ** 2
                assert (share[np.arange(60), target] == 0.0).all()
                assert (share.sum(axis=1) <= 1.0 + 1e-15).all()
                share[np.arange(60), target] = -share.sum(axis=1)
                expected = dense(X).T @ (share * u[:, None]) / u.sum()
                np.testing.assert_allclose(cut.a.reshape(-1, 4), expected, atol=1e-12)
                assert cut.b == pytest.approx(-(share[np.arange(60), target] @ u) / u.sum())
            expected, _ = slow.cut(w.reshape(-1, 4), dense(X), target, u)
            np.testing.assert_allclose(cuts[0].a.reshape(-1, 4), expected, atol=1e-12)
