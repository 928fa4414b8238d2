"""Bins, means and deviations, found by a pass over numeric columns.

Bins are quantiles of a sample that depends on the rows alone. The last bits of means and deviations, which are sums, depend on
the blocks that rows came in; they are rounded so that those bits do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

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
    """Mean and deviation of the values of a column; nan is skipped."""

    def __init__(self) -> None:
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    def add(self, values: np.ndarray) -> None:
        """Take the values, float64 (n), of more rows."""
        values = values[~np.isnan(values)]
        if not len(values):
            return
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(values.mean())
            squares, count = float(np.square(values - mean).sum()), self._count + len(values)
            step = mean - self._mean
            self._squares += squares + step * step * (self._count * (len(values) / count))
            self._mean += step * (len(values) / count)
        self._count = count

    def standardised(self) -> tuple[float, float]:
        """(centre, spread) that give mean 0 and deviation 1; (value, 1) if all are equal, (0, 1) on overflow."""
        deviation = math.sqrt(self._squares / self._count) if self._count else 0.0
        if not math.isfinite(deviation) or not math.isfinite(self._mean):
            return 0.0, 1.0
        if deviation <= 1e-12 * abs(self._mean) or deviation < _SMALLEST:  # only rounding errors
            return self._mean, 1.0
        step = math.ldexp(1.0, math.frexp(deviation)[1] - _DIGITS)
        return round(self._mean / step) * step, round(deviation / step) * step


def found(
    columns: Iterable[Column], blocks: Iterable[tuple[int, Mapping[str, np.ndarray]]]
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[float, float]]]:
    """({name: edges} of binned columns, {name: (centre, spread)} of the others) from blocks of (first row, {name: values})."""
    columns = list(columns)
    samples = {column.name: QuantileSample() for column in columns if column.bins}
    moments = {column.name: Moments() for column in columns if not column.bins}
    for first_row, values in blocks:
        for name, sample in samples.items():
            sample.add(first_row, values[name])
        for name, each in moments.items():
            each.add(values[name])
    edges = {column.name: samples[column.name].edges(column) for column in columns if column.bins}
    return edges, {name: each.standardised() for name, each in moments.items()}
