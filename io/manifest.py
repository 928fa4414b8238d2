"""A data set's description of itself: counts, statistics and, for each shard, the form of every stored array."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from streamcut.foundation.chunk import Chunk

MAX_DISTINCT_LABELS = 4096


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """One array of one shard: dtype (NumPy name), number of elements, and its checksums.

    stored_bytes, stored_crc32c   the chunk file without its own trailing checksum (a CRC over data + CRC is constant)
    content_crc32c                the decoded little-endian bytes, of which the fingerprint is made
    """

    dtype: str
    size: int
    content_crc32c: int
    stored_bytes: int = 0
    stored_crc32c: int = 0


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """One shard: rows, stored entries, whether every value is 1, its arrays, and (length, crc32c) of its metadata files."""

    rows: int
    nnz: int
    ones: bool
    arrays: dict[str, ArrayInfo] = field(default_factory=dict)
    files: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Statistics:
    """What training and `info` need to know about the rows without reading them.

    labels is {label: rows} or None when there are more than MAX_DISTINCT_LABELS; groups counts runs of equal qid. label_weights
    is {label: sum of weights} of weighted rows, where their labels are listed.
    """

    n_rows: int = 0
    n_features: int = 0
    nnz: int = 0
    labels: dict[float, int] | None = field(default_factory=dict)
    label_min: float = 0.0
    label_max: float = 0.0
    groups: int | None = None
    weight_sum: float | None = None
    max_abs_value: float = 0.0
    max_squared_norm: float = 0.0
    max_row_nnz: int = 0
    label_weights: dict[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """The whole data set. `source` records what `convert` was given and what it counted (JSON types only).

    `extras` are (length, CRC-32C) of files that are read on demand.
    """

    statistics: Statistics
    shards: tuple[ShardInfo, ...]
    fingerprint: str
    backend: str
    source: dict = field(default_factory=dict)
    format_version: int = 2
    streamcut_version: str = ""
    files: dict[str, tuple[int, int]] = field(default_factory=dict)
    extras: dict[str, tuple[int, int]] = field(default_factory=dict)


class StatisticsBuilder:
    """Collects Statistics over chunks that arrive in row order."""

    def __init__(self) -> None:
        self.n_rows = self.nnz = self.n_features = self.max_row_nnz = 0
        self.labels: Counter[float] | None = Counter()
        self.label_min, self.label_max = np.inf, -np.inf
        self.groups: int | None = None
        self.weight_sum: float | None = None
        self.label_weights: Counter[float] | None = None
        self.max_abs_value = self.max_squared_norm = 0.0
        self._last_qid: int | None = None

    def add(self, chunk: Chunk) -> None:
        if chunk.n_rows == 0:
            return
        from streamcut.io.statistics_kernels import row_statistics  # Numba takes longer to import than most commands need

        unit = chunk.data is None
        data = np.empty(0, np.int8) if chunk.data is None else chunk.data
        largest, norm, longest, top = row_statistics(chunk.indptr, chunk.indices, data, unit)
        self.n_rows += chunk.n_rows
        self.nnz += chunk.nnz
        self.n_features = max(self.n_features, int(top) + 1)
        self.max_abs_value = max(self.max_abs_value, float(largest))
        self.max_squared_norm = max(self.max_squared_norm, float(norm))
        self.max_row_nnz = max(self.max_row_nnz, int(longest))
        self.label_min = min(self.label_min, float(chunk.y.min()))
        self.label_max = max(self.label_max, float(chunk.y.max()))
        if self.labels is not None:
            values, which, counts = np.unique(chunk.y, return_inverse=True, return_counts=True)
            if len(values) <= MAX_DISTINCT_LABELS:
                self.labels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
                if chunk.weight is not None:
                    weights = np.bincount(which, chunk.weight).tolist()
                    self.label_weights = self.label_weights or Counter()
                    self.label_weights.update(dict(zip(values.tolist(), weights, strict=True)))  # type: ignore[arg-type]
            if len(values) > MAX_DISTINCT_LABELS or len(self.labels) > MAX_DISTINCT_LABELS:
                self.labels = self.label_weights = None
        if chunk.qid is not None:
            changes = int(np.count_nonzero(chunk.qid[1:] != chunk.qid[:-1]))
            self.groups = (self.groups or 0) + changes + (self._last_qid != int(chunk.qid[0]))
            self._last_qid = int(chunk.qid[-1])
        if chunk.weight is not None:
            with np.errstate(over="ignore"):  # callers that need it finite check
                self.weight_sum = (self.weight_sum or 0.0) + float(chunk.weight.sum())

    def is_finite(self) -> bool:
        """Whether no sum has overflowed."""
        return math.isfinite(self.max_squared_norm + (self.weight_sum or 0.0))

    def state(self) -> dict:
        """Everything in JSON types, for `from_state` in another process; at least one row must have been added."""
        state = dict(vars(self))
        return state | {name: _pairs(state[name]) for name in ("labels", "label_weights")}

    @classmethod
    def from_state(cls, state: dict) -> StatisticsBuilder:
        """A builder that continues from what `state()` returned, with the same statistics bit for bit."""
        builder = cls()
        vars(builder).update(state)
        for name in ("labels", "label_weights"):
            setattr(builder, name, None if state[name] is None else Counter(dict(state[name])))
        return builder

    def finish(self, n_features: int | None = None) -> Statistics:
        """The statistics so far; `n_features` overrides the number seen (it must not be smaller)."""
        found = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        for name in ("labels", "label_weights"):
            found[name] = None if found[name] is None else dict(sorted(found[name].items()))
        found |= {} if n_features is None else {"n_features": n_features}
        return Statistics(**found | ({} if self.n_rows else {"label_min": 0.0, "label_max": 0.0}))


def _pairs(counter: Counter[float] | None) -> list | None:
    return None if counter is None else sorted(counter.items())
