"""Sums over the rows: the objective, its slope and its curvature, each with a bound on its rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.compiled import linear, second_order
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import EPSILON, Grids, above, gamma
from streamcut.io.dataset import Dataset
from streamcut.locating.problem import Located

_SPARE = 32
_BLOCK = 1 << 16  # rows summed together: a sum over all rows takes this many roundings, plus one per block
_DENSE = 0.25  # of the features: rows with more entries are multiplied as dense ones
_AT_ONCE = 256  # dense rows
_EXACT = Grids(0.0, 0.0)  # sums not on grids
SHRUNK = 1.0 - 1e-12  # exponentials and products are off by far less


@dataclass(slots=True)
class Rows:
    """A block of rows: scores `s` and residuals or margins `z` at the point, weights `u`, float64 (n,) each.

    doubt   |z − the true one| at most, float64 (n,)
    """

    chunk: Chunk
    s: np.ndarray
    z: np.ndarray
    u: np.ndarray
    doubt: np.ndarray


def chunks_of(data: Dataset) -> Iterator[Chunk]:
    """All rows in order, _BLOCK at a time; a chunk is valid until the next one."""
    buffers = data.buffers()
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard, buffers)
        for start in range(0, chunk.n_rows, _BLOCK):
            yield chunk.rows(start, min(start + _BLOCK, chunk.n_rows))


def rows_of(problem: Located, data: Dataset) -> Iterator[Rows]:
    """The rows of `data`, scored at the problem's point."""
    loss: Any = problem.risk.loss
    size = np.abs(problem.at)
    for chunk in chunks_of(data):
        s, near = scores(chunk, problem.at, problem.bias), magnitudes(chunk, size, problem.bias)
        doubt = row_gamma(chunk) * near
        if loss.targets == "labels":
            z = np.where(chunk.y == loss.positive, s, -s)
        else:
            offsets = np.zeros(chunk.n_rows) if loss.keeps_target else chunk.y
            z, doubt = s - offsets, doubt + 2.0 * EPSILON * (np.abs(s) + np.abs(offsets))
        yield Rows(chunk, s, z, problem.risk.weights_of(chunk.y, chunk.weight), doubt)


