"""Kernels of columns against dense ones that take a column and a row at a time (reference.columns)."""

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night
from reference import columns as slow

from streamcut.compiled import columns, columns_cache, columns_line
from streamcut.compiled.column_records import Added, Changed, Order, Pairs, Places, Room, RowRoom, Swept
from streamcut.compiled.records import CachedRows, Rows
from streamcut.foundation.rounding import Grids
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss

N, FEATURES, CLASSES, STORED, NEAR, BATCH = 30, 6, 4, 5, 6, 16
PLACES = np.array([0, 3, 4])
A = len(PLACES)
LIMIT = 50.0
FORMS = {  # (ones, weights, folds, l1, bias)
    "plain": (False, False, False, False, 0.0),
    "all there is": (False, True, True, True, 1.5),
    "folds of ones": (True, False, True, False, 1.0),
    "weights and thresholds": (False, True, False, True, 0.0),
}
OPTIONS = {"epsilon": 0.2, "delta": 0.7, "quantile": 0.3}
CASES = [("hinge", form) for form in FORMS]
CASES += [(loss, list(FORMS)[i % 4]) for i, loss in enumerate(ROW_LOSSES) if loss != "hinge"]
DAILY = {("hinge", "plain"), ("hinge", "all there is")}  # each case has kernels of its own, which are compiled for it
DAILY |= {each for each in CASES if each[0] in ("logistic", "squared")}
NIGHTLY = [each for each in CASES if each not in DAILY]
cases = pytest.mark.parametrize("case", by_night(CASES, NIGHTLY), ids=lambda case: f"{case[0]}, {case[1]}")
seeds = pytest.mark.parametrize("seed", range(3))


class Problem:
    """Random rows, some without features, of weight 0, alike; shares of all kinds; columns of several C."""

    def __init__(self, loss: str, form: str, seed: int) -> None:
        ones, weights, folds, thresholds, self.bias = FORMS[form]
        rng = self.rng = np.random.default_rng([seed, 7])
        self.loss = row_loss(loss, OPTIONS)
        X = sp.random_array((N, FEATURES), density=0.4, format="csr", rng=rng, data_sampler=rng.standard_normal)
        X.indices = X.indices.astype(np.int32)
        if ones:
            X.data[:] = 1.0
        self.x = np.hstack([X.toarray(), np.full((N, 1), self.bias)]) if self.bias else X.toarray()
        self.u = rng.uniform(0.2, 2.0, N) * (rng.random(N) < 0.9) if weights else np.ones(N)
        self.labels = ROW_LOSSES[loss].targets == "labels"
        counts = loss == "poisson"
        self.given = rng.integers(0, CLASSES, N).astype(np.int32) if self.labels else rng.standard_normal(N)
        self.given = rng.integers(0, 4, N).astype(float) if counts else self.given
        self.classes = np.array([0.0, 2.0, 3.0])
        self.rows = Rows(X.indptr.astype(np.int64), X.indices, None if ones else X.data, self.given, self.u if weights else None)
        self.fold = rng.integers(0, 3, N).astype(np.int16) if folds else None
        self.left_out = np.array([-1, 0, 2], np.int16) if folds else None
        self.l1 = np.array([0.3, 0.0, 1.0]) if thresholds else None
        cost, positive = np.array([0.5, 2.0, 0.1]), self.classes if self.labels else None
        self.places = Places(PLACES, positive, self.left_out, cost, self.l1, self.bias)
        self.grids = Grids.holding(1e5, 1e5)._replace(limit=LIMIT)
        D = self.x.shape[1]
        self.W, self.w = 0.3 * rng.standard_normal((D, A)), 0.3 * rng.standard_normal((D, A))
        self.codes = np.zeros((N, 2, STORED), self.loss.code_type)
        for i in range(N):
            for a in range(A):
                self.codes[i, :, PLACES[a]] = self.loss.encode(self._share(self.y(a)[i]))

    def _share(self, y):
        bounds = [bound for bound in (self.loss.lowest(y), self.loss.highest(y), 0.0) if np.isfinite(bound)]
        return self.rng.choice(bounds) if self.rng.random() < 0.6 else self.loss.dual(1.5 * self.rng.standard_normal(), y)

    def y(self, a):
        return np.where(self.given == self.classes[a], 1.0, -1.0) if self.labels else self.given

    def inside(self, a):
        return np.ones(N, bool) if self.fold is None else self.fold != self.left_out[a]

    def threshold(self, a):
        return 0.0 if self.l1 is None else self.l1[a]

    def shares(self, half, a, codes=None):
        found = (self.codes if codes is None else codes)[:, half, PLACES[a]]
        return np.array([self.loss.decode(code, y) for code, y in zip(found, self.y(a), strict=True)])

    def order(self, visits):
        rows, turns = self.rng.permutation(BATCH), np.empty(BATCH, np.int64)
        for first in range(0, BATCH, NEAR):
            part = rows[first : first + NEAR]
            part.sort()
            turns[first : first + NEAR] = self.rng.permutation(len(part))
        return Order(rows, turns, NEAR, visits)

    def added(self):
        D = self.x.shape[1]
        return Added(self.w.copy(), np.zeros((D, A)), np.zeros((3 if self.loss.sized() else 1, A)), np.zeros(A))

    def ascend(self, order, halves=(0, 1)):
        """(codes and z and keys after it, what was added, what was returned)"""
        pairs, added = Pairs(self.codes.copy(), np.full((N, STORED), 7.0), np.empty(N), self.fold), self.added()
        own = self.loss, self.rows, self.places, pairs, halves, self.W, self.grids
        return pairs, added, columns.ascend(*own, order, added, Room.of(NEAR, A))


