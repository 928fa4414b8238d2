"""Cells: AnnData files (`.h5ad` or Zarr), and matrices of CellRanger (`.h5` of 10x Genomics), whose labels are in another file.

Of AnnData: X, a layer or raw, labels from a column of obs, names from var, read slice by slice. Rows are contiguous in CSR and
dense matrices; entries of CSC matrices are reordered by rows (see `scattered.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.fields import INT64_MAX
from streamcut.foundation.opened import readable
from streamcut.io.indices import expect_indices, expect_pointers
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.recipe.table import BOOLEANS
from streamcut.io.sources import scattered
from streamcut.io.sources.arrays import Entries, dense_entries
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.matrix_files import SideFiles
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.sources.self_contained import CHUNK_COPIES, Array, Members, opened_hdf5, opened_members

ROWS_AT_ONCE = 1 << 16
_OBS, _RAW, _BARCODE = "obs:", "raw", "barcode"
NO_LABELS = "none"
_CATEGORIES, _NULLABLE = ("codes", "categories"), ("values", "mask")  # how columns other than plain arrays are stored
_FORMS = {"csr_matrix": "csr", "csc_matrix": "csc"}
_PARTS = ("data", "indices", "indptr", "shape", "barcodes")  # of a matrix of 10x


class _Stored:
    """The arrays of a CSR matrix of `lines` rows, or a CSC matrix of so many columns, whose indices are below `bound`."""

    def __init__(self, group: Members, lines: int, bound: int, where: str) -> None:
        self._data, self._indices, self.indptr = parts = [group[name] for name in _PARTS[:3]]
        if not all(isinstance(part, Array) and len(part.shape) == 1 for part in parts) or len(self.indptr) != lines + 1:
            raise BadInputError(f"{where}: data, indices or indptr do not match the shape; the file is damaged")
        self._lines, self._bound, self._where = lines, bound, where
        self.chunk_bytes = max(part.chunk_bytes for part in parts)

    def pointers(self, start: int, stop: int) -> np.ndarray:
        """The pointers of these lines, and the one after them, int64."""
        return expect_pointers(self.indptr[start : stop + 1], len(self._data), f"{self._where}/indptr")

    def read(self, cut: slice) -> tuple[np.ndarray, np.ndarray]:
        """(indices, values) of a range of the entries."""
        indices, values = expect_indices(self._indices[cut], self._bound, f"{self._where}/indices"), self._data[cut]
        if not len(indices) == len(values) == cut.stop - cut.start:
            raise BadInputError(f"{self._where}: indices or data end early; the file is damaged")
        return indices, values

    def rows(self, start: int, size: BlockSize, path: str) -> Iterator[Entries]:
        """The rows of a CSR matrix from number `start` on."""
        while start < self._lines:
            stop = min(start + ROWS_AT_ONCE, self._lines)
            bounds = self.pointers(start, stop)
            for first, last in row_ranges(bounds, size, path, start):
                yield Entries(
                    start + first, start + last, bounds[first : last + 1], *self.read(slice(*bounds[[first, last]].tolist()))
                )
            start = stop


class AnnDataReader:
    """`labels`, `qid`, `weight`: names of columns of obs (labels also "obs:NAME"); labels "none": zeros.

    layer     the name of a layer instead of X; "raw": the matrix of raw, with its own var, unless a layer has that name
    keep      columns of obs for `kept`; `named`: also the names of the cells
    scratch   folder for the scratch file that CSC matrices need
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
        keep: Sequence[str] = (),
        named: bool = False,
    ) -> None:
        self.path, self._scratch = path, scratch
        with readable(path):
            self._open(labels, qid, weight, layer)
            index = self._index() if named else ""
            self._kept = {name: self._column(name) for name in (*([index] if index else []), *keep)}
            self._shown = {index: _BARCODE} if index in ("_index", "index") else {}

    def _open(self, labels: str, qid: str | None, weight: str | None, layer: str | None) -> None:
        path, group = self.path, opened_members(self.path)
        if "obs" not in group or not {"X", "layers", "raw"} & set(group):
            raise BadInputError(f"{path}: not an AnnData file (obs, or X and layers, are missing); it holds {', '.join(group)}")
        self._obs = self._frame(group, "obs")
        if layer is None and "X" not in group:
            held = list(group.get("layers") or ()) + [_RAW] * bool({"raw"} & set(group))
            raise UsageError(f"{path}: has no X; --layer names the matrix to read, one of {', '.join(held) or 'none'}")
        self.X, var = (group["X"], "var") if layer is None else self._layer(group, layer)
        self.form, self.n_rows, self.n_features = self._form_and_shape()
        if self.form == "dense":
            widest = self.X.chunk_bytes
        else:
            lines, bound = (self.n_rows, self.n_features) if self.form == "csr" else (self.n_features, self.n_rows)
            self._matrix = _Stored(self.X, lines, bound, f"{path}: X")
            widest = self._matrix.chunk_bytes
        name = labels.removeprefix(_OBS)
        none = labels == NO_LABELS and NO_LABELS not in list(self._obs)
        wanted = {"labels": None if none else name, "qid": qid, "weight": weight}
        self._columns = {role: self._column(column) for role, column in wanted.items() if column is not None}
        self._rule = LabelRule(none=True) if none else LabelRule(column=name)
        self._var, self._layer_name = self._frame(group, var) if group.get(var) is not None else None, layer
        widest = max(widest, *(part.chunk_bytes for column in self._columns.values() for part in column.parts), 0)
        self.held_bytes = 64 * self.n_rows + CHUNK_COPIES * widest
        self.held_bytes += sum(column.held_bytes for column in self._columns.values())
        if self.form == "csc":
            self.held_bytes += scattered.held_bytes(self.n_rows) + 8 * self.n_features

    @cached_property
    def recipe(self) -> Recipe:
        with readable(self.path):
            return Recipe(labels=self._rule, names=self._names(), layer=self._layer_name)

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        """Of the columns of obs, by purpose."""
        zeros = {"labels": np.zeros(self.n_rows)}
        return zeros | {role: column.values() for role, column in self._columns.items()}

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with readable(self.path):
            values = self._values
            for part in self._entries(start, size):
                rows = slice(part.first, part.stop)
                labels, qid, weight = (values[role][rows] if role in values else None for role in ("labels", "qid", "weight"))
                assert labels is not None
                yield RawRows(part.indptr, part.indices, part.values, labels, qid, weight)

    def _entries(self, start: int, size: BlockSize) -> Iterator[Entries]:
        if self.form == "dense":
            yield from dense_entries(self.X, size, start)
        elif self.form == "csc":
            indptr = self._matrix.pointers(0, self.n_features)

            def blocks() -> Iterator[scattered.Scattered]:
                return scattered.column_entries(indptr, self._matrix.read, f"{self.path}: X")

            yield from scattered.by_rows(blocks, self.n_rows, self._scratch, size, self.path, start)
        else:
            yield from self._matrix.rows(start, size, self.path)

    def kept(self, rows: slice) -> dict[str, list]:
        """The kept columns of these rows, numbers or strings, None where there is no value."""
        return {self._shown.get(name, name): values[rows] for name, values in self._kept_values.items()}

    @cached_property
    def _kept_values(self) -> dict[str, list]:
        with readable(self.path):
            return {name: column.values().tolist() for name, column in self._kept.items()}

    def _column(self, name: str) -> _Column:
        return _Column(self._obs, name, self.n_rows, self.path)

    def _index(self) -> str:
        """The column of obs with the names of the cells; "" if there is none."""
        known = list(self._obs)
        index = self._obs.attrs.get("_index", "_index")
        return index if isinstance(index, str) and index in known else ""

    def _frame(self, group: Members, name: str) -> Members:
        """obs or var."""
        found = group[name]
        if not isinstance(found, Members):
            raise BadInputError(
                f"{self.path}: {name} is not a group of columns (as before AnnData 0.7); save it anew with anndata"
            )
        return found

    def _layer(self, group: Members, layer: str) -> tuple[Any, str]:
        """(the matrix, the group with its var)."""
        layers = group.get("layers")
        known = list(layers) if isinstance(layers, Members) else []
        if layer in known:
            return layers[layer], "var"
        if layer == _RAW and (found := group.get("raw/X")) is not None:
            return found, "raw/var"
        raise UsageError(f"{self.path}: no layer {layer!r}; it has {', '.join(known) or 'none'}")

    def _form_and_shape(self) -> tuple[str, int, int]:
        """("csr", "csc" or "dense", rows, columns) of the matrix."""
        attributes = self.X.attrs
        if isinstance(self.X, Array):
            form, shape = "dense", self.X.shape
        else:
            encoding = attributes.get("encoding-type")
            form = _FORMS.get(str(encoding), "")
            if not form:
                raise BadInputError(f"{self.path}: X is stored as {encoding}; csr, csc and dense matrices are read")
            shape = attributes["shape"]
        if len(shape) != 2:
            raise BadInputError(f"{self.path}: X has {len(shape)} dimensions, not 2")
        rows, columns = expect_indices(np.asarray(shape), INT64_MAX, f"{self.path}: X", "a side of its shape").tolist()
        return form, rows, columns

    def _names(self) -> tuple[str, ...] | None:
        """The names of the features: the index of var."""
        if self._var is None:
            return None
        index = self._var.attrs.get("_index", "_index")
        found = self._var.get(index) if isinstance(index, str) else None
        if not isinstance(found, Array) or found.shape != (self.n_features,):
            return None
        return tuple(_text(name) for name in found[:].tolist())


