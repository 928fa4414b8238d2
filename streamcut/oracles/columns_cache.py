"""The row cache of a lane: copies of the rows that dual ascent may still move most, with the shares of all pairs.

Passes over the data collect them; sweeps update their shares without reading data.

Where steps along single rows stall, all cached rows are solved for at once: by interior points for losses with kinks.

    min ½‖w − rest‖² + Σ c_i ℓ(z_i),    z_i = ⟨w, a_i⟩ − t_i,  c_i = C u_i,  a_i = σ_i x_i (with the bias feature),

over cached rows; all others stay fixed, in `rest`. A free intercept has no square: its part of I below is 0. A row with the
greatest share h and a part s_j of each kink k_j of ℓ has the share f = h − Σ_j s_j. At the optimum, with p the excess of z above
a kink and q its deficit,

    w = rest + Σ c f a,    z − k = p − q,    q s = p (1 − s) = 0,    0 ≤ s ≤ 1,    p, q ≥ 0.

Interior points replace the 0 by μ, and μ falls (Wright 1997, chapters 5 and 10; Fine & Scheinberg 2001 for kernels of low
rank). In Newton's step for these equations only Δw takes a linear solve, with θ = p / (1 − s) + q / s:

    (I + Σ_i c_i Σ_j 1/θ_ij a_i a_iᵀ) Δw = rest + Σ c_i (f_i − Σ_j (r_ij − e_ij) / θ_ij) a_i − w,    Δs = (⟨a, Δw⟩ + r − e) / θ,

where r = z − k − p + q and e = β / (1 − s) − p − α / s + q: α and β are μ, less the products Δs Δq and −Δs Δp of the step
for μ = 0 (Mehrotra 1992).

Smooth losses need none: Newton's method solves for w, with steps halved until F falls, and the shares are those of its scores.

The result is a step of the dual variables like that of a sweep, of which the best fraction is taken: rounding
may make it short, never invalid.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamcut.compiled import columns_cache, row_losses, second_order
from streamcut.compiled.problems import ActiveColumns, PairState, Room, Swept, listing
from streamcut.compiled.records import CachedRows, Rows
from streamcut.compiled.vectors import dot
from streamcut.execution.row_state import ROW_BYTES, CacheSize
from streamcut.foundation.rounding import Grids
from streamcut.foundation.systems import one_blas_thread
from streamcut.io.manifest import Statistics
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import ColumnsRisk

_KEPT = 0.8  # of the rows, when the cache is full: those with the smallest keys
_FULL = 0.9  # of the entries: the most that remain then
_PASS = 1.5  # entries of a sweep that cost as much as one entry of a pass
_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Settings of sweeps: at most `many`, until no column gains by another one (compiled.columns_cache.sweeps).

    entries  of all rows; rise (A): gain of the pass before; enough (A): a column's sweeps end when one gains no more than this
    seed     the number of the pass and the seed of the run
    """

    many: int
    entries: int
    rise: np.ndarray
    enough: np.ndarray
    seed: tuple[int, int]
    grids: Grids