def batches(order):
    found = []
    for first in range(0, N, BATCH):
        for begin in range(0, BATCH, NEAR):
            chosen = first + order.rows[begin : begin + NEAR]
            turns = chosen[order.turns[begin : begin + NEAR]]
            found.append([part[(part >= 0) & (part < N)] for part in (chosen, turns)])
    return found


def check_sums(p, a, before, after, U, b):
    """U and b are those of the shares, less those of the shares before."""
    y = p.y(a)
    (V, totals), (V0, totals0) = slow.sums(p.loss, p.x, y, p.u, after), slow.sums(p.loss, p.x, y, p.u, before)
    np.testing.assert_allclose(U[:, a], V - V0, atol=1e-7)
    np.testing.assert_allclose(b[:, a], (totals - totals0)[: len(b)], atol=1e-7)


@cases
@seeds
@pytest.mark.parametrize("visits", [0, 1, 3])
def test_a_pass_is_that_of_one_column_after_the_other(case, seed, visits):
    p = Problem(*case, seed)
    order = p.order(visits=visits)
    pairs, added, bad = p.ascend(order)
    keys = np.full(N, np.inf)
    assert bad == -1
    for a, place in enumerate(PLACES):
        f, w = p.shares(0, a), p.w[:, a].copy()
        before = f.copy()
        z, own, rise = slow.ascend(p.loss, p.x, p.y(a), p.u, p.inside(a), f, p.W[:, a], w, p.threshold(a), p.places.cost[a],
                                   batches(order), visits, LIMIT)  # fmt: skip
        found = p.shares(1, a, pairs.codes)
        np.testing.assert_allclose(pairs.z[:, place], z, atol=1e-12)
        np.testing.assert_array_equal(pairs.codes[:, 0], p.codes[:, 0])
        np.testing.assert_allclose(found, f, rtol=1e-3, atol=1e-3)
        np.testing.assert_array_equal(found[~p.inside(a)], before[~p.inside(a)])
        check_sums(p, a, before, found, added.U, added.b)
        np.testing.assert_allclose(added.w[:, a], w, rtol=1e-2, atol=1e-2)
        assert added.gain[a] >= -1e-6 * (1.0 + abs(rise))
        if p.threshold(a) == 0.0:
            assert added.gain[a] == pytest.approx(rise, rel=1e-3, abs=1e-3)
        else:
            assert added.gain[a] <= rise + 1e-3 * (1.0 + abs(rise))  # less where thresholds take some of what weights grow by
        keys = np.minimum(keys, own)
    others = np.setdiff1d(np.arange(STORED), PLACES)
    np.testing.assert_array_equal(pairs.codes[:, 1, others], p.codes[:, 1, others])
    np.testing.assert_array_equal(np.isfinite(pairs.keys), np.isfinite(keys))
    np.testing.assert_allclose(pairs.keys, keys, rtol=5e-2, atol=5e-2)