class _Column:
    """A column of obs, stored as `parts`; nothing is read before `values`.

    Raises UsageError naming the existing columns, BadInputError.
    """

    def __init__(self, obs: Members, name: str, n_rows: int, path: str) -> None:
        self._where = f"{path}: obs/{name}"
        found = obs.get(name)
        if found is None:
            known = [str(column) for column in obs.attrs.get("column-order", list(obs))]
            raise UsageError(f"{path}: obs has no column {name!r}; it has {', '.join(known) or 'none'}")
        parts, self._categories = [found], False
        if not isinstance(found, Array):
            names = next((names for names in (_CATEGORIES, _NULLABLE) if all(part in found for part in names)), ())
            parts = [found[part] for part in names]
            self._categories = names is _CATEGORIES
        if not parts or not all(isinstance(part, Array) and len(part.shape) == 1 for part in parts):
            raise BadInputError(f"{self._where} is neither a plain column nor categories")
        if len(parts[0]) != n_rows:
            raise BadInputError(f"{self._where} has {len(parts[0])} values for {n_rows} rows")
        self.parts: list[Array] = parts
        self.held_bytes = sum(64 * len(part) for part in parts[1:])

    def values(self) -> np.ndarray:
        """Numbers or words, None where there is none."""
        values = self.parts[0][:]
        if len(self.parts) == 2 and self._categories:
            values = self._words(values, self.parts[1][:])
        elif len(self.parts) == 2:
            values = values.astype(object)
            values[self.parts[1][:].astype(bool)] = None
        if values.dtype.kind in "biuf":
            return values
        words = [None if value is None else _text(value) for value in values.tolist()]
        if all(word is None or word in BOOLEANS for word in words):
            return np.array([np.nan if word is None else float(BOOLEANS[word] == "true") for word in words])
        return np.array(words, dtype=object)

    def _words(self, codes: np.ndarray, categories: np.ndarray) -> np.ndarray:
        """The meaning of the codes; −1 means no value."""
        known = codes[codes != -1] if codes.dtype.kind == "i" else codes
        expect_indices(known, len(categories), self._where, "code")
        numbers = categories.dtype.kind in "biuf"
        last = np.array([np.nan if numbers else None], dtype=np.float64 if numbers else object)
        return np.concatenate([categories.astype(last.dtype), last])[codes]


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class TenXReader:
    """The matrix is stored by barcodes (CSC of features × barcodes), so rows are read directly.

    recipe   names of the features: the gene names, and ids for duplicate names
    """

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset
        with readable(path):
            self._open()

    def _open(self) -> None:
        path, file = self.path, opened_hdf5(self.path)
        groups = [(name, group) for name, group in file.groups() if all(part in group for part in _PARTS)]
        if len(groups) != 1:
            listed = ", ".join(name for name, _ in groups) or "no matrix"
            raise BadInputError(f"{path}: a file with exactly one CellRanger matrix is needed, and this file has {listed}")
        ((_, self._group),) = groups
        shape = self._group["shape"]
        if not isinstance(shape, Array) or shape.shape != (2,):
            raise BadInputError(f"{path}: shape is not that of a matrix; the file is damaged")
        sides = expect_indices(shape[:], INT64_MAX, f"{path}: shape", "a side")
        self.n_features, self.n_rows = (int(side) for side in sides)
        self._matrix = _Stored(self._group, self.n_rows, self.n_features, path)
        self.held_bytes = CHUNK_COPIES * self._matrix.chunk_bytes

    @cached_property
    def recipe(self) -> Recipe:
        with readable(self.path):
            return Recipe(names=self._names())

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with readable(self.path):
            for part in self._matrix.rows(start, size, self.path):
                yield self.side.rows(part.indptr, part.indices, part.values, self.offset + part.first)

    def kept(self, rows: slice) -> dict[str, list]:
        """The barcodes of these rows."""
        with readable(self.path):
            return {"barcode": [word.decode() for word in self._group["barcodes"][rows].tolist()]}

    def _names(self) -> tuple[str, ...] | None:
        matrix = self._group
        of = matrix.get("features", matrix)
        ids, names = ("id", "name") if "features" in matrix else ("genes", "gene_names")  # since CellRanger 3, and before
        if not isinstance(of, Members) or ids not in of or names not in of:
            return None
        found = [of[ids], of[names]]
        if not all(isinstance(part, Array) and part.shape == (self.n_features,) for part in found):
            raise BadInputError(f"{self.path}: the number of names is not {self.n_features}; the file is damaged")
        codes, words = ([word.decode() for word in part[:].tolist()] for part in found)
        twice = Counter(words)
        return tuple(word if twice[word] == 1 else code for code, word in zip(codes, words, strict=True))
