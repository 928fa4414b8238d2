"""A data set in memory: SciPy or NumPy arrays behind the interface of stores."""

from __future__ import annotations

import hashlib

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk, csr_arrays
from streamcut.io.dataset import ShownDataset, shard_cuts
from streamcut.io.manifest import ArrayInfo, Manifest, ShardInfo, StatisticsBuilder
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.stores.spec import SHARD_NNZ


class MemoryDataset(ShownDataset):
    """`X` (n × d, SciPy sparse or dense) and `y` (n), with optional row weights and query ids, cut into shards of `shard_nnz`.

    Values keep float32 and int8 if `X` has them; everything else becomes float64. Arrays are shared where possible, not copied.
    Raises BadInputError for lengths that differ, features beyond X's, values that are not finite, weights below
    0 and qid that are not grouped.
    """

    path: str | None = None
    recipe: Recipe | None = None

    def __init__(self, X, y, *, weight=None, qid=None, n_features: int | None = None, shard_nnz: int = SHARD_NNZ) -> None:
        indptr, indices, values, (n, d) = csr_arrays(X)
        y = np.ascontiguousarray(y, dtype=np.float64)
        weight = None if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        qid = None if qid is None else np.ascontiguousarray(qid, dtype=np.int64)
        for name, array in (("y", y), ("weight", weight), ("qid", qid)):
            if array is not None and array.shape != (n,):
                raise BadInputError(f"{name} has shape {array.shape}, but X has {n} rows")
        if n == 0:
            raise BadInputError("no rows")
        if n_features is not None and n_features < d:
            raise BadInputError(f"X has {d} features, but n_features is {n_features}")
        for name, array in (("X", values), ("y", y), ("weight", weight)):
            if array is not None and not np.isfinite(array).all():
                raise BadInputError(f"{name} holds nan or infinity")
        if weight is not None and (weight < 0).any():
            raise BadInputError("weight holds negative numbers")
        if qid is not None and 1 + np.count_nonzero(qid[1:] != qid[:-1]) != len(np.unique(qid)):
            raise BadInputError("rows of one qid must stand together; sort the rows by qid")
        data = None if len(values) and (values == 1).all() else values
        whole = Chunk(indptr, indices, data, y, qid, weight)
        builder = StatisticsBuilder()
        self._chunks = [whole.rows(start, stop) for start, stop in shard_cuts(whole, shard_nnz)]
        for chunk in self._chunks:  # sums are those of a store with the same shards
            builder.add(chunk)
        digest = hashlib.sha256(repr(n_features or d).encode())
        for array in (indptr, indices, data, y, qid, weight):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        dtype = "int8" if data is None else data.dtype.name
        self.manifest = Manifest(
            statistics=builder.finish(n_features or d),
            shards=tuple(ShardInfo(c.n_rows, c.nnz, data is None, {"data": ArrayInfo(dtype, c.nnz, 0)}) for c in self._chunks),
            fingerprint=digest.hexdigest(),
            backend="memory",
        )

    def buffers(self) -> None:
        return None

    def read(self, shard: int, buffers: object | None = None) -> Chunk:
        return self._chunks[shard]

    def expect(self, *shards: int) -> None:
        """Nothing to prefetch."""