class ColumnsCache:
    """Rows with a share for each of at most `most` columns, set by `serve`; w is (D, A).

    `limit` is the key below which rows are taken: it falls as the cache fills up.
    """

    def __init__(self, size: CacheSize, risk: ColumnsRisk, most: int) -> None:
        self.size, self._risk = size, risk
        self.n, self.limit = 0, np.inf
        indices, data = np.empty(size.entries, size.index), None if size.value is None else np.empty(size.entries, size.value)
        key, weight, square = (np.empty(size.rows) for _ in range(3))
        target = np.empty(size.rows, np.float64 if risk.labels is None else np.int32)
        numbers = np.empty(size.rows, np.int64), key, weight, square
        self._room = np.empty(size.rows * most), np.empty(size.rows * most, listing(most))
        self._rows = CachedRows(np.zeros(size.rows + 1, np.int64), indices, data, *numbers, np.empty((0, 0)), target)
        self._listed: np.ndarray = np.empty((0, 0), self._room[1].dtype)
        self._count = np.zeros(size.rows, np.int64)
        self._positions: np.ndarray | None = None  # of the rows, by ascending row number
        self.columns: ActiveColumns  # set by `serve`

    @property
    def numbers(self) -> np.ndarray:
        """The rows in the cache, in the order in which they came."""
        return self._rows.number[: self.n]

    @staticmethod
    def row_bytes(columns: int) -> int:
        """Bytes of a cached row in addition to its entries: its target, the columns that may still move it, and its shares."""
        return ROW_BYTES + 16 + (8 + listing(columns)().itemsize) * columns

    def serve(self, columns: ActiveColumns) -> None:
        """Forget all rows; the next ones have these columns (streamcut.oracles.columns_passes.ActiveColumns)."""
        self.n, self.limit = 0, np.inf
        self.columns, rows, A = columns, self.size.rows, len(columns.slots)  # in groups, of all their columns
        shares, listed = self._room
        self._rows = self._rows._replace(share=shares[: rows * A].reshape(rows, A))
        self._listed = listed[: rows * A].reshape(rows, A)
        self._positions = None

    def collect(self, rows: Rows, pairs: PairState, half: int, numbers: np.ndarray) -> None:
        """Cache the rows of a block with the smallest pairs.keys, with the shares in half `half` of their codes."""
        first = 0
        while first < len(numbers):
            at = first, rows, self.columns, pairs, half, numbers, self.limit, self.n
            first, self.n = columns_cache.offer(self._risk.loss, *at, self._rows, self._count, self._listed)
            if first < len(numbers):  # the cache is full
                self._shrink()

    def sweep_columns(self, how: Sweeps, w: np.ndarray, first_row: int) -> np.ndarray:
        """Sweep in place at w until a sweep no longer pays; returns the rise of the dual (A)."""
        swept = Swept.after(how.rise, _PASS * max(how.entries, 1), how.enough)
        rows = np.empty(self.n, np.int64), self._rows, self._count, self._listed, self.columns
        passes, seed = how.seed
        seeds = tuple(np.uint64(number & _BITS) for number in (passes, first_row, seed))
        vectors, room = self.columns.group.vectors(w), Room.of(0, w.shape[1])
        columns_cache.sweeps(self._risk.loss, *rows, how.grids, vectors, swept, room, how.many, seeds)
        return swept.total

    def write_codes(self, how: Sweeps, half: int, codes: np.ndarray, first_row: int, U: np.ndarray, b: np.ndarray) -> None:
        """Write the shares of cached rows to half `half` of `codes`, of the rows from `first_row` on; U and b are updated."""
        if self._positions is None:  # rows may come from several positions of the lane
            self._positions = np.argsort(self.numbers)
        first, last = np.searchsorted(self.numbers, (first_row, first_row + len(codes)), sorter=self._positions)
        cached = self._positions[first:last], self._rows, first_row, self.columns, codes, half, how.grids
        columns_cache.write_back(self._risk.loss, *cached, self.columns.group.vectors(U), b, Room.of(0, U.shape[1]))

    def gathered(self) -> CachedRows:
        """The cached rows; shares and weights are views."""
        rows, last = self._rows.part(slice(0, self.n)), self._rows.indptr[self.n]
        return rows._replace(indices=rows.indices[:last], data=None if rows.data is None else rows.data[:last])

    def _shrink(self) -> None:
        keys, ends, count, entries = self._rows.key[: self.n], self._rows.indptr[: self.n + 1], self.n, np.inf
        kept = np.ones(count, np.bool_)
        while count > 0 and entries > _FULL * len(self._rows.indices):
            count = min(int(_KEPT * count), count - 1)
            (in_order := keys.copy()).partition(count)
            self.limit = float(in_order[count])
            del in_order  # a number for each row at a time, and not while rows are marked
            np.less(keys, self.limit, out=kept)
            equal = np.flatnonzero(keys == self.limit)
            kept[equal[: count - np.count_nonzero(kept)]] = True
            entries = np.diff(ends).sum(where=kept)
        columns_cache.keep(np.flatnonzero(kept), self._rows, self._count, self._listed)
        self.n = count


_FEATURES = 512  # at most, with the bias: a step costs their square times the rows
_BYTES = 128 << 20  # at most, for all rows, of which a part is cached
_INSIDE = 0.99  # of the way to where the first row reaches a bound
_MOST = 60  # steps
_LEAST = 1e-9  # of Σ c: the smallest gap requested
_FALL, _SHORTEST, _NEAR = 1e-4, 1e-6, 1e-3  # of a Newton step's model: the fall that suffices; of the step; of the gap to reach