@seeds
def test_a_block_is_that_of_its_parts_and_a_pass_can_be_repeated(seed):
    p = Problem("hinge", "all there is", seed)
    order = p.order(visits=2)
    whole, added, _ = p.ascend(order)
    again, twice, _ = p.ascend(order)
    assert whole.codes.tobytes() == again.codes.tobytes()
    pairs, parts = Pairs(p.codes.copy(), np.full((N, STORED), 7.0), np.empty(N), p.fold), p.added()
    for start, stop in ((0, BATCH), (BATCH, N)):
        own = slice(start, stop)
        indptr = p.rows.indptr[start : stop + 1]
        rows = Rows(indptr, p.rows.indices, p.rows.data, p.given[own], p.u[own])
        part = Pairs(*(array[own] for array in pairs[:4]))
        columns.ascend(p.loss, rows, p.places, part, (0, 1), p.W, p.grids, order, parts, Room.of(NEAR, A))
    for one, other, third in zip((*whole[:4], *added), (*pairs[:4], *parts), (*again[:4], *twice), strict=True):
        assert one.tobytes() == other.tobytes() == third.tobytes()


def test_a_score_that_is_not_finite_is_told():
    p = Problem("hinge", "plain", 0)
    row = int(np.flatnonzero(p.x[:, 2])[0])
    p.W[2, 1] = np.inf
    assert p.ascend(p.order(1))[2] >= 0
    p.W[2, 1] = 1.0
    p.rows.data[p.rows.indptr[row]] = np.nan
    assert p.ascend(p.order(1))[2] == row


def cached(p, pairs, rows=N, entries=10**6, limit=np.inf):
    """(records.CachedRows, count, listed, how many rows, the row to go on with)"""
    size = min(entries, max(int(p.rows.indptr[-1]), 1))
    csr = np.zeros(rows + 1, np.int64), np.empty(size, np.int32), None if p.rows.data is None else np.empty(size)
    numbers = np.empty(rows, np.int64), *(np.empty(rows) for _ in range(3))
    found = CachedRows(*csr, *numbers, np.empty((rows, A)), np.empty(rows, p.given.dtype))
    count, listed = np.zeros(rows, np.int64), np.empty((rows, A), np.int16)
    at, n = columns_cache.offer(p.loss, 0, p.rows, p.places, pairs, 1, 100 + np.arange(N), limit, 0, found, count, listed)
    return found, count, listed, n, at


@cases
@seeds
def test_sweeps_climb_each_dual_and_write_their_shares_back(case, seed):
    p = Problem(*case, seed)
    pairs, added, _ = p.ascend(p.order(1))
    rows, count, listed, n, at = cached(p, pairs)
    square = (p.x**2).sum(axis=1)
    numbers = np.flatnonzero((square > 0.0) & (p.u > 0.0) & np.isfinite(pairs.keys))  # what is at rest is not taken
    assert at == N
    np.testing.assert_array_equal(rows.number[:n], 100 + numbers)
    np.testing.assert_allclose(rows.square[:n], square[numbers])
    np.testing.assert_array_equal(rows.weight[:n], p.u[numbers])
    x, u, w = p.x[numbers], p.u[numbers], added.w.copy()
    f = [p.shares(1, a, pairs.codes)[numbers] for a in range(A)]
    may = [np.zeros(n, bool) for _ in range(A)]
    slow_w = [added.w[:, a].copy() for a in range(A)]
    for a in range(A):
        y, z = p.y(a)[numbers], pairs.z[numbers, PLACES[a]]
        for i in range(n):
            resting = p.loss.stays(f[a][i], z[i], 0.0, y[i]) and p.loss.violation(f[a][i], z[i], y[i]) >= slow.FAR
            may[a][i] = p.inside(a)[numbers[i]] and not resting
            assert may[a][i] == (a in listed[i, : count[i]])
    turns, on, slack = p.rng.permutation(n), np.array([True, True, True]), np.full(A, np.inf)
    for number in range(6):
        swept, before = Swept(np.zeros(A), np.zeros(A), np.zeros(A)), turns.copy()
        left = columns_cache.sweep(p.loss, turns, rows, count, listed, p.places, on, slack, p.grids, w, swept, RowRoom.of(A))
        for a in range(A):
            if not on[a]:
                may[a][:] = False
            rise, largest, visited = slow.sweep(p.loss, x, p.y(a)[numbers], u, f[a], may[a], before, slow_w[a], p.threshold(a),
                                                p.places.cost[a], slack[a], LIMIT)  # fmt: skip
            entries = np.diff(p.rows.indptr)[numbers]
            assert swept.work[a] == sum(entries[i] for i in visited)
            np.testing.assert_allclose(rows.share[:n, a], f[a], rtol=1e-3, atol=1e-3)
            np.testing.assert_allclose(w[:, a], slow_w[a], rtol=1e-2, atol=1e-2)
            assert swept.largest[a] == pytest.approx(largest, rel=1e-2, abs=1e-2)
            assert swept.gain[a] >= -1e-6
            assert swept.gain[a] <= rise + 1e-3 * (1.0 + abs(rise))
            if p.threshold(a) == 0.0:
                assert swept.gain[a] == pytest.approx(rise, rel=1e-2, abs=1e-3)
            assert {int(i) for i in range(n) if a in listed[i, : count[i]]} == set(np.flatnonzero(may[a]).tolist())
        some = np.any(may, axis=0)
        np.testing.assert_array_equal(turns[:left], [i for i in before if some[i]])
        turns, slack, on = turns[:left], 0.1 * swept.largest, np.array([True, number < 2, True])
    half = pairs.codes.copy()
    changed = Changed(np.zeros_like(added.U), np.zeros_like(added.b))
    columns_cache.write_back(p.loss, np.arange(n), rows, 100, p.places, pairs.codes, 1, p.grids, changed, RowRoom.of(A))
    for a in range(A):
        after = p.shares(1, a, pairs.codes)
        np.testing.assert_array_equal(after[numbers], rows.share[:n, a])
        check_sums(p, a, p.shares(1, a, half), after, changed.U, changed.b)
    np.testing.assert_array_equal(pairs.codes[:, 0], half[:, 0])


