"""The kernels of one-vs-rest by dual ascent, against one class after the other; bounds against LIBLINEAR's optima."""

import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import ovr_dual as slow
from reference import svm
from sklearn.datasets import load_svmlight_file

from streamcut.compiled import cached_rows, ovr_cache, ovr_dual, records
from streamcut.compiled.shares import ONE
from streamcut.config import TrainOptions
from streamcut.io.memory import MemoryDataset
from streamcut.jobs.multiclass import MulticlassJob
from streamcut.jobs.ovr import OvrJob
from streamcut.losses.hinge import Hinge
from streamcut.oracles.dual.ovr_cache import pair_buffers
from streamcut.rounding import Grids, exact_rounder
from streamcut.training import train

K, T = 4, 5
HINGE = Hinge()


class Rows:
    """Random rows, some without features, at a state in which shares of all kinds occur."""

    def __init__(self, seed: int, *, bias: float, ones: bool, weights: bool, n: int = 60, d: int = 7) -> None:
        rng = self.rng = np.random.default_rng(seed)
        X = sp.random_array((n, d), density=0.4, format="csr", rng=rng, data_sampler=rng.standard_normal)
        if ones:
            X.data[:] = 1.0
        self.n, self.bias, self.C = n, bias, 0.7
        self.dense = np.hstack([X.toarray(), np.full((n, 1), bias)]) if bias else X.toarray()
        self.csr = X.indptr.astype(np.int64), X.indices.astype(np.int32), None if ones else X.data
        self.target = rng.integers(0, K, n).astype(np.int32)
        self.given = rng.uniform(0.2, 2.0, n) if weights else None
        self.u = np.ones(n) if self.given is None else self.given
        self.z_b = 1.0 + rng.standard_normal((n, K))
        self.codes = rng.choice([0, 0, ONE, ONE, 20000], (n, T, K)).astype(np.uint16)
        self.grids = Grids(exact_rounder(2.0 * n * np.abs(self.dense).max()), exact_rounder(2.0 * n))
        self.z = np.empty((n, K))

    def sign(self, k: int) -> np.ndarray:
        return np.where(self.target == k, 1.0, -1.0)

    def ascend(self, active, W, mixture, slots, last, kappa, order, places=(0,), visits=2):
        """What the kernel gives: (cuts, sums, running W, keys)."""
        D, A = W.shape
        cuts, sums, W_run, keys, g = np.zeros((D, 2 * A)), np.zeros((1, 2 * A)), W.copy(), np.empty(self.n), len(order)
        used = np.flatnonzero(mixture.any(axis=1))
        parts = mixture[used] / np.float64(ONE) ** 2
        room = np.empty((g, A)), np.empty(g, np.int64), np.empty(g, np.int64), np.empty(K)
        bad = ovr_dual.ascend(
            HINGE,
            records.Rows(*self.csr, self.target, self.given),
            active,
            records.Margins(self.z_b, self.z, self.codes, keys),
            records.Start(W, kappa, records.Mixture(used, parts), self.C, self.bias),
            records.Slots(*slots, *last),
            self.grids,
            records.Visits(order, np.array(places), 0, visits, np.arange(g), g),
            records.DualSums(W_run, cuts, sums),
            records.PairScratch(*room, pair_buffers(A)),
        )
        assert bad == -1
        return cuts, sums, W_run, keys


kinds = given(st.integers(0, 10**6), st.sampled_from([0.0, 1.5]), st.booleans(), st.booleans())


