"""A data set without the features that no row has: their weights are 0 for any loss, and so are their sums.

Hashing leaves most of 2²² features unused, as does a wide dictionary on part of the data. Weights, cuts and sums have elements
for occurring features only; models get all features back at the end. The order of features is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset, View
from streamcut.io.features import feature_statistics
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import RowView
from streamcut.io.stores.spec import FEATURES

LEAST, MOST = 1 << 16, 1 << 26  # features: with fewer there is nothing to save; with more the index map alone takes too much


class OccurringDataset(View):
    """The rows of `data` with its features `index` (int32, increasing) alone, counted from 0; all others are 0 in every row."""

    def __init__(self, data: Dataset, index: np.ndarray) -> None:
        super().__init__(data)
        self.index = index
        n_features = data.manifest.statistics.n_features
        self._place = np.zeros(n_features, np.int32)  # features not in `index` have value 0, so any place will do
        self._place[index] = np.arange(len(index), dtype=np.int32)
        np.maximum.accumulate(self._place, out=self._place)  # indices of a row stay in order
        statistics = replace(data.manifest.statistics, n_features=len(index))
        self.manifest = replace(data.manifest, statistics=statistics, extras={})  # the same problem: the fingerprint stays

    def read(self, shard: int, buffers: Any = None) -> Chunk:
        rows = self.inner.read(shard, buffers)
        first, last = int(rows.indptr[0]), int(rows.indptr[-1])  # rows in memory are slices of larger arrays
        data = None if rows.data is None else rows.data[first:last]
        indptr = rows.indptr - first if first else rows.indptr
        return replace(rows, indptr=indptr, indices=self._place[rows.indices[first:last]], data=data)

    def memory(self, workers: int, columns: int) -> tuple[tuple[str, int], ...]:
        """Memory it will take, the final model included, in addition to row buffers and what it already has: (what, bytes)."""
        indices = 4 * max((shard.nnz for shard in self.manifest.shards), default=0)  # allocated while the previous one exists
        model = (2 * 8 + 1) * columns * len(self._place)  # weights and witness, and the mask of nonzeros
        what = f"indices of {workers} workers, model of {len(self._place):,} features, of which {len(self.index):,} occur"
        return ((what, workers * 2 * indices + model),)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Spread float64 values (occurring features, further elements, …) over all features; others get 0."""
        known = len(self.index)
        out = np.zeros((len(self._place) + len(values) - known, *values.shape[1:]))
        out[self.index] = values[:known]
        out[len(self._place) :] = values[known:]
        return out


def occurring(data: Dataset) -> Dataset:
    """`data` without features that do not occur, where it is known which do and they are at most half."""
    known = data
    while isinstance(known, ScaledDataset | RowView):  # neither adds nor removes a feature
        known = known.inner
    n_features = known.manifest.statistics.n_features
    if not LEAST <= n_features <= MOST or not (FEATURES in known.manifest.extras or isinstance(known, MemoryDataset)):
        return data
    index = feature_statistics(known).index
    return OccurringDataset(data, index.astype(np.int32)) if 0 < 2 * len(index) <= n_features else data
