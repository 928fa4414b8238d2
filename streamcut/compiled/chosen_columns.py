"""Columns of rows in memory: extraction from rows, and coordinate descent on λ‖w‖₁ + Newton's model of the loss.

Columns are CSC: `indptr` int64 (K + 1,), `rows` int32, `data` float, whose entries have the sign of their row, so that
z = z₀ + Σ_j w_j (column j). The last columns may be unpenalised (an intercept).

No bound depends on these results, so products and sums may share one rounding; additions are in the order of the rows.
"""

from typing import NamedTuple

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.records import entry, target_of, weight_of
from streamcut.compiler.jit import fused, inlined, kernel

_NO_CURVATURE = 1e-12  # minimum, as a part of a column's curvature if every row had curvature 1


class Columns(NamedTuple):
    """CSC: as above."""

    indptr: np.ndarray
    rows: np.ndarray
    data: np.ndarray


class RowsInMemory(NamedTuple):
    """z (n,) of the rows, and what else their losses need: `target` and weights `u`, None if unused."""

    z: np.ndarray
    target: np.ndarray | None
    u: np.ndarray | None


class Price(NamedTuple):
    """C of the losses, λ of the columns except the last `costless`, whose subgradients count `weight` times."""

    C: float
    l1: float
    costless: int = 0
    weight: float = 1.0


class NewtonModel(NamedTuple):
    """Newton's model at a point: curvatures of the rows (n,), of the columns (K,), how much the latter were raised (K,), and the
    weights (K,)."""

    rows: np.ndarray
    columns: np.ndarray
    raised: np.ndarray
    before: np.ndarray


@kernel
def count(indices, bias, n_rows, out):
    """out[j] += number of entries of feature j; the bias feature, if any, is last."""
    for t in range(len(indices)):
        out[np.uint64(indices[t])] += 1.0
    if bias != 0.0:
        out[-1] += n_rows


@kernel
def kept(indptr, indices, slots, bias, out):
    """out[i + 1] = the number of entries of rows up to i whose feature has a slot (≥ 0); out (n + 1,)."""
    total = 0
    out[0] = 0
    for i in range(len(indptr) - 1):
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            total += slots[np.uint64(indices[t])] >= 0
        if bias != 0.0:
            total += slots[-1] >= 0
        out[i + 1] = total


@kernel
def take(loss, indptr, indices, data, y, slots, bias, columns, values):
    """The entries that `kept` counts, row after row: their slots, and their values with the sign of the row."""
    at = 0
    for i in range(len(y)):
        sign = loss.sign(y[i])
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            slot = slots[np.uint64(indices[t])]
            if slot >= 0:
                columns[at], values[at] = slot, sign * entry(data, t)
                at += 1
        if bias != 0.0 and slots[-1] >= 0:
            columns[at], values[at] = slots[-1], sign * bias
            at += 1


@kernel
def turn(indptr, columns, values, first_row, ends, rows, data):
    """Append rows, as returned by `take`, to the columns, whose ends `ends` (K,) advance."""
    for i in range(len(indptr) - 1):
        for t in range(indptr[i], indptr[i + 1]):
            at = ends[columns[t]]
            rows[at], data[at] = first_row + i, values[t]
            ends[columns[t]] = at + 1


@kernel
def expand(loss, z, target, u, C, slope, curvature):
    """slope[i] = C u_i ℓ′(z_i), curvature[i] = C u_i ℓ″(z_i), 0 where that is not finite; returns C Σ u_i ℓ(z_i), nearly."""
    total = 0.0
    for i in range(len(z)):
        y, weight = target_of(target, i), C * weight_of(u, i)
        f = loss.dual(z[i], y)
        h = weight * loss.curvature(f, z[i], y)
        slope[i] = -weight * f
        curvature[i] = h if h < np.inf else 0.0
        total += weight * loss.value(z[i], y)
    return total


