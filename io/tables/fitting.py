"""Bins, means and deviations, found by a pass over numeric columns.

Bins are quantiles of a sample that depends on the rows alone. The last bits of means and deviations, which are sums, depend on
the blocks that rows came in; they are rounded so that those bits do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from streamcut.errors import BadInputError
from streamcut.io.conversion.shuffle import random_keys
from streamcut.io.recipe.table import Column

_DIGITS = 12  # binary digits kept in a deviation; a mean is a multiple of the last one
_SMALLEST = 1e-150  # deviations below it: their squares are not normal numbers
SAMPLE = 1 << 17  # values of a column; with fewer rows the quantiles are exact


class QuantileSample:
    """The values of the rows with the smallest random numbers, which depend on the row number alone, not on the blocks."""

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._keys = np.empty(0, np.uint64)

    def add(self, first_row: int, values: np.ndarray) -> None:
        """Take the values, float64 (n,), of rows from number `first_row` on; nan is skipped."""
        known = ~np.isnan(values)
        keys = random_keys(0, first_row + np.arange(len(values)))[known]
        self._keys = np.concatenate([self._keys, keys])
        self._values = np.concatenate([self._values, values[known]])
        if len(self._keys) > SAMPLE:
            kept = np.argpartition(self._keys, SAMPLE - 1)[:SAMPLE]
            self._keys, self._values = self._keys[kept], self._values[kept]

    def edges(self, column: Column) -> tuple[float, ...]:
        """The lower edges of all bins of `column` but the first: distinct quantiles. Raises BadInputError without values."""
        if not len(self._values):
            raise BadInputError(f"column {column.name!r} has no value to find bins from")
        ordered = np.sort(self._values)
        places = np.ceil(np.arange(1, column.bins) * (len(ordered) / column.bins)).astype(np.int64)
        found = np.unique(ordered[np.minimum(places, len(ordered) - 1)])
        return tuple(found[found > ordered[0]].tolist())


class Moments:
    """Means and deviations of the values of `columns` columns; nan is skipped."""

    def __init__(self, columns: int) -> None:
        self._count, self._mean, self._squares = np.zeros(columns), np.zeros(columns), np.zeros(columns)

    def add(self, values: np.ndarray) -> None:
        """Take the values, float64 (columns, n), of more rows."""
        missing = np.isnan(values)
        more = values.shape[1] - missing.sum(axis=1)
        count = self._count + more
        part = more / np.maximum(count, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.where(missing, 0.0, values).sum(axis=1) / np.maximum(more, 1.0)
            squares = np.square(np.where(missing, 0.0, values - mean[:, None])).sum(axis=1)
            step = mean - self._mean
            self._squares += squares + step * step * (self._count * part)
            self._mean += step * part
        self._count = count

    def standardised(self) -> list[tuple[float, float]]:
        """(centre, spread) of each that give mean 0 and deviation 1; (value, 1) if all are equal, (0, 1) on overflow."""
        sums = zip(self._count.tolist(), self._mean.tolist(), self._squares.tolist(), strict=True)
        return [_standardised(*each) for each in sums]


def _standardised(count: float, mean: float, squares: float) -> tuple[float, float]:
    deviation = math.sqrt(squares / count) if count else 0.0
    if not math.isfinite(deviation) or not math.isfinite(mean):
        return 0.0, 1.0
    if deviation <= 1e-12 * abs(mean) or deviation < _SMALLEST:  # only rounding errors
        return mean, 1.0
    step = math.ldexp(1.0, math.frexp(deviation)[1] - _DIGITS)
    return round(mean / step) * step, round(deviation / step) * step


def found(
    columns: Sequence[Column], blocks: Iterable[tuple[int, np.ndarray]]
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[float, float]]]:
    """({name: edges} of binned columns, {name: (centre, spread)} of the others) from blocks of (first row, values), float64
    (columns, n)."""
    samples = {number: QuantileSample() for number, column in enumerate(columns) if column.bins}
    others = [number for number, column in enumerate(columns) if not column.bins]
    moments = Moments(len(others))
    for first_row, values in blocks:
        for number, sample in samples.items():
            sample.add(first_row, values[number])
        if others:
            moments.add(values[others] if samples else values)
    edges = {columns[number].name: sample.edges(columns[number]) for number, sample in samples.items()}
    return edges, dict(zip([columns[number].name for number in others], moments.standardised(), strict=True))
