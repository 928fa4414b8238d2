"""Multinomial logistic regression: kernels and cuts against slow versions."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.softmax import LABELS, problem
from reference import softmax as slow
from scipy.special import softmax as softmax_of

import streamcut
from streamcut.bundle.bundle import Merge
from streamcut.compiled import class_shares, multiclass, records
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import Grids
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.softmax import Softmax
from streamcut.oracles.dual.classes import MulticlassDualOracle, row_bytes
from streamcut.oracles.dual.passes import Ascent

EXACT = Grids(0.0, 0.0)  # ordinary sums
SOFTMAX = Softmax(len(LABELS))


def dense(X, bias=1.0):
    X = X.toarray()
    return np.hstack([X, np.full((len(X), 1), bias)]) if bias else X


class TestKernels:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10**6), st.integers(2, 30), st.floats(-6, 8), st.floats(-2, 3))
    def test_a_row_goes_to_the_maximum_along_it(self, seed, K, power, spread):
        rng = np.random.default_rng(seed)
        Q, scores, new = 10.0**power, 10.0**spread * rng.standard_normal(K), np.empty(K)
        p = rng.dirichlet(np.full(K, 0.3)) if seed % 3 else np.eye(K)[0]
        SOFTMAX.step(p, scores, Q, 0, new)
        assert new.sum() == pytest.approx(1.0, abs=1e-14)
        np.testing.assert_allclose(new, slow.best_shares(p, scores, Q), atol=1e-9)

    def test_a_row_without_features_goes_to_its_softmax(self):
        new = np.empty(3)
        SOFTMAX.step(np.array([1.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0]), 0.0, 0, new)
        np.testing.assert_allclose(new, softmax_of([1.0, 2.0, 3.0]))

    @pytest.mark.parametrize("bias", [0.0, 0.5])
    @pytest.mark.parametrize("weights", [False, True])
    def test_losses_and_cut(self, bias, weights):
        X, y, u = problem(weights=weights)
        rng, target = np.random.default_rng(1), np.searchsorted(LABELS, y)
        W = rng.standard_normal((X.shape[1] + (bias != 0), 4))
        Z, found = dense(X, bias) @ W, np.empty(len(y))
        assert multiclass.losses(SOFTMAX, target, Z, found) == -1
        np.testing.assert_allclose(found, slow.losses(target, Z), rtol=1e-13)
        every, a, b = np.ones(len(y)) if u is None else u, np.zeros(W.shape), np.zeros(2)
        rows = records.Rows(X.indptr.astype(np.int64), X.indices, X.data, target, u)
        multiclass.cut(SOFTMAX, rows, Z, bias, EXACT, a, b)
        expected, offset = slow.cut(W, dense(X, bias), target, every)
        np.testing.assert_allclose(a / every.sum(), expected, atol=1e-12)
        assert b[0] / every.sum() == pytest.approx(offset, rel=1e-12)
        alpha, constants = np.empty(Z.shape), np.empty(len(y))
        multiclass.duals(SOFTMAX, target, Z, alpha, constants)
        np.testing.assert_allclose(constants - (alpha * Z).sum(axis=1), found, atol=1e-12)
        Z[3, 2], Z[5, 0] = np.inf, np.nan
        assert multiclass.losses(SOFTMAX, target, Z, found) == 3

    def test_losses_of_large_scores(self):
        Z, found = np.array([[800.0, -800.0], [-800.0, 800.0], [0.0, -40.0]]), np.empty(3)
        multiclass.losses(SOFTMAX, np.zeros(3, np.int64), Z, found)
        assert found.tolist() == [0.0, 1600.0, pytest.approx(np.exp(-40.0), rel=1e-14)]

    @settings(max_examples=100, deadline=None)
    @given(st.integers(0, 10**6), st.integers(2, 40))
    def test_codes_are_of_the_simplex_and_near(self, seed, K):
        rng = np.random.default_rng(seed)
        share, codes, back = rng.dirichlet(np.full(K, 10.0 ** rng.uniform(-2, 1))), np.empty(K, np.uint16), np.empty(K)
        class_shares.encode(K - 1, share, codes)
        class_shares.decode(K - 1, codes, back)
        assert codes[-1] == 0
        assert ((codes / 65535.0) ** 2).sum() <= 1.0
        np.testing.assert_allclose(back[:-1], share[:-1], atol=4e-5)


class TestCertificate:
    @settings(max_examples=6, deadline=None)
    @given(st.integers(0, 10**6), st.sampled_from([1e-150, 1.0, 1e150]))
    def test_cuts_know_how_far_rounding_moved_them(self, seed, scale):
        """Cuts of both kinds against sums in 60 digits."""
        rng = np.random.default_rng(seed)
        X, y, u = problem(25, 4, seed=seed % 9, weights=True)
        data, target = streamcut.rows(X * scale, y, weight=u), np.searchsorted(LABELS, y)
        rows = dense(X * scale, scale)
        with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
            sizes = {"cuts": 4, "size": None, "sweeps": 0}
            oracle = MulticlassDualOracle(runner, ClassesRisk(LABELS, Softmax), C=1.0, bias=scale, **sizes)
            w = rng.standard_normal(oracle.dimension) / scale
            for cut, slot in zip(oracle.ascend(Ascent(w, np.zeros(4), 0, 1, 1.0, 0.0), first=True), (0, 1), strict=True):
                share = (runner.rows["codes"][:, slot] / 65535.0) * (runner.rows["codes"][:, slot] / 65535.0)
                a, b = slow.exact_cut(share, rows, target, u, oracle.total_weight)
                off = [float((Decimal(x) - y) / Decimal(scale)) for x, y in zip(cut.a.tolist(), a.ravel(), strict=True)]
                assert np.linalg.norm(off) <= cut.error.slope / scale
                assert abs(float(Decimal(cut.b) - b)) <= cut.error.offset


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_both_cuts_are_what_rows_remember(seed, ones):
    """Whatever w and the mixture, with sweeps over a cache and merges in between."""
    X, y, u = problem(60, seed=seed % 7, weights=True)
    if ones:
        X.data[:] = 1.0
    data, target, rng = streamcut.rows(X, y, weight=u), np.searchsorted(LABELS, y), np.random.default_rng(seed)
    size = CacheSize.planned(data.manifest, 20_000, 2, row_bytes(4))
    with Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = MulticlassDualOracle(runner, ClassesRisk(LABELS, Softmax), C=1.0, bias=1.0, cuts=6, size=size, sweeps=3)
        for number in range(3):
            w, mixture = rng.standard_normal(oracle.dimension), np.zeros(6)
            mixture[: 2 * number] = rng.dirichlet(np.ones(2 * number)) if number else 0.0
            slots = 2 * number, 2 * number + 1
            cuts = oracle.ascend(Ascent(w, mixture, *slots, 1.0, 0.0), first=number == 0)
            for cut, slot in zip(cuts, slots, strict=True):
                share = (runner.rows["codes"][:, slot] / 65535.0) ** 2
                assert (share[np.arange(60), target] == 0.0).all()
                assert (share.sum(axis=1) <= 1.0).all()
                share[np.arange(60), target] = 1.0 - share.sum(axis=1)
                expected = dense(X).T @ ((share - np.eye(4)[target]) * u[:, None]) / u.sum()
                np.testing.assert_allclose(cut.a.reshape(-1, 4), expected, atol=1e-12)
                assert cut.b == pytest.approx(
                    u @ -np.where(share > 0, share * np.log(share + (share <= 0)), 0.0).sum(axis=1) / u.sum()
                )
            expected, _ = slow.cut(w.reshape(-1, 4), dense(X), target, u)
            np.testing.assert_allclose(cuts[0].a.reshape(-1, 4), expected, atol=1e-4)  # as near as codes are
        before = (runner.rows["codes"] / 65535.0) ** 2
        oracle.follow([Merge(0, 3, 0.25)])
        expected = 0.75 * before[:, 0] + 0.25 * before[:, 3]
        np.testing.assert_allclose((runner.rows["codes"][:, 0] / 65535.0) ** 2, expected, atol=4e-5)