@settings(max_examples=25, deadline=None)
@kinds
def test_a_pass_is_that_of_one_class_after_the_other(seed, bias, ones, weights):
    rows = Rows(seed, bias=bias, ones=ones, weights=weights)
    rng, active = rows.rng, np.array([0, 2, 3])
    W, kappa = rng.standard_normal((rows.dense.shape[1], 3)), rng.uniform(0, 1, 3)
    mixture = np.zeros((T, K))
    mixture[0], mixture[1] = rng.uniform(0, 1, K), 0.0
    mixture[1] = 1.0 - mixture[0]
    before, untouched = rows.codes.copy(), rows.codes[:, :, 1].copy()
    slots, order = np.array([[2, 3, 4], [3, 4, 2]]), rng.permutation(16)
    cuts, sums, W_run, keys = rows.ascend(active, W, mixture, slots, np.full((2, 3), -1), kappa, order)
    assert (keys >= 0.0).all()
    np.testing.assert_array_equal(rows.codes[:, :, 1], untouched)
    for a, k in enumerate(active):
        share = np.tensordot((before[:, :2, k] / ONE) ** 2, mixture[:2, k], 1)
        share[share > 1 - 1e-7] = 1.0
        z, wrong, share, running = slow.ascend(
            rows.dense, rows.sign(k), rows.u, rows.z_b[:, k], kappa[a], share, rows.C, order, 2, W[:, a]
        )
        np.testing.assert_allclose(rows.z[:, a], z, atol=1e-12)
        np.testing.assert_array_equal(rows.codes[:, slots[0, a], k] == ONE, wrong)
        found = (rows.codes[:, slots[1, a], k] / ONE) ** 2
        np.testing.assert_allclose(found, share, atol=1e-4)
        np.testing.assert_allclose(W_run[:, a], running, atol=1e-2)
        for column, part in ((a, wrong), (3 + a, found)):
            vector, total = slow.cut(rows.dense, rows.sign(k), rows.u, part)
            np.testing.assert_allclose(cuts[:, column], vector, atol=1e-9)
            assert sums[0, column] == pytest.approx(total, abs=1e-9)


@settings(max_examples=15, deadline=None)
@kinds
def test_going_on_from_the_last_sums_gives_the_bits_of_starting_from_nothing(seed, bias, ones, weights):
    rows = Rows(seed, bias=bias, ones=ones, weights=weights)
    rng, D = rows.rng, rows.dense.shape[1]
    mixture, order = np.full((T, K), 1.0 / T), rng.permutation(8)
    first = rows.ascend(
        np.arange(K), rng.standard_normal((D, K)), mixture, np.array([[0] * K, [1] * K]), np.full((2, K), -1), np.zeros(K), order
    )
    active, W, slots = np.array([1, 3]), rng.standard_normal((D, 2)), np.array([[2, 2], [3, 3]])
    codes, found = rows.codes.copy(), []
    for last in (np.full((2, 2), -1), np.array([[0, -1], [1, -1]])):
        rows.codes[:] = codes
        cuts, sums, W_run, _ = rows.ascend(active, W, mixture, slots, last, np.full(2, 0.5), order)
        columns = np.where(last >= 0, np.array([active, K + active]), -1).ravel()
        ovr_dual.add_columns(first[0], columns, cuts)
        ovr_dual.add_columns(first[1], columns, sums)
        found.append((cuts, sums, W_run))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@settings(max_examples=15, deadline=None)
@kinds
def test_sweeps_over_cached_rows_climb_each_dual_and_write_their_shares_back(seed, bias, ones, weights):
    rows = Rows(seed, bias=bias, ones=ones, weights=weights)
    n, d = rows.n, rows.dense.shape[1] - (bias != 0.0)
    active, dual, size = np.array([0, 2, 3]), np.array([1, 1, 4]), rows.csr[0][-1]
    rows.z[:, :3] = 1.0  # every pair may move
    csr = np.zeros(n + 1, np.int64), np.empty(size, np.int32), None if ones else np.empty(size)
    number, key, weight, square = np.empty(n, np.int64), *(np.empty(n) for _ in range(3))
    share, goal, busy = np.empty((n, 3)), np.empty(n, np.int64), np.empty((n, 3), np.bool_)
    cached = records.CachedRows(*csr, number, key, weight, square, share, goal)
    at, m = cached_rows.offer(0, records.Rows(*rows.csr, rows.target, rows.given), np.zeros(n), bias, 0, np.inf, 0, cached)
    ovr_cache.remember(HINGE, number[:m], rows.target, active, rows.z, rows.codes, dual, share, busy)
    some = np.flatnonzero((rows.dense**2).sum(axis=1) > 0)
    assert at == n
    np.testing.assert_array_equal(number[:m], some)
    signs = np.array([rows.sign(k)[some] for k in active]).T
    x, u = rows.dense[some], rows.u[some]

    def primal_part():
        return x.T @ (share[:m] * rows.C * u[:, None] * signs)

    W = primal_part()

    def objective():
        return rows.C * (u @ share[:m]) - 0.5 * (primal_part() ** 2).sum(axis=0)

    order, slack, values = np.arange(m), np.full(3, np.inf), [objective()]
    work = np.array([0, 2])
    for _ in range(30):
        gain, largest, before = np.zeros(3), np.zeros(3), share[:m].copy()
        pairs = records.Pairs(active, work, slack)
        left = ovr_cache.sweep(HINGE, order, cached, busy, pairs, rows.C, bias, None, W, gain, largest, pair_buffers(3))
        order, slack = order[:left], largest
        np.testing.assert_allclose(gain, rows.C * (u @ (share[:m] - before)), atol=1e-9)
        values.append(objective())
    np.testing.assert_allclose(W, primal_part(), atol=1e-9)
    assert (np.diff(values, axis=0) >= -1e-9).all()
    np.testing.assert_array_equal(share[:m, 1], before[:, 1])
    cuts, sums = np.zeros((d + (bias != 0.0), 6)), np.zeros((1, 6))
    past = rows.codes.copy()
    part, sums_of = cached.part(slice(0, m)), records.CutSums(cuts, sums)
    ovr_cache.write_back(HINGE, part, 0, active, dual, bias, rows.grids, rows.codes, sums_of, pair_buffers(3))
    for a, k in enumerate(active):
        changed = (rows.codes[:, dual[a], k] / ONE) ** 2 - (past[:, dual[a], k] / ONE) ** 2
        np.testing.assert_allclose((past[some, dual[a], k] / ONE) ** 2 + changed[some], share[:m, a], atol=1e-4)
        vector, total = slow.cut(rows.dense, rows.sign(k), rows.u, changed)
        np.testing.assert_allclose(cuts[:, 3 + a], vector, atol=1e-9)
        assert sums[0, 3 + a] == pytest.approx(total, abs=1e-9)
    assert not cuts[:, :3].any()


