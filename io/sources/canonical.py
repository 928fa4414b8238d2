"""Rows from other programs' arrays in the form that stores keep: sorted, unique, finite, with corrections counted.

Numbers that become indices are checked before they are narrowed and before any kernel uses them. A cast hides errors: 0.5 becomes
0, 2⁶³ + 5 becomes 5 in int32, and −1 is the last one. Kernels check no bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import INT64_MAX
from streamcut.io.sources.labels import Labels
from streamcut.io.sources.source import Place, cuts


@dataclass(frozen=True, slots=True)
class RawRows:
    """n consecutive rows as read from a file, unchecked.

    indptr int (n + 1) starting anywhere; indices any integer type, from that of indptr[0] on; values any real type, or None
    when all are 1; labels float (n) or str objects, qid and weight (n), None: they are elsewhere, or there are none.
    """

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray | None
    labels: np.ndarray | None = None
    qid: np.ndarray | None = None
    weight: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def pieces(self) -> Iterator[RawRows]:
        """The rows in pieces of AT_ONCE entries or one row."""
        for first, stop in cuts(self.indptr):
            entries, rows = slice(*(self.indptr[[first, stop]] - self.indptr[0]).tolist()), slice(first, stop)
            columns = (None if column is None else column[rows] for column in (self.labels, self.qid, self.weight))
            values = None if self.values is None else self.values[entries]
            yield RawRows(self.indptr[first : stop + 1], self.indices[entries], values, *columns)


@dataclass(frozen=True, slots=True)
class RowRules:
    """How rows are to be read; the fields are options of `convert`. `dtype` None keeps that of the file."""

    dtype: str | None = None
    duplicates: str = "error"
    keep_zeros: bool = False
    n_features: int | None = None


def canonical(
    raw: RawRows,
    rules: RowRules,
    counters: Counter,
    where: str,
    first_row: int,
    row_in_file: int,
    labels: Labels | None = None,
) -> Chunk:
    """`raw` as a Chunk. Adds to `counters` what was corrected: unsorted rows, duplicates, dropped zeros, underflows.

    `labels` reads the labels; without it they are finite numbers. `where` and `row_in_file` name the place in messages. Raises
    BadInputError with the first offending row.
    """
    n = raw.n_rows
    place = Place(where, row_in_file + np.arange(n + 1), first_row)
    indptr = expect_pointers(np.asarray(raw.indptr), INT64_MAX, place, "row pointer")
    indptr -= indptr[0]
    nnz = int(indptr[-1])
    lengths = np.diff(indptr)
    indices = np.asarray(raw.indices)
    row_of = np.repeat(np.arange(n), lengths)
    expect_indices(indices, INT64_MAX, lambda k: place(int(row_of[k])))
    if nnz and rules.n_features is not None and indices.max() >= rules.n_features:
        bad = indices.argmax()
        raise BadInputError(
            f"{place(row_of[bad])}: feature {int(indices[bad])} (0-based) is outside the {rules.n_features} features"
        )
    indices = indices.astype(np.int32 if nnz == 0 or indices.max() < 2**31 - 1 else np.int64)
    underflows = counters["values underflowed to 0"]
    values = None if raw.values is None else _values(np.asarray(raw.values), rules, counters, place, row_of)
    row_of, indices, values = _sorted_unique(row_of, indices, values, rules, counters, place)
    if values is not None and not rules.keep_zeros and not values.all():
        kept = values != 0
        underflows -= counters["values underflowed to 0"]
        counters["explicit zeros dropped"] += len(kept) - int(kept.sum()) + underflows
        row_of, indices, values = row_of[kept], indices[kept], values[kept]
    if len(row_of) != nnz:
        indptr = np.concatenate([[0], np.cumsum(np.bincount(row_of, minlength=n))]).astype(np.int64)
    y = np.zeros(n) if raw.labels is None else np.asarray(raw.labels)
    return Chunk(
        indptr,
        indices,
        values,
        y.astype(np.float64) if labels is None else labels.of(y, place),
        None if raw.qid is None else _qid(np.asarray(raw.qid), place),
        None if raw.weight is None else checked_weights(np.asarray(raw.weight), place),
        first_row,
    )


def _values(values: np.ndarray, rules: RowRules, counters: Counter, place: Place, row_of: np.ndarray) -> np.ndarray:
    """float32 or float64 `values`, checked to be finite before and after the conversion."""
    if values.dtype.kind not in "biuf":
        raise BadInputError(f"{place.file}: values of type {values.dtype} are not real numbers")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = int(np.flatnonzero(~np.isfinite(values))[0])
        raise BadInputError(f"{place(row_of[bad])}: value {values[bad]} is not finite")
    if rules.dtype is not None:
        dtype = np.dtype(rules.dtype)
    elif values.dtype.kind == "f":
        dtype = np.dtype(np.float32 if values.dtype.itemsize <= 4 else np.float64)
    else:
        dtype = np.dtype(np.float32 if not values.size or np.abs(values.astype(np.float64)).max() <= 2**24 else np.float64)
    converted = narrowed(values, dtype, lambda bad: place(row_of[bad]))
    counters["values underflowed to 0"] += int(np.count_nonzero((converted == 0) & (values != 0)))
    return converted


def _sorted_unique(row_of, indices, values, rules: RowRules, counters: Counter, place: Place):
    """The entries with indices strictly increasing in each row."""
    same_row = row_of[1:] == row_of[:-1]
    descents = same_row & (indices[1:] < indices[:-1])
    if descents.any():
        counters["rows sorted"] += len(np.unique(row_of[1:][descents]))
        order = np.lexsort((indices, row_of))  # stable: of duplicates, the last in the file stays last
        indices = indices[order]
        values = None if values is None else values[order]
    again = same_row & (indices[1:] == indices[:-1])
    if not again.any():
        return row_of, indices, values
    if rules.duplicates == "error":
        bad = int(np.flatnonzero(again)[0])
        raise BadInputError(
            f"{place(row_of[bad])}: feature {int(indices[bad])} (0-based) occurs twice; use --duplicates=sum or --duplicates=last"
        )
    counters["duplicate entries merged"] += int(again.sum())
    if values is None:
        values = np.ones(len(indices), np.float32)
    if rules.duplicates == "sum":
        starts = np.flatnonzero(np.concatenate([[True], ~again]))
        with np.errstate(over="ignore"):
            values = np.add.reduceat(values.astype(np.float64), starts).astype(values.dtype)
        if not np.isfinite(values).all():
            raise BadInputError(f"{place.file}: the sum of duplicate entries overflows; use --dtype=float64")
        return row_of[starts], indices[starts], values
    last = np.concatenate([~again, [True]])
    return row_of[last], indices[last], values[last]


def _qid(qid: np.ndarray, place: Place) -> np.ndarray:
    whole = qid.dtype.kind in "iu" or (qid.dtype.kind == "f" and (qid == np.floor(qid)).all())
    if not whole or (len(qid) and (qid.min() < 0 or qid.max() > 2**63 - 1)):
        raise BadInputError(f"{place.file}: qid must be whole numbers from 0 to 2^63-1")
    return qid.astype(np.int64)


def narrowed(values: np.ndarray, dtype: np.dtype, place: Callable[[int], str]) -> np.ndarray:
    """`values` as floats of another type. Raises BadInputError for one that does not fit; `place` names that of its number."""
    with np.errstate(over="ignore"):
        floats = values.astype(dtype)
    if not np.isfinite(floats).all():
        bad = int(np.argmin(np.isfinite(floats)))
        raise BadInputError(f"{place(bad)}: value {values[bad]} does not fit {dtype}; use --dtype=float64")
    return floats


def checked_weights(weight: np.ndarray, place: Callable[[int], str]) -> np.ndarray:
    """`weight` as float64. Raises BadInputError for one that is negative or not finite; `place` names its row."""
    weight = weight.astype(np.float64)
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise BadInputError(f"{place(row)}: weight {weight[row]} is negative or not finite")
    return weight


def expect_indices(values: np.ndarray, bound: int, where: str | Callable[[int], str], what: str = "index") -> np.ndarray:
    """`values` unchanged, after checking that they are of an integer type with 0 <= value < `bound`. A cast that holds
    `bound` is safe afterwards.

    where   names the place in messages, or a function that names it for the position of the first wrong value in `values`
    what    noun for a value in messages

    Raises BadInputError. Floats, even whole ones, and booleans are refused.
    """

    def wrong(position: int, how: str) -> BadInputError:
        return BadInputError(f"{where if isinstance(where, str) else where(position)}: {how}")

    if not values.size:  # of any type
        return values
    if values.dtype.kind not in "iu":
        raise wrong(0, f"{what} is of type {values.dtype.name}, not a whole number")
    if values.min() < 0:
        first = int(np.argmax(values < 0))
        raise wrong(first, f"{what} {values.flat[first]} is negative")
    if int(values.max()) >= bound:
        first = int(np.argmax(values > bound - 1)) if bound > 0 else 0
        raise wrong(first, f"{what} {values.flat[first]} is not below {bound:,}")
    return values


def expect_pointers(pointers: np.ndarray, entries: int, where: str | Callable[[int], str], what: str = "pointer") -> np.ndarray:
    """`pointers` as int64, after checking that they are integers from 0 to `entries` and never decrease.

    where, what   as in `expect_indices`

    Raises BadInputError.
    """
    pointers = expect_indices(pointers, entries + 1, where, what).astype(np.int64)
    falls = np.flatnonzero(np.diff(pointers) < 0)
    if len(falls):
        place = where if isinstance(where, str) else where(int(falls[0]))
        raise BadInputError(f"{place}: {what}s decrease; the file is damaged")
    return pointers
