"""A subset of the rows of a data set as a data set of its own: the folds of cross-validation.

The fold of a row follows from its number (or its qid) and a seed, never from shards, so it is the same however the rows are
stored. Training on a view equals training on a store of just those rows: the same sums in the same order.
"""

from __future__ import annotations

import hashlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.units import plain
from streamcut.io.dataset import Dataset, View, first_rows
from streamcut.io.manifest import Manifest, ShardInfo, StatisticsBuilder
from streamcut.io.rows import GOLDEN, mixed, take_rows
from streamcut.io.stores.buffers import ShardBuffers

_COUNTED = 1 << 22  # up to this many rows a share is exact; above, its error is less than a thousandth of it


@dataclass(frozen=True, slots=True)
class Folds:
    """`count` folds of roughly equal size, drawn row by row; `grouped`: rows of one qid together."""

    count: int
    seed: int = 0
    grouped: bool = False

    def of(self, chunk: Chunk, first_row: int) -> np.ndarray:
        """The fold of each row, int64 (n); `first_row` is the number of the first row in the whole data."""
        if not self.grouped:
            return self.of_rows(first_row, chunk.n_rows)
        assert chunk.qid is not None
        return self._of_keys(chunk.qid.view(np.uint64))

    def of_chunk(self, chunk: Chunk) -> np.ndarray:
        """The fold of each row of a chunk that carries its row numbers in the whole data."""
        return self._of_keys(chunk.numbers.view(np.uint64)) if not self.grouped else self.of(chunk, chunk.first_row)

    def of_rows(self, first_row: int, count: int) -> np.ndarray:
        """The same for rows drawn one by one, from their numbers alone."""
        return self._of_keys(np.arange(first_row, first_row + count, dtype=np.uint64))

    def _of_keys(self, keys: np.ndarray) -> np.ndarray:
        return (_mixed(keys, self.seed) % np.uint64(self.count)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Two folds: rows of fold 0 are held out, rows of fold 1 are trained on. It has the interface of Folds.

    share     of the rows, drawn one by one, or of the qids if `grouped`
    rows      number of rows; exactly this share of them is held out. None, or very many: each row is drawn independently
    which     bool (rows): the rows held out, if they are not drawn at random; or int8: 1 for held out, 0 for training,
              −1 for left out; `share` is then ignored
    """

    share: float = 0.2
    seed: int = 0
    grouped: bool = False
    which: np.ndarray | None = None
    rows: int | None = None

    @cached_property
    def _bound(self) -> np.uint64:
        """Rows whose random number is below this are held out."""
        if self.rows is None or self.rows > _COUNTED:
            return np.uint64(self.share * 2.0**64)
        count = min(max(round(self.share * self.rows), 1), self.rows - 1)
        return np.partition(_mixed(np.arange(self.rows, dtype=np.uint64), self.seed), count)[count]

    @property
    def count(self) -> str:
        """Identifies it in fingerprints."""
        if self.which is None:
            return f"{self.share!r}" if self.rows is None else f"{self.share!r} of {self.rows}"
        return hashlib.sha256(self.which.tobytes()).hexdigest()

    def of(self, chunk: Chunk, first_row: int) -> np.ndarray:
        """The fold of each row, int64 (n); `first_row` is the number of the first row in the whole data."""
        if self.which is not None:
            held = self.which[first_row : first_row + chunk.n_rows]
            if len(held) < chunk.n_rows:
                raise UsageError("the data have more rows than were split; have they changed?")
        elif self.grouped:
            assert chunk.qid is not None
            held = _mixed(chunk.qid.view(np.uint64), self.seed) < np.uint64(self.share * 2.0**64)
        else:
            held = _mixed(np.arange(first_row, first_row + chunk.n_rows, dtype=np.uint64), self.seed) < self._bound
        return 1 - held.astype(np.int64)


def drawn_groups(keys: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Which rows are held out, bool (n), keeping rows of one key, uint64 (n), together: keys in random order, up to the number
    that comes nearest to `share` of the rows; at least one and not all."""
    groups, of, counts = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.argsort(_mixed(groups, seed), kind="stable")
    rows = np.cumsum(counts[order])
    taken = np.zeros(len(groups), bool)
    last = int(np.argmin(np.abs(rows - share * len(keys))))
    taken[order[: max(1, min(last + 1, len(groups) - 1))]] = True
    return taken[of]


def _mixed(keys: np.ndarray, seed: int) -> np.ndarray:
    """Random numbers, uint64, of `keys` and a seed."""
    for more in (seed, 0):
        keys = mixed(keys * np.uint64(GOLDEN) + np.uint64((more * GOLDEN + GOLDEN) & (2**64 - 1)))
    return keys


def kept_rows(chunk: Chunk, kept: np.ndarray, space: ShardBuffers, first_row: int = 0) -> Chunk:
    """The rows of `chunk` that are `kept` (bool, n); their entries are copied to `space` unless all are kept."""
    if kept.all():
        return replace(chunk, first_row=first_row)
    return take_rows(chunk, np.flatnonzero(kept), space, first_row)


class RowView(View):
    """The rows of `data` in fold `fold`, or with `others` in all other folds, counted from 0. Made by `fold_views`."""

    def __init__(self, data: Dataset, folds: Folds | HeldOut, fold: int, others: bool, manifest: Manifest) -> None:
        super().__init__(data)
        self.manifest = manifest
        self._which = folds, fold, others
        self._first = first_rows(data.manifest), first_rows(manifest)

    def buffers(self) -> tuple[Any, ShardBuffers]:
        return self.inner.buffers(), ShardBuffers()

    def read(self, shard: int, buffers: tuple[Any, ShardBuffers] | None = None) -> Chunk:
        inner, space = buffers or (None, ShardBuffers())
        chunk = self.inner.read(shard, inner)
        folds, fold, others = self._which
        first, ours = (rows[shard] for rows in self._first)
        kept = (folds.of(chunk, first) == fold) != others
        return kept_rows(chunk, kept, space, ours)


def held_out_view(data: Dataset, held: HeldOut) -> tuple[RowView, RowView]:
    """(rows to train on, rows held out), after one pass through `data` for their statistics.

    Raises UsageError if either is empty.
    """
    training, validation = _views(data, held, [(1, False), (0, False)])
    if not (training.manifest.statistics.n_rows and validation.manifest.statistics.n_rows):
        which = "none" if training.manifest.statistics.n_rows else "all"
        raise UsageError(f"validation: {which} of the {data.manifest.statistics.n_rows:,} rows would be held out")
    return training, validation


def fold_views(data: Dataset, folds: Folds, workers: int = 1) -> list[tuple[RowView, RowView]]:
    """(rows to train on, rows held out) of each fold, after one pass through `data` for their statistics.

    Raises UsageError for a fold with no rows or with all of them.
    """
    views = _views(data, folds, [(fold, others) for fold in range(folds.count) for others in (True, False)], workers)
    empty = [number // 2 for number, view in enumerate(views) if view.manifest.statistics.n_rows == 0]
    if empty:
        what = "queries (qid)" if folds.grouped else "rows"
        raise UsageError(f"folds: {folds.count} are too many for these {what}: fold {empty[0] + 1} or all others are empty")
    return list(zip(views[::2], views[1::2], strict=True))


def _views(data: Dataset, folds: Folds | HeldOut, which: list[tuple[int, bool]], workers: int = 1) -> list[RowView]:
    """A view for each (fold, whether all others instead), their manifests collected shard by shard in one pass."""
    builders, shards = [StatisticsBuilder() for _ in which], [list[ShardInfo]() for _ in which]
    spaces, buffers, first = [ShardBuffers() for _ in which], data.buffers(), first_rows(data.manifest)
    with ThreadPoolExecutor(workers, "folds") as pool:
        for shard, info in enumerate(data.manifest.shards):
            chunk = data.read(shard, buffers)
            numbers = folds.of(chunk, first[shard])

            def add(k: int, info: ShardInfo = info, chunk: Chunk = chunk, numbers: np.ndarray = numbers) -> None:
                rows = kept_rows(chunk, (numbers == which[k][0]) != which[k][1], spaces[k])
                builders[k].add(rows)
                sizes = {"indptr": rows.n_rows + 1, "indices": rows.nnz, "data": rows.nnz}
                arrays = {name: replace(array, size=sizes.get(name, rows.n_rows)) for name, array in info.arrays.items()}
                shards[k].append(replace(info, rows=rows.n_rows, nnz=rows.nnz, arrays=arrays))

            deque(pool.map(add, range(len(which))), 0)  # done before the buffers are used again
    views, whole = [], data.manifest
    for k, (fold, others) in enumerate(which):
        identity = f"{whole.fingerprint} {folds.count} {folds.seed} {folds.grouped} {fold} {others}"
        manifest = replace(
            whole,
            statistics=builders[k].finish(whole.statistics.n_features),
            shards=tuple(shards[k]),
            fingerprint=hashlib.sha256(identity.encode()).hexdigest(),
            extras={},
        )
        views.append(RowView(data, folds, fold, others, manifest))
    return views


def folds_of(data: Dataset, count: Any, seed: int = 0, groups: str | None = "qid") -> Folds:
    """Folds from user arguments: with `groups` "qid" rows of one qid stay together, if the data has any.

    Raises UsageError for invalid arguments.
    """
    statistics, count, seed = data.manifest.statistics, plain(count), plain(seed)
    if isinstance(count, bool) or not isinstance(count, int) or count < 2:
        raise UsageError(f"folds: {count!r} is not a whole number, 2 or above")
    if groups not in ("qid", None):
        raise UsageError(f"group_column: {groups!r} is not offered; use 'qid', which keeps rows of one qid together, or None")
    grouped = groups == "qid" and statistics.groups is not None
    most, what = (statistics.groups or 0, "queries (qid)") if grouped else (statistics.n_rows, "rows")
    if count > most:
        raise UsageError(f"folds: {count} folds need as many {what}, and the data has {most}")
    return Folds(int(count), seed, grouped)