def test_merged_shares_follow_merges_one_after_the_other():
    codes = np.random.default_rng(0).integers(0, ONE + 1, (50, T, K)).astype(np.uint16)
    f = (codes / ONE) ** 2
    merges = [(1, 0, 2, 0.3), (1, 0, 3, 0.5), (3, 4, 1, 0.0)]
    ovr_dual.merge_shares(HINGE, codes, *(np.array(x) for x in zip(*merges, strict=True)))
    for k, into, gone, weight in merges:
        f[:, into, k] = (1 - weight) * f[:, into, k] + weight * f[:, gone, k]
    np.testing.assert_allclose((codes / ONE) ** 2, f, atol=4e-5)


@pytest.mark.parametrize(("classes", "features", "cuts"), [(3, 50, 16), (5, (1 << 22) // 5, 8)])
def test_bundles_of_many_long_vectors_are_small_by_default(classes, features, cuts):
    X = sp.csr_array((np.ones(classes), (np.arange(classes), np.full(classes, features - 1))), (classes, features))
    data = MemoryDataset(X, np.arange(classes))
    for job, strategy in ((MulticlassJob, "crammer-singer"), (OvrJob, "one-vs-rest")):
        assert job.planned(TrainOptions(task="multiclass", strategy=strategy), data.manifest).max_cuts == cuts


@pytest.mark.parametrize(("name", "classes"), [("dna", None), ("news20_bydate", (1.0, 7.0))])
def test_no_bound_is_above_what_liblinear_reaches_at_a_tight_tolerance(data_dir, name, classes):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    with lzma.open(data_dir / name / "train.svm.xz") as file:
        X, y = load_svmlight_file(file, zero_based=False, dtype=np.float32)
    model = train(MemoryDataset(X, y), task="multiclass", strategy="one-vs-rest", tol=1e-3)
    assert model.solver == "bundle-dca"
    assert model.converged
    rows = sp.hstack([sp.csr_matrix(X, dtype=np.float64), np.ones((len(y), 1))]).tocsr()
    for k, label in enumerate(model.labels):
        if classes is not None and label not in classes:
            continue
        sign = np.where(y == label, 1.0, -1.0)
        theirs = liblinear.train(sign, sp.csr_matrix(X, dtype=np.float64), "-s 3 -c 1 -B 1 -e 1e-8 -q")
        w = np.array(theirs.w[: rows.shape[1]]) * theirs.get_labels()[0]
        optimum = 0.5 * w @ w + np.maximum(0.0, 1.0 - sign * (rows @ w)).sum()
        found = model.certificates[k]
        assert found.lower_bound <= optimum * (1 + 1e-9)
        assert found.primal <= optimum + 1e-3 * found.c_bar
        assert svm.primal(model.augmented_weights[:, k], rows, sign, 1.0, np.ones(len(y))) == pytest.approx(
            found.primal, rel=1e-9
        )
