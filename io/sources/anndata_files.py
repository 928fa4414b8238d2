"""AnnData files (`.h5ad` or Zarr): X or a layer, labels from a column of obs, names from var. Read slice by slice.

Rows lie together in CSR and dense matrices; of CSC ones the entries are brought into the order of rows (see `scattered.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.recipe.table import BOOLEANS
from streamcut.io.sources import scattered
from streamcut.io.sources.arrays import Entries, dense_entries
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.sources.self_contained import expect_self_contained, readable

ROWS_AT_ONCE = 1 << 16
_OBS = "obs:"
NO_LABELS = "none"
_FORMS = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}


class AnnDataReader:
    """`labels`, `qid`, `weight`: names of columns of obs (labels also "obs:NAME"); labels "none": zeros.

    layer     the name of a layer instead of X
    scratch   folder for a scratch file, which CSC matrices take
    recipe    the names of the features (var), and where the labels are
    """

    def __init__(
        self,
        path: str,
        labels: str,
        qid: str | None = None,
        weight: str | None = None,
        *,
        layer: str | None = None,
        scratch: str = ".",
    ) -> None:
        self.path, self._scratch = path, scratch
        with readable(path):
            self._open(labels, qid, weight, layer)

    def _open(self, labels: str, qid: str | None, weight: str | None, layer: str | None) -> None:
        path, group = self.path, _open(self.path)
        if "X" not in group or "obs" not in group:
            raise BadInputError(f"{path}: not an AnnData file (X and obs are missing)")
        self.X = group["X"] if layer is None else self._layer(group, layer)
        for name, part in (("X", self.X), ("obs", group["obs"]), ("var", group.get("var"))):
            if part is not None:
                expect_self_contained({name: part} if hasattr(part, "shape") else part, path)
        self.form, shape = self._form_and_shape()
        self.n_rows, self.n_features = (int(size) for size in shape)
        self.held_bytes = 64 * self.n_rows  # the columns of obs, words included
        if self.form == "csc":
            self.held_bytes += scattered.held_bytes(self.n_rows) + 8 * self.n_features
        name = labels.removeprefix(_OBS)
        none = labels == NO_LABELS and NO_LABELS not in group["obs"]
        self.labels = np.zeros(self.n_rows) if none else self._column(group["obs"], name)
        self.qid = None if qid is None else self._column(group["obs"], qid)
        self.weight = None if weight is None else self._column(group["obs"], weight)
        rule = LabelRule(none=True) if none else LabelRule(column=name)
        self.recipe = Recipe(labels=rule, names=self._names(group), layer=layer)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with readable(self.path):
            for part in self._entries(start, size):
                rows = slice(part.first, part.stop)
                qid = None if self.qid is None else self.qid[rows]
                weight = None if self.weight is None else self.weight[rows]
                yield RawRows(part.indptr, part.indices, part.values, self.labels[rows], qid, weight)

    def _entries(self, start: int, size: BlockSize) -> Iterator[Entries]:
        if self.form == "dense":
            yield from dense_entries(self.X, size, start)
        elif self.form == "csc":
            indptr = np.asarray(self.X["indptr"][:], np.int64)

            def blocks() -> Iterator[scattered.Scattered]:
                return scattered.column_entries(
                    indptr, lambda cut: (self.X["indices"][cut], self.X["data"][cut]), f"{self.path}: X"
                )

            yield from scattered.by_rows(blocks, self.n_rows, self._scratch, size, self.path, start)
        else:
            yield from self._csr_entries(start, size)

    def _csr_entries(self, start: int, size: BlockSize) -> Iterator[Entries]:
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
                yield Entries(start + first, start + last, bounds[first : last + 1], indices, values)
            start = stop

    def _layer(self, group: Any, layer: str) -> Any:
        known = list(group["layers"]) if "layers" in group else []
        if layer not in known:
            raise UsageError(f"{self.path}: no layer {layer!r}; it has {', '.join(known) or 'none'}")
        return group["layers"][layer]

    def _form_and_shape(self) -> tuple[str, Any]:
        """("csr", "csc" or "dense", (rows, columns)) of the matrix."""
        attributes = self.X.attrs
        if hasattr(self.X, "shape"):
            form, shape = "dense", self.X.shape
        else:
            encoding = attributes.get("encoding-type", attributes.get("h5sparse_format"))
            form = _FORMS.get(str(encoding), "")
            if not form:
                raise BadInputError(f"{self.path}: X is stored as {encoding}; csr, csc and dense matrices are read")
            shape = attributes["shape"] if "shape" in attributes else attributes["h5sparse_shape"]
        if len(shape) != 2:
            raise BadInputError(f"{self.path}: X has {len(shape)} dimensions, not 2")
        return form, shape

    def _names(self, group: Any) -> tuple[str, ...] | None:
        """The names of the features: the index of var."""
        if "var" not in group or not hasattr(group["var"], "attrs"):
            return None
        var = group["var"]
        index = var.attrs.get("_index", "_index")
        if index not in var or not hasattr(var[index], "shape") or var[index].shape != (self.n_features,):
            return None
        return tuple(_text(name) for name in np.asarray(var[index][:]).tolist())

    def _column(self, obs, name: str) -> np.ndarray:
        """A column of obs as numbers or words, None where there is none. Raises UsageError naming the columns that there are."""
        if name not in obs:
            known = [str(column) for column in obs.attrs.get("column-order", list(obs))]
            raise UsageError(f"{self.path}: obs has no column {name!r}; it has {', '.join(known) or 'none'}")
        stored = obs[name]
        if hasattr(stored, "shape"):
            values = np.asarray(stored[:])
        elif "categories" in stored and "codes" in stored:
            codes, categories = np.asarray(stored["codes"][:]), np.asarray(stored["categories"][:])
            numbers = categories.dtype.kind in "biuf"  # the last one, −1, is for what has none
            last = np.array([np.nan if numbers else None], dtype=np.float64 if numbers else object)
            values = np.concatenate([categories.astype(last.dtype), last])[codes]
        elif "values" in stored and "mask" in stored:  # a nullable column
            values = np.asarray(stored["values"][:]).astype(object)
            values[np.asarray(stored["mask"][:]).astype(bool)] = None
        else:
            raise BadInputError(f"{self.path}: obs/{name} is neither a plain column nor categories")
        if len(values) != self.n_rows:
            raise BadInputError(f"{self.path}: obs/{name} has {len(values)} values for {self.n_rows} rows")
        if values.dtype.kind in "biuf":
            return values
        words = [None if value is None else _text(value) for value in values.tolist()]
        if all(word is None or word in BOOLEANS for word in words):
            return np.array([np.nan if word is None else float(BOOLEANS[word] == "true") for word in words])
        return np.array(words, dtype=object)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _open(path: str):
    try:
        if os.path.isdir(path):
            import zarr

            return zarr.open_group(path, mode="r")
        import h5py

        return h5py.File(path, "r")
    except (OSError, ValueError, KeyError) as error:
        raise BadInputError(f"{path}: not a readable AnnData file ({error})") from None