def solving_bytes(loss: Loss, statistics: Statistics, dimension: int) -> int:
    """Bytes for solving, per cached row; 0: not available for this loss and these data."""
    size = 8 * (2 * dimension + 16 * max(loss.kinks(), 1))
    return size if dimension <= _FEATURES and size * statistics.n_rows <= _BYTES else 0


class CachedProblem(NamedTuple):
    """Rows a_i (n, D), c = C u (n,) and targets (n,); `ridge` (D,) is the diagonal of the penalty."""

    A: np.ndarray
    c: np.ndarray
    target: np.ndarray
    ridge: np.ndarray


def dense(rows: CachedRows, dimension: int, bias: float) -> np.ndarray:
    """(n, D): the x_i, with the bias feature."""
    A = np.zeros((len(rows.number), dimension))
    A[np.repeat(np.arange(len(A)), np.diff(rows.indptr)), rows.indices] = 1.0 if rows.data is None else rows.data
    if bias != 0.0:
        A[:, -1] = bias
    return A


def solved(loss: Loss, problem: CachedProblem, rest: np.ndarray, w: np.ndarray, enough: float) -> tuple[np.ndarray, np.ndarray]:
    """(shares (n,), w) that solve for cached rows to a gap of about `enough`, starting from w."""
    with np.errstate(all="ignore"), one_blas_thread():
        return (_newton if loss.smooth else _interior)(loss, problem, rest, w.copy(), enough)


def _newton(loss: Loss, problem: CachedProblem, rest: np.ndarray, w: np.ndarray, enough: float) -> tuple[np.ndarray, np.ndarray]:
    A, c, target, ridge = problem
    zero, value, share, curvature = np.empty((4, len(A)))
    row_losses.at_zero(loss, target, zero)

    def objective(w: np.ndarray) -> float:
        columns_cache.curves(loss, A @ w + zero, target, value, share, curvature)
        return float(0.5 * (w @ (ridge * w)) - rest @ w + c @ value)

    F = objective(w)
    for _ in range(_MOST):
        left, scaled = rest + A.T @ (c * share) - ridge * w, A * np.sqrt(c * curvature)[:, None]
        dw, part = _solved(_factor(scaled.T @ scaled, ridge), left.copy()), 1.0
        fall = float(left @ dw)
        if not fall > _NEAR * enough:
            break
        while not (after := objective(w + part * dw)) <= F - _FALL * part * fall and part > _SHORTEST:
            part *= 0.5
        if not after < F:
            break
        w, F = w + part * dw, after
    objective(w)
    return share, w


def _interior(
    loss: Loss, problem: CachedProblem, rest: np.ndarray, w: np.ndarray, enough: float
) -> tuple[np.ndarray, np.ndarray]:
    A, c, target, ridge = problem
    highest, kinks = loss.highest(0.0), target[:, None] + [loss.kink(j) for j in range(loss.kinks())]
    weight, cs = float(c.sum()) * loss.kinks(), c[:, None]
    t = (A @ w)[:, None] - kinks
    mu = float(np.abs(t).mean()) if t.size else 0.0
    s = 2.0 * mu / (2.0 * mu + np.abs(t) + np.sqrt(t * t + 4.0 * mu * mu))
    s = np.where(t > 0.0, 1.0 - s, s)
    p, q = mu / (1.0 - s), mu / s
    for _ in range(_MOST if t.size else 0):
        left, now = rest + A.T @ (c * (highest - s.sum(axis=1))) - ridge * w, float((cs * (q * s + p * (1.0 - s))).sum())
        if now + 0.5 * float(left @ left) <= max(enough, _LEAST * weight):
            break
        r, theta = (A @ w)[:, None] - kinks - p + q, p / (1.0 - s) + q / s
        scaled = A * np.sqrt(c * (1.0 / theta).sum(axis=1))[:, None]
        factor = _factor(scaled.T @ scaled, ridge)  # NumPy computes one half
        alpha = beta = np.zeros(1)
        for corrected in (False, True):
            e = beta / (1.0 - s) - p - alpha / s + q
            dw = _solved(factor, left - A.T @ (c * ((r - e) / theta).sum(axis=1)))
            ds = ((A @ dw)[:, None] + r - e) / theta
            dp, dq = (beta + p * ds) / (1.0 - s) - p, (alpha - q * ds) / s - q
            part = min(1.0, _INSIDE * min(_reach(s, ds), _reach(1.0 - s, -ds), _reach(p, dp), _reach(q, dq)))
            if not corrected:
                after = (q + part * dq) * (s + part * ds) + (p + part * dp) * (1.0 - s - part * ds)
                mu = max(float((cs * after).sum()) / now, _LEAST) ** 3 * now / (2.0 * weight)
                alpha, beta = mu - ds * dq, mu + ds * dp
        if not (np.isfinite(dw).all() and part > 0.0):
            break
        w, s, p, q = w + part * dw, s + part * ds, p + part * dp, q + part * dq
    return np.clip(highest - s.sum(axis=1), highest - loss.kinks(), highest), w