def test_a_cache_takes_rows_below_the_limit_while_there_is_room():
    p = Problem("hinge", "all there is", 0)
    pairs, _, _ = p.ascend(p.order(2))
    limit = float(np.median(pairs.keys))
    fitting = np.flatnonzero((pairs.keys < limit) & ((p.x**2).sum(axis=1) > 0) & (p.u > 0))
    rows, _, _, n, at = cached(p, pairs, limit=limit)
    np.testing.assert_array_equal(rows.number[:n], 100 + fitting)
    assert at == N
    few = len(fitting) // 2
    rows, _, _, n, at = cached(p, pairs, rows=few, limit=limit)
    assert n == few
    assert at == fitting[few]
    _, _, _, n, at = cached(p, pairs, entries=7, limit=limit)
    taken = np.cumsum(np.diff(p.rows.indptr)[fitting])
    assert n == np.searchsorted(taken, 7, side="right")
    assert at == fitting[n]


@cases
@seeds
def test_lines_are_those_of_one_row_after_the_other(case, seed):
    p = Problem(*case, seed)
    z_b, z = (np.full((N, STORED), 7.0) for _ in range(2))
    z_b[:, PLACES], z[:, PLACES] = p.rng.standard_normal((2, N, A))
    z[:4], k = z_b[:4], p.rng.uniform(0.0, 2.0, A)
    if not p.loss.smooth:
        z_b[4:8, PLACES], k[0] = p.loss.kink(0), 0.0  # at a kink
    known = p.loss, p.given, p.rows.u, p.fold, p.places, z_b, z, k
    halves = [np.zeros((A, 2)), np.zeros(A)]
    slopes = np.zeros((A, 2))
    columns_line.slopes(*known, slopes)
    before = z_b.copy()
    columns_line.step(*known, *halves)
    for a, place in enumerate(PLACES):
        own = p.loss, p.y(a), p.u, p.inside(a), before[:, place], z[:, place], k[a]
        assert slopes[a].sum() == pytest.approx(slow.slope_along(*own), rel=1e-10, abs=1e-10)
        assert halves[0][a].sum() == pytest.approx(slow.loss_along(*own), rel=1e-12)
        np.testing.assert_allclose(z_b[:, place], before[:, place] + k[a] * (z[:, place] - before[:, place]), rtol=1e-14)
        seen = zip(z_b[:, place], p.y(a), p.u * p.inside(a), strict=True)
        shares = [abs(p.loss.dual(here, y)) for here, y, u in seen if u and p.loss.value(here, y)]
        assert halves[1][a] == (pytest.approx(max(shares)) if p.loss.unbounded() else 0.0)
        step = 1e-6
        ahead, here = (slow.loss_along(*own[:-1], k[a] + more) for more in (step, 0.0))
        assert slow.slope_along(*own) == pytest.approx((ahead - here) / step, rel=1e-3, abs=1e-3)
    assert (z_b[:, [1, 2]] == 7.0).all()
    columns_line.at_zero(p.loss, p.given, p.places, z_b)
    columns_line.forget(p.places, p.codes)
    for a, place in enumerate(PLACES):
        np.testing.assert_array_equal(z_b[:, place], [-p.loss.offset(y) for y in p.y(a)])
        assert not p.shares(0, a).any()
        assert not p.shares(1, a).any()
    assert (z_b[:, [1, 2]] == 7.0).all()