@fused
def products(columns, vector, out):
    """out[k] = ⟨column k, vector⟩."""
    for k in range(len(out)):
        total = 0.0
        for t in range(np.uint64(columns.indptr[k]), np.uint64(columns.indptr[k + 1])):
            total += columns.data[t] * vector[np.uint64(columns.rows[t])]
        out[k] = total


@fused
def curvatures(columns, active, most, model):
    """Fill the curvatures of the `active` columns from those of the rows, which are at most `most`."""
    for a in range(len(active)):
        k = active[a]
        total, square = 0.0, 0.0
        for t in range(np.uint64(columns.indptr[k]), np.uint64(columns.indptr[k + 1])):
            own = columns.data[t] * columns.data[t]
            square += own
            total += own * model.rows[np.uint64(columns.rows[t])]
        least = _NO_CURVATURE * most * square
        model.columns[k] = max(total, least)
        model.raised[k] = max(0.0, least - total)


@inlined
def _left(slope, w, k, size, price):
    """The size of the smallest subgradient of column k, of `size` columns."""
    if k >= size - price.costless:
        return abs(slope) * price.weight
    if w > 0.0:
        return abs(slope + price.l1)
    if w < 0.0:
        return abs(slope - price.l1)
    return max(0.0, abs(slope) - price.l1)


@fused
def violations(slope, w, price, out):
    """out[k] = size of the smallest subgradient of column k, where the loss has this slope."""
    for k in range(len(w)):
        out[k] = _left(slope[k], w[k], k, len(w), price)


@fused
def descend(columns, active, price, model, goal, sweeps, slope, w):
    """Coordinate descent over the `active` columns until no violation exceeds `goal`, at most `sweeps` sweeps; w in place.

    Returns whether that was reached. `slope` (n,) is that of the rows' losses at the model's point, and is updated. Columns that
    stay at 0 are shrunk, and checked before the end (Yuan, Ho & Lin 2012); `active` is reordered.
    """
    size, least = len(active), np.inf
    for _ in range(sweeps):
        worst, a = 0.0, 0
        while a < size:
            k = active[a]
            first, stop = np.uint64(columns.indptr[k]), np.uint64(columns.indptr[k + 1])
            total, own = model.raised[k] * (w[k] - model.before[k]), model.columns[k]
            for t in range(first, stop):
                total += columns.data[t] * slope[np.uint64(columns.rows[t])]
            cost = price.l1 if k < len(w) - price.costless else 0.0
            if w[k] == 0.0 and abs(total) < cost - least:
                size -= 1
                active[a], active[size] = active[size], k
                continue
            worst = max(worst, _left(total, w[k], k, len(w), price))
            if own > 0.0:
                step = own * w[k] - total
                new = (max(step - cost, 0.0) + min(step + cost, 0.0)) / own
                change = new - w[k]
                if change != 0.0:
                    w[k] = new
                    for t in range(first, stop):
                        i = np.uint64(columns.rows[t])
                        slope[i] += change * columns.data[t] * model.rows[i]
            a += 1
        if worst > goal:
            least = worst
        elif size == len(active):
            return True
        else:
            size, least = len(active), np.inf
    return False


@fused
def move(columns, active, change, out):
    """out (n,) += Σ change[k]·(column k) over the active ones."""
    for a in range(len(active)):
        k = active[a]
        if change[k] != 0.0:
            for t in range(np.uint64(columns.indptr[k]), np.uint64(columns.indptr[k + 1])):
                out[np.uint64(columns.rows[t])] += change[k] * columns.data[t]


@kernel
def rise(loss, z, delta, k, target, u):
    """Σ u_i (ℓ(z_i + k δ_i) − ℓ(z_i))."""
    total = 0.0
    for i in range(len(z)):
        if delta[i] != 0.0:
            y = target_of(target, i)
            total += weight_of(u, i) * (loss.value(z[i] + k * delta[i], y) - loss.value(z[i], y))
    return total