def _reach(value: np.ndarray, change: np.ndarray) -> float:
    """The largest fraction of a change at which no value falls below 0."""
    return float(np.where(change < 0.0, value / -change, np.inf).min())


def _factor(matrix: np.ndarray, ridge: np.ndarray) -> np.ndarray:
    """L of diag(ridge) + matrix = LLᵀ; not finite where there is none."""
    matrix[np.diag_indices(len(matrix))] += ridge
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


def _solved(factor: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """x of LLᵀx = vector."""
    second_order.solve(factor, vector)
    return vector


def solve_at_once(
    loss: Loss, columns: ActiveColumns, caches: Iterable[ColumnsCache], w: np.ndarray, near: np.ndarray, chosen: np.ndarray,
    enough: np.ndarray, pulls: np.ndarray | None, limit: float, fold: np.ndarray | None, first_row: int,
) -> dict[int, np.ndarray]:  # fmt: skip
    """Set the shares of all cached rows to those that solve for them, at `w` (D, A), in place; returns the weights (D,) that
    solve, by column.

    near    (D, A) starting point
    chosen  the columns (A,) to solve; enough (A): the gaps to reach, approximately
    pulls   (A,) of all shares on a free intercept, in units of C; None: it is not free
    limit   of shares, for weight 1
    fold    of the rows from `first_row` on; None: there are none
    """
    parts = [cache.gathered() for cache in caches]
    X = np.vstack([dense(part, len(w), columns.bias) for part in parts])
    number, weight, goal = (np.concatenate(rows) for rows in zip(*((p.number, p.weight, p.target) for p in parts), strict=True))
    ends, points = np.cumsum([len(part.number) for part in parts])[:-1], dict[int, np.ndarray]()
    for a in np.flatnonzero(chosen).tolist():
        before = np.concatenate([part.share[:, a] for part in parts])
        c, target = columns.cost[a] * weight, np.zeros(len(X))
        if columns.positive is None:
            A, target = X, np.asarray(goal, np.float64)
        else:
            A = X * np.where(goal == columns.positive[a], 1.0, -1.0)[:, None]
        if fold is not None and columns.left_out is not None:  # rows of the left-out fold stay as they are
            c = np.where(fold[number - first_row] == columns.left_out[a], 0.0, c)
        start, ridge = np.ascontiguousarray(w[:, a]), np.ones(len(w))
        rest = start - A.T @ (c * before)
        if pulls is not None:
            ridge[-1], rest[-1] = 0.0, pulls[a] - A[:, -1] @ (c * before)
        share, point = solved(loss, CachedProblem(A, c, target, ridge), rest, near[:, a], float(enough[a]))
        columns_cache.limit(loss, limit, weight, share)
        share = np.where(np.isfinite(share) & (c > 0.0), share, before)
        delta = A.T @ (c * (share - before))
        gain = columns_cache.gained(loss, c, target, before, share)
        if not np.isfinite(delta @ delta + point @ point + gain):
            continue
        at = np.where(ridge > 0.0, start, point)  # a free intercept goes to its new value, whatever the step
        slope, curvature = gain - dot(at, delta), dot(ridge * delta, delta)
        theta = min(1.0, max(0.0, slope / curvature)) if curvature > 0.0 else 0.0  # the best fraction of the step
        w[:, a] += theta * np.where(ridge > 0.0, delta, point - start)
        for part, after in zip(parts, np.split(before + theta * (share - before), ends), strict=True):
            part.share[:, a] = after
        points[a] = point
    return points