def margins_within(problem: Located, rows: Rows, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of `z` for scores from `s` to any score between `low` and `high`."""
    down, up = np.maximum(rows.s - low, 0.0), np.maximum(high - rows.s, 0.0)
    loss: Any = problem.risk.loss
    if loss.targets == "labels":
        falls = rows.chunk.y != loss.positive
        down, up = np.where(falls, up, down), np.where(falls, down, up)
    more = 1.0 + gamma(8.0)
    return rows.z - down * more - rows.doubt, rows.z + up * more + rows.doubt


def scores(chunk: Chunk, w: np.ndarray, bias: float) -> np.ndarray:
    """⟨w, x⟩ of each row, with its bias feature."""
    out = np.empty(chunk.n_rows)
    linear.scores(chunk.indptr, chunk.indices, chunk.data, w, bias, out)
    return out


def magnitudes(chunk: Chunk, q: np.ndarray, bias: float) -> np.ndarray:
    """Σ_j q_j |x_j| of each row; q ≥ 0."""
    out = np.empty(chunk.n_rows)
    second_order.magnitudes(chunk.indptr, chunk.indices, chunk.data, q, bias, out)
    return out


def lengths(chunk: Chunk, bias: float) -> np.ndarray:
    """At least ‖x‖ of each row, with its bias feature."""
    out = np.empty(chunk.n_rows)
    second_order.squares(chunk.indptr, chunk.data, bias, out)
    return np.sqrt(out) * (1.0 + row_gamma(chunk))


def row_gamma(chunk: Chunk) -> float:
    """γ of a sum over the entries of a row."""
    return gamma(int(np.diff(chunk.indptr).max(initial=0)) + _SPARE)


def widths(chunk: Chunk, Q: np.ndarray, diagonal: np.ndarray, bias: float) -> np.ndarray:
    """At least √(xᵀQx) of each row, with its bias feature; Q ⪰ 0 as `Optimum.spread`."""
    D, out = len(diagonal), np.empty(chunk.n_rows)
    own = 2.0 * row_gamma(chunk)
    if chunk.indptr[-1] - chunk.indptr[0] > _DENSE * chunk.n_rows * D:
        full, own = _square(Q, D), 2.0 * gamma(2 * D + _SPARE)
        for start in range(0, chunk.n_rows, _AT_ONCE):
            X = _dense(chunk.rows(start, min(start + _AT_ONCE, chunk.n_rows)), D, bias)
            np.einsum("ij,ij->i", X @ full, X, out=out[start : start + len(X)])
    else:
        second_order.forms(chunk.indptr, chunk.indices, chunk.data, Q, D, bias, out)
    size = magnitudes(chunk, np.sqrt(diagonal), bias)
    return np.sqrt(np.maximum(out, 0.0) + (own + gamma(_SPARE)) * 4.0 * size * size) * (1.0 + gamma(_SPARE))


def _square(Q: np.ndarray, D: int) -> np.ndarray:
    full = np.zeros((D, D))
    for j in range(D):
        row = Q[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2]
        full[j, : j + 1], full[: j + 1, j] = row, row
    return full


def _dense(chunk: Chunk, D: int, bias: float) -> np.ndarray:
    X, first, last = np.zeros((chunk.n_rows, D)), chunk.indptr[0], chunk.indptr[-1]
    rows = np.repeat(np.arange(chunk.n_rows), np.diff(chunk.indptr))
    X[rows, chunk.indices[first:last]] = 1.0 if chunk.data is None else chunk.data[first:last]
    if bias:
        X[:, -1] = bias
    return X


@dataclass(slots=True)
class Slope:
    """F at the point, at most; its gradient, float64 (D,), and its error; Σ u, and the mean of x weighted by u and curvature.

    center   float64 (D,): Σ u ℓ″ x / Σ u ℓ″, last number unused
    loss, least_loss   Σ u ℓ at most, at least
    """

    primal: float
    gradient: np.ndarray
    error: np.ndarray
    center: np.ndarray
    weight: float
    rows: int
    loss: float
    least_loss: float


def slope(problem: Located, data: Dataset) -> Slope:
    """One pass."""
    D, risk, C = len(problem.at), problem.risk, problem.model.C
    n = data.manifest.statistics.n_rows
    g, error, center = np.zeros((1, D)), np.zeros(D), np.zeros((1, D))
    losses: list[tuple[float, float]] = []
    bends = weight = 0.0
    rows = 0
    for block in rows_of(problem, data):
        y, u = block.chunk.y, block.u
        near = block.doubt + 4.0 * np.spacing(np.abs(block.s)) + 4.0 * EPSILON * risk.target_sizes(y)
        ends, middle = [risk.values(y, block.s + end) for end in (-near, near)], risk.values(y, block.s)
        part = gamma(risk.rounding.value + _SPARE)
        most = np.maximum(*ends) * (1.0 + part) + gamma(risk.rounding.near_one + 1.0)
        fell = np.maximum(most - middle, 0.0)  # a convex loss falls no faster than it rises on the other side, if it falls on
        counts = u > 0.0
        pair = most[counts], np.maximum(middle - fell, 0.0)[counts]
        losses.append((math.fsum((u[counts] * pair[0]).tolist()), math.fsum((u[counts] * pair[1]).tolist())))
        signed = risk.duals(y, block.s)[0]
        least, greatest = risk.loss.curvature_within(block.z - near, block.z + near)
        sizes = np.abs(signed) + (np.abs(y) if risk.loss.targets == "numbers" else 0.0)
        off = C * u * (np.abs(signed) * gamma(n + _SPARE) + sizes * gamma(_SPARE) + greatest * near / SHRUNK)
        entries = (block.chunk.indptr, block.chunk.indices, block.chunk.data)
        linear.scatter(*entries, -C * u * signed, problem.bias, _EXACT, g)
        linear.add_magnitudes(*entries, off, problem.bias, 0.0, error)
        linear.scatter(*entries, u * least, problem.bias, _EXACT, center)
        bends += float((u * least).sum())
        weight += float(u.sum())
        rows += block.chunk.n_rows
    total, fewest = (math.fsum(each) for each in zip(*losses, strict=True))
    half = 0.5 * float((problem.ridge * problem.at) @ problem.at) + problem.model.l1 * float(np.abs(problem.at).sum())
    primal = above(half + C * total, gamma(D + _SPARE) * half + gamma(_SPARE) * (half + C * total))
    own = problem.ridge * problem.at
    error = error * (1.0 + gamma(n + _SPARE)) + 4.0 * EPSILON * (np.abs(own) + np.abs(g[0]))
    center[0] /= max(bends, 1e-300)
    return Slope(primal, own + g[0], error, center[0], weight, rows, total, fewest)


class Curvature:
    """Sums diag(ridge) + C Σ u_i h_i x_i x_iᵀ, the lower triangle, in blocks: `total` is off by a part γ of √(M_jj M_kk)."""

    def __init__(self, problem: Located, statistics: Any) -> None:
        D = len(problem.at)
        self._problem, self._blocks = problem, 0
        self.total, self._block = np.diag(problem.ridge), np.zeros((D, D))
        self._dense = statistics.nnz > _DENSE * statistics.n_rows * D
        self._together = np.empty((second_order.TOGETHER, D)) if self._dense else None

    def add(self, rows: Rows, h: np.ndarray) -> None:
        """Add the rows of one chunk of `chunks_of`, with their h."""
        chunk, bias = rows.chunk, self._problem.bias
        h, self._block[:] = self._problem.model.C * rows.u * np.where(rows.u > 0.0, h, 0.0), 0.0
        if self._together is not None:
            second_order.add_dense(chunk.indptr, chunk.indices, chunk.data, h, bias, 0, self._together, self._block)
        else:
            second_order.add_sparse(chunk.indptr, chunk.indices, chunk.data, h, bias, self._block)
        self.total += self._block
        self._blocks += 1

    @property
    def part(self) -> float:
        """γ."""
        return gamma(_BLOCK + self._blocks + _SPARE)
