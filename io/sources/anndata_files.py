"""AnnData files (`.h5ad` or Zarr): X by rows, labels from a column of obs. Read directly, slice by slice."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.sources.self_contained import expect_self_contained, readable

ROWS_AT_ONCE = 1 << 16


class AnnDataReader:
    """`labels`, `qid`, `weight`: names of columns of obs. X may be CSR or dense; categories become words for --label-map."""

    def __init__(self, path: str, labels: str, qid: str | None = None, weight: str | None = None) -> None:
        self.path = path
        with readable(path):
            self._look(labels, qid, weight)

    def _look(self, labels: str, qid: str | None, weight: str | None) -> None:
        path, group = self.path, _open(self.path)
        if "X" not in group or "obs" not in group:
            raise BadInputError(f"{path}: not an AnnData file (X and obs are missing)")
        for part in ("X", "obs"):
            expect_self_contained({part: group[part]} if hasattr(group[part], "shape") else group[part], path)
        self.X = group["X"]
        self.dense = hasattr(self.X, "shape")
        if self.dense:
            shape = self.X.shape
        else:
            encoding = self.X.attrs.get("encoding-type", self.X.attrs.get("h5sparse_format"))
            if encoding not in ("csr_matrix", "csr"):
                raise BadInputError(f"{path}: X is stored as {encoding}; store it by rows: adata.X = adata.X.tocsr()")
            shape = self.X.attrs["shape"] if "shape" in self.X.attrs else self.X.attrs["h5sparse_shape"]
        if len(shape) != 2:
            raise BadInputError(f"{path}: X has {len(shape)} dimensions, not 2")
        self.n_rows, self.n_features = (int(size) for size in shape)
        self.held_bytes = 64 * self.n_rows  # the columns of obs, words included
        self.labels = self._column(group["obs"], labels)
        self.qid = None if qid is None else self._column(group["obs"], qid)
        self.weight = None if weight is None else self._column(group["obs"], weight)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with readable(self.path):
            yield from self._dense_rows(start, size) if self.dense else self._sparse_rows(start, size)

    def _sparse_rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        while start < self.n_rows:
            stop = min(start + ROWS_AT_ONCE, self.n_rows)
            bounds = np.asarray(self.X["indptr"][start : stop + 1], np.int64)
            if len(bounds) != stop - start + 1 or (np.diff(bounds) < 0).any():
                raise BadInputError(f"{self.path}: X/indptr is damaged")
            for first, last in row_ranges(bounds, size, self.path, start):
                entries = slice(int(bounds[first]), int(bounds[last]))
                indices, values = self.X["indices"][entries], self.X["data"][entries]
                if len(indices) != len(values) or len(values) != entries.stop - entries.start:
                    raise BadInputError(f"{self.path}: X/indices or X/data ends early; the file is damaged")
                yield self._raw(bounds[first : last + 1], indices, values, slice(start + first, start + last))
            start = stop

    def _dense_rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        at_once = max(1, size.usual // max(1, self.n_features))
        for first in range(start, self.n_rows, at_once):
            last = min(first + at_once, self.n_rows)
            block = np.asarray(self.X[first:last])
            row, column = np.nonzero(block)
            indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=last - first))])
            yield self._raw(indptr, column, block[row, column], slice(first, last))

    def _raw(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, rows: slice) -> RawRows:
        qid = None if self.qid is None else self.qid[rows]
        weight = None if self.weight is None else self.weight[rows]
        return RawRows(indptr, indices, values, self.labels[rows], qid, weight)

    def _column(self, obs, name: str) -> np.ndarray:
        """A column of obs as numbers or words. Raises UsageError naming the columns that there are."""
        if name not in obs:
            known = [str(column) for column in obs.attrs.get("column-order", list(obs))]
            raise UsageError(f"{self.path}: obs has no column {name!r}; it has {', '.join(known) or 'none'}")
        stored = obs[name]
        if hasattr(stored, "shape"):
            values = np.asarray(stored[:])
        elif "categories" in stored and "codes" in stored:
            codes, categories = np.asarray(stored["codes"][:]), np.asarray(stored["categories"][:])
            if len(codes) and codes.min() < 0:
                raise BadInputError(f"{self.path}: obs/{name} has no value in row {int(codes.argmin())} (0-based)")
            values = categories[codes]
        else:
            raise BadInputError(f"{self.path}: obs/{name} is neither a plain column nor categories")
        if len(values) != self.n_rows:
            raise BadInputError(f"{self.path}: obs/{name} has {len(values)} values for {self.n_rows} rows")
        if values.dtype.kind in "biuf":
            return values
        return np.array([value.decode() if isinstance(value, bytes) else str(value) for value in values.tolist()], dtype=object)


def _open(path: str):
    try:
        if os.path.isdir(path):
            import zarr

            return zarr.open_group(path, mode="r")
        import h5py

        return h5py.File(path, "r")
    except (OSError, ValueError, KeyError) as error:
        raise BadInputError(f"{path}: not a readable AnnData file ({error})") from None
