"""bundle-dca: passes and kernels against slow versions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.bundle_dca import problem
from reference import bundle_dca as slow

import streamcut
from streamcut.compiled import dual, records
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import Grids
from streamcut.foundation.units import parse_size
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import StopReason
from streamcut.oracles.dual.ascent import ORDER, DualOracle
from streamcut.solvers import bundle_dca
from streamcut.solvers.progress import Progress, StoppingRule


def dense(X, bias):
    return np.hstack([X.toarray(), np.full((X.shape[0], 1), bias)]) if bias else X.toarray()


def solve(
    data, *, C=1.0, positive_weight=1.0, bias=1.0, row_cache="0", sweeps=50, lanes=1, max_cuts=16, workers=1, tol=1e-3,
    max_passes=300,
):  # fmt: skip
    """Without `train`, whose plan and threads take longer than these problems."""
    manifest, risk = data.manifest, PointwiseRisk(Hinge(1.0), positive_weight)
    everything = CacheSize.bytes_of_all(manifest)
    budget = parse_size(row_cache, total=everything) if row_cache != "0" else 0
    planned = plan_lanes(manifest.statistics, lanes)
    with Runner(Feed(data, frozenset(range(len(manifest.shards)))), planned, workers) as runner:
        size = CacheSize.planned(manifest, budget, len(planned))
        oracle = DualOracle(runner, risk, C=C, bias=bias, cuts=max_cuts, size=size, sweeps=sweeps)
        rule = StoppingRule(tol, None, max_passes=max_passes)
        return bundle_dca.solve(oracle, Progress(rule), max_cuts=max_cuts)


@pytest.mark.parametrize("row_cache", ["0", "30%"])
def test_tight_tolerance_is_reached_with_shares_of_16_bits(row_cache):
    for C in (0.1, 1000.0):
        X, y, _ = problem(60, 6, seed=3)
        run = solve(streamcut.rows(X, y), C=C, row_cache=row_cache, tol=1e-7, max_cuts=40, max_passes=3000)
        assert run.reason is StopReason.CONVERGED


@pytest.mark.parametrize(("accelerated", "C"), [(False, 1.0), (True, 1.0), (True, 30.0)])
def test_passes_are_those_of_the_slow_version(accelerated, C, monkeypatch):
    if not accelerated:
        monkeypatch.setattr(DualOracle, "accelerated", False)
    X, y, u = problem(400, 10, seed=1, weights=True)
    data = streamcut.rows(X, y, weight=u)
    orders = ([ORDER.drawn(data.manifest.statistics, k, 0, mixed=True)[0].tolist()] for k in range(100))
    F, bound, passes = slow.bundle_dca(dense(X, 1.0), y, C, u, 1e-4, orders, accelerated=accelerated)
    run = solve(data, C=C, tol=1e-4, max_cuts=200)
    assert passes > 10
    assert abs(run.history[-1].passes - passes) <= 3  # whose shares are not rounded, whose master problem is solved less well
    assert run.primal == pytest.approx(F, rel=1e-3)
    assert run.lower_bound == pytest.approx(bound, rel=1e-3)


def same(a, b):
    np.testing.assert_array_equal(a.w, b.w)
    assert (a.primal, a.lower_bound) == (b.primal, b.lower_bound)
    assert [line.lower_bound for line in a.history] == [line.lower_bound for line in b.history]


@pytest.mark.parametrize("max_cuts", [4, 6])
def test_sums_that_go_on_from_the_last_pass_are_those_of_all_rows(monkeypatch, max_cuts):
    X, y, u = problem(500, 20, seed=9, weights=True)
    data = streamcut.rows(X, y, weight=u)
    options = {"max_cuts": max_cuts, "row_cache": "20%", "C": 10.0, "lanes": 2}
    going_on = solve(data, **options)
    ascend, known = DualOracle.ascend, []

    def from_nothing(oracle, *args, **options):
        known.append(oracle._last is not None)
        oracle._last = None
        return ascend(oracle, *args, **options)

    monkeypatch.setattr(DualOracle, "ascend", from_nothing)
    same(going_on, solve(data, **options))
    assert known[0] is False
    assert all(known[1:])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000), st.sampled_from([0.0, 2.0]), st.sampled_from([np.int8, np.float32, np.float64, None]), st.booleans()
)
def test_one_visit_is_that_of_the_slow_version(seed, bias, dtype, fine):
    rng = np.random.default_rng(seed)
    n, d, C, T = 30, 7, 0.5, 5
    X = sp.random_array((n, d), density=0.4, format="csr", rng=rng)
    X.data = np.ones(X.nnz) if dtype is None else rng.integers(-5, 6, X.nnz).astype(dtype)
    data = None if dtype is None else X.data
    sign, u = rng.choice([-1.0, 1.0], n), rng.uniform(0, 2, n)
    codes = rng.choice(np.array([0, 65535, 20_000, 400], np.uint16), (n, T))
    mixture = np.array([0.5, 0.0, 0.2, 0.0, 0.25])
    A = dense(X, bias).astype(float)
    w, z_b = rng.standard_normal(A.shape[1]), rng.standard_normal(n)
    base = ((codes / 65535.0) ** 2 * mixture).sum(axis=1)
    order, places = rng.permutation(8), rng.permutation(2)  # of batches of 16 rows
    near = int(rng.integers(1, 9))  # which changes nothing
    fetched = np.concatenate([np.sort(order[start : start + near]) for start in range(0, 8, near)])
    groups = [[g + 8 * p + o for o in order if 0 <= g + 8 * p + o < n] for g in range(0, n, 16) for p in places]
    w_run, grids = w.copy(), Grids.holding(1e4, 1e4)
    grids = grids.finer(n) if fine else grids
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32)
    last = rng.choice([-1, 0])
    known = (codes[:, last] / 65535.0) ** 2 if last >= 0 else np.zeros(n)
    cuts, z, keys, sums = np.zeros((2, grids.folds, len(w))), np.empty(n), np.empty(n), np.zeros((2, 4))
    loss = Hinge(1.0)
    bad = dual.ascend(
        loss,
        records.Rows(indptr, indices, data, sign, u),
        records.Margins(z_b, z, codes, keys),
        records.Start(w, 0.3, loss.parts(mixture), C, bias),
        records.Slots(1, 3, int(last)),
        grids,
        records.Visits(order, places, 2, fetched, near),
        records.DualSums(w_run, cuts, sums),
        records.Scratch(np.empty(8), np.empty(8, np.int64)),
    )
    f, running = slow.sweep(A, sign, C, u, w, base, groups)
    assert bad == -1
    np.testing.assert_allclose(z, sign * (A @ w), atol=1e-12)
    active = z_b + 0.3 * (z - z_b) < 1.0
    found = (codes[:, 3] / 65535.0) ** 2
    np.testing.assert_array_equal(codes[:, 1], np.where(active, 65535, 0))
    np.testing.assert_allclose(found, f, atol=2e-3)  # shares are rounded, and later rows see it
    np.testing.assert_allclose(w_run, w + C * A.T @ (sign * u * (found - base)), atol=1e-6)
    np.testing.assert_allclose(running, w_run, atol=2e-2 * C)
    cuts[1] += cuts[0]  # the second came as its difference to the first
    sums[1] += sums[0]
    for column, shares in ((0, active.astype(float)), (1, found)):
        a, b = slow.cut(A, sign, u, shares - known)
        np.testing.assert_allclose(cuts[column].sum(axis=0) / u.sum(), a, atol=1e-9)
        assert sums[column].sum() / u.sum() == pytest.approx(b, abs=1e-9)
    assert ((keys < 1000) == ((found > 0.0) & (found < 1.0))).all()


def test_every_code_is_its_share_again():
    codes = np.arange(65536, dtype=np.uint16).reshape(-1, 1).repeat(2, axis=1)
    codes[:, 1] = 65535 - codes[:, 1]
    before = codes.copy()
    dual.merge_shares(Hinge(), codes, 0, 1, 0.0)
    np.testing.assert_array_equal(codes, before)
    dual.merge_shares(Hinge(), codes, 0, 1, 0.25)
    shares = (before / 65535.0) ** 2
    np.testing.assert_array_equal(codes[:, 1], before[:, 1])
    np.testing.assert_allclose((codes[:, 0] / 65535.0) ** 2, 0.75 * shares[:, 0] + 0.25 * shares[:, 1], atol=2e-5)
