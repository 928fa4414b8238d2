"""Stores made by one recipe as one data set: the shards of one after those of the other.

Training on it equals training on one store with the same shards in the same order.
"""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, reduce
from itertools import accumulate, pairwise

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import ShownDataset, first_rows
from streamcut.io.features import by_passes
from streamcut.io.manifest import MAX_DISTINCT_LABELS, Manifest, Statistics, StatisticsBuilder, fingerprint
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe, require_same
from streamcut.io.stores.buffers import ShardBuffers, largest
from streamcut.io.stores.spec import FEATURES
from streamcut.io.stores.store import Store
from streamcut.io.text.inputs import expect_once


class JoinedStores(ShownDataset):
    """The rows of `stores`, which are open. `path` shows their `paths` as they are written in a shell.

    Raises BadInputError for a store of another recipe than the first, naming the difference, for qid or weights in some stores
    only, and for a qid that ends a store and begins the next.
    """

    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores, first = stores, stores[0]
        self.paths, self.recipe = [str(store.path) for store in stores], first.recipe
        self.path = shlex.join(self.paths)
        for store in stores[1:]:
            require_same(first.recipe, store.recipe, str(store.path), str(first.path))
            there, here = ((data.recipe or Recipe()).names for data in (first, store))
            if there is not None and here is not None and len(here) > len(there):
                raise BadInputError(
                    f"{store.path}: feature {len(there)} (0-based), {here[len(there)]!r}, is none of {first.path}"
                )
            if (first.recipe or Recipe()).labels != (store.recipe or Recipe()).labels:
                raise BadInputError(f"{store.path}: its labels are other words, or of another column, than those of {first.path}")
        parts = [store.manifest.statistics for store in stores]
        if len({(part.groups is None, part.weight_sum is None) for part in parts}) > 1:
            raise BadInputError(f"{self.path}: some stores have qid or weights and others do not")
        if parts[0].groups is not None:
            for one, following in pairwise(stores):
                last, begins = one.read(len(one.manifest.shards) - 1).qid, following.read(0).qid
                if last is not None and begins is not None and last[-1] == begins[0]:
                    raise BadInputError(f"{following.path}: begins with qid {begins[0]}, with which {one.path} ends")
        shards = tuple(shard for store in stores for shard in store.manifest.shards)
        statistics = reduce(_sum, parts)
        kept = all(FEATURES in store.manifest.extras for store in stores)
        self.manifest = Manifest(
            statistics,
            shards,
            fingerprint(statistics.n_features, shards),
            "hdf5" if any(store.manifest.backend == "hdf5" for store in stores) else "zarr",
            extras={FEATURES: (0, 0)} if kept else {},
        )
        self._firsts = [0, *accumulate(len(store.manifest.shards) for store in stores)]
        self._rows = first_rows(self.manifest)
        if statistics.weight_sum is not None:  # of which sums are those of one store, added shard by shard
            builder, buffers = StatisticsBuilder(), self.buffers()
            for shard in range(len(shards)):
                builder.add(self.read(shard, buffers))
            self.manifest = replace(self.manifest, statistics=builder.finish(statistics.n_features))

    @property
    def held_bytes(self) -> int:
        return sum(store.held_bytes for store in self._stores)

    def buffers(self) -> ShardBuffers:
        return ShardBuffers(largest(self.manifest))

    def read(self, shard: int, buffers: ShardBuffers | None = None) -> Chunk:
        number = bisect_right(self._firsts, shard) - 1
        return replace(self._stores[number].read(shard - self._firsts[number], buffers), first_row=self._rows[shard])

    def expect(self, *shards: int) -> None:
        for number, (first, stop) in enumerate(pairwise(self._firsts)):
            self._stores[number].expect(*(shard - first for shard in shards if first <= shard < stop))

    def extra(self, name: str) -> bytes:
        """The statistics of features, from the rows."""
        return self._features

    @cached_property
    def _features(self) -> bytes:
        return by_passes(self).to_bytes()


def _sum(one: Statistics, other: Statistics) -> Statistics:
    """The statistics of the rows of both, without weights."""
    labels = None
    if one.labels is not None and other.labels is not None:
        labels = dict(sorted((Counter(one.labels) + Counter(other.labels)).items()))
    return replace(
        one,
        n_rows=one.n_rows + other.n_rows,
        n_features=max(one.n_features, other.n_features),
        nnz=one.nnz + other.nnz,
        labels=labels if labels is not None and len(labels) <= MAX_DISTINCT_LABELS else None,
        label_min=min(one.label_min, other.label_min),
        label_max=max(one.label_max, other.label_max),
        groups=None if one.groups is None or other.groups is None else one.groups + other.groups,
        max_abs_value=max(one.max_abs_value, other.max_abs_value),
        max_squared_norm=max(one.max_squared_norm, other.max_squared_norm),
        max_row_nnz=max(one.max_row_nnz, other.max_row_nnz),
    )


def opened(paths: str | Sequence[str]) -> Store | JoinedStores:
    """The store at a path, or the stores at several as one data set. Raises what opening them raises."""
    names = [paths] if isinstance(paths, str) else list(paths)
    expect_once(names)
    stores = [open_dataset(name) for name in names]
    return stores[0] if len(stores) == 1 else JoinedStores(stores)
