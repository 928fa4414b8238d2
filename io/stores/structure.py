"""The arrays of a shard: each is stored in the smallest exact type, checked before kernels, which check no bounds, and counted.

Every loop is branch-free, so that it runs at memory speed: 16 MiB of indices with their values take about 1 ms.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamcut.compiler.jit import kernel
from streamcut.foundation.chunk import Chunk
from streamcut.io.stores.spec import VALUES

INT32_MAX = 2**31 - 1
LARGEST, TOTAL, SQUARES, NONZEROS = range(4)  # columns of a table with one row per feature: a row is half a cache line
_MOST = float(np.finfo(np.float64).max)


@kernel
def _indptr_ok(indptr, nnz):
    """(whether it starts at 0, ends at nnz and never decreases, the longest row)."""
    falls, longest = 0, 0
    for i in range(len(indptr) - 1):
        length = indptr[i + 1] - indptr[i]
        falls += length < 0
        longest = max(longest, length)
    return falls == 0 and indptr[0] == 0 and indptr[-1] == nnz, longest


@kernel
def _indices_ok(indptr, indices, n_features):
    """Strictly increasing within each row, the first of a row ≥ 0 and the last < n_features; `indptr` has been checked.

    Counts decreases over all neighbours, then subtracts those between rows: one long loop instead of many short ones.
    """
    falls = 0
    for t in range(1, len(indices)):
        falls += indices[t] <= indices[t - 1]
    outside = 0
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        if stop > start:
            outside += (indices[start] < 0) | (indices[stop - 1] >= n_features)
            if start > 0:
                falls -= indices[start] <= indices[start - 1]
    return falls == 0, outside == 0


@kernel
def _within(values, largest):
    """|value| ≤ largest for all; false for nan. int8, float32 or float64."""
    good = 0
    for t in range(len(values)):
        good += abs(np.float64(values[t])) <= largest
    return good == len(values)


def first_problem(
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray | None,
    rows: dict[str, np.ndarray],
    n_features: int,
    longest: int | None = None,
    largest: float = np.inf,
) -> tuple[str, str] | None:
    """(array name, its fault) for one shard, or None when every kernel may run on it.

    indptr int64 (n + 1), indices int32/int64 (nnz), data (nnz) or None (all 1), rows: `y` and perhaps `weight`, `qid` (n each).
    No row may have more than `longest` entries and no value may exceed `largest`: buffers and bounds rely on these limits.
    """
    if data is not None and len(data) != len(indices):
        return "data", f"has {len(data)} values for {len(indices)} indices"
    rising, most = _indptr_ok(indptr, len(indices))
    if not rising:
        return "indptr", "does not rise from 0 to the number of entries"
    if longest is not None and most > longest:
        return "indptr", f"has a row of {most:,} entries, and the manifest says {longest:,} at most"
    increasing, inside = _indices_ok(indptr, indices, n_features)
    if not increasing:
        return "indices", "does not increase strictly within every row"
    if not inside:
        return "indices", f"holds a feature outside 0…{n_features - 1}"
    above = f"holds a value greater than the {largest:g} of the manifest"
    for name, array in (("data", data), ("y", rows["y"]), ("weight", rows.get("weight"))):
        if array is not None and not _within(array, min(largest, _MOST) if name == "data" else _MOST):
            return name, above if _within(array, _MOST) else "holds nan or infinity"
    if data is None and len(indices) and largest < 1.0:
        return "data", above
    if "weight" in rows and len(rows["weight"]) and rows["weight"].min() < 0:
        return "weight", "holds a negative number"
    return None


@kernel
def _fits(values):
    """Counts: (values exact in int8, values exact in float32)."""
    small = single = 0
    for t in range(len(values)):
        value = values[t]
        small += (value == np.floor(value)) & (value >= -128) & (value <= 127)
        single += np.float64(np.float32(value)) == value
    return small, single


def narrowed(rows: Chunk) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of each array of a shard: float64 in the smallest of VALUES that is exact (-0 counts as 0), `indptr` in the
    type of the indices, which are int32 where they fit."""
    arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "y": rows.y, "qid": rows.qid}
    for name, array in {**arrays, "weight": rows.weight}.items():
        if array is not None and array.dtype == np.float64:
            small, single = _fits(array)
            array = array.astype(VALUES[0 if small == len(array) else 1 if single == len(array) else 2], copy=False)
        if array is not None:
            yield name, array.astype(rows.indices.dtype) if name == "indptr" else array


# Statistics of rows (streamcut.io.manifest) and of single features (streamcut.io.features)


@kernel
def tally(indptr, indices, data, unit, weight, first, slots, about, table):
    """Add the entries x of CSR rows to `table`, float64 (k, 4), in their order and in place; returns whether any lay beyond it.

    data float or int, as long as indices, or empty with `unit`: every value is 1. Entries of value 0 count as absent. `weight`:
    float64 (n), u, or None: all are 1; rows of weight 0 are skipped. Feature `first` + i has row p = i of the table, or row
    slots[i] (int64, −1: none) unless `slots` is None; it gets the largest |x|, Σ u (x − about[p]), Σ u (x − about[p])² and Σ u,
    where None for `about` is 0. Entries of other features are skipped.
    """
    value, u, beyond = 1.0, 1.0, False
    for i in range(len(indptr) - 1):
        if weight is not None:
            u = weight[i]
            if u == 0.0:
                continue
        for t in range(indptr[i], indptr[i + 1]):
            p = indices[t] - first
            if slots is not None and p >= 0:
                p = slots[p]
            if p < 0 or p >= len(table):
                beyond |= p >= 0
                continue
            if not unit:
                value = np.float64(data[t])
                if value == 0.0:
                    continue
            row, x = table[p], value
            if about is not None:
                x -= about[p]
            row[LARGEST] = max(row[LARGEST], abs(value))
            row[TOTAL] += u * x
            row[SQUARES] += u * (x * x)
            row[NONZEROS] += u
    return beyond


@kernel
def row_statistics(indptr, indices, data, unit):
    """(largest |value|, largest squared row norm, longest row, largest index or -1); `unit`: every value is 1."""
    largest, norm, longest, top = 0.0, 0.0, 0, -1
    for i in range(len(indptr) - 1):
        start, stop = indptr[i], indptr[i + 1]
        longest = max(longest, stop - start)
        if stop > start:
            top = max(top, indices[stop - 1])
        if unit:
            norm = max(norm, float(stop - start))
            largest = max(largest, 1.0 if stop > start else 0.0)
            continue
        total = 0.0
        for t in range(start, stop):
            value = np.float64(data[t])  # Numba's float() keeps float32
            total += value * value
            largest = max(largest, abs(value))
        norm = max(norm, total)
    return largest, norm, longest, top
