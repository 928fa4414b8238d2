"""Bins of numeric columns: quantiles of a sample that depends on the rows alone, found by a pass over those columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from streamcut.errors import BadInputError
from streamcut.io.conversion.shuffle import random_keys
from streamcut.io.recipe.table import Column

SAMPLE = 1 << 17  # values of a column; of fewer rows the quantiles are exact


class QuantileSample:
    """The values of the rows whose random number (of the row's number alone) is among the smallest: the same for any blocks."""

    def __init__(self) -> None:
        self._values = np.empty(0)
        self._keys = np.empty(0, np.uint64)

    def add(self, first_row: int, values: np.ndarray) -> None:
        """Take the values, float64 (n,), of rows from number `first_row` on; nan is none."""
        known = ~np.isnan(values)
        keys = random_keys(0, first_row + np.arange(len(values)))[known]
        self._keys = np.concatenate([self._keys, keys])
        self._values = np.concatenate([self._values, values[known]])
        if len(self._keys) > SAMPLE:
            kept = np.argpartition(self._keys, SAMPLE - 1)[:SAMPLE]
            self._keys, self._values = self._keys[kept], self._values[kept]

    def edges(self, column: Column) -> tuple[float, ...]:
        """Where the bins of `column` begin, but for the first: quantiles, each once. Raises BadInputError without values."""
        if not len(self._values):
            raise BadInputError(f"column {column.name!r} has no value to find bins from")
        ordered = np.sort(self._values)
        places = np.ceil(np.arange(1, column.bins) * (len(ordered) / column.bins)).astype(np.int64)
        found = np.unique(ordered[np.minimum(places, len(ordered) - 1)])
        return tuple(found[found > ordered[0]].tolist())


def sampled(columns: Iterable[Column], blocks: Iterable[tuple[int, Mapping[str, np.ndarray]]]) -> dict[str, tuple[float, ...]]:
    """{name: edges} of binned `columns` from blocks of (first row, {name: values})."""
    samples = {column.name: QuantileSample() for column in columns}
    for first_row, values in blocks:
        for name, sample in samples.items():
            sample.add(first_row, values[name])
    return {column.name: samples[column.name].edges(column) for column in columns}
