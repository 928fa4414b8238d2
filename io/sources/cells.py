"""Cells: AnnData files (`.h5ad` or Zarr), and matrices of CellRanger (`.h5` of 10x Genomics), whose labels are in another file.

Of AnnData: X, a layer or raw, labels from a column of obs, names from var, read slice by slice. Rows are contiguous in CSR and
dense matrices; entries of CSC matrices are reordered by rows (see `arrays.by_rows`). Nothing outside a file is followed: HDF5 can
refer to other files by links, by virtual data sets and by external storage, and one of Zarr's codecs unpickles.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from streamcut.errors import BadInputError, CorruptError, NotFoundError, UsageError
from streamcut.foundation.opened import readable, regular
from streamcut.foundation.shown import INT64_MAX
from streamcut.io.recipe.recipe import LabelRule, Recipe
from streamcut.io.recipe.table import BOOLEANS
from streamcut.io.sources.arrays import by_rows, entries_of
from streamcut.io.sources.canonical import RawRows, expect_indices, expect_pointers
from streamcut.io.sources.lazy import is_of
from streamcut.io.sources.source import cuts
from streamcut.io.stores.store import expect_files_only

if TYPE_CHECKING:
    import h5py
    import zarr
    from typing_extensions import TypeIs

    from streamcut.io.conversion.options import ConvertOptions

Group: TypeAlias = "h5py.Group | zarr.Group"
Stored: TypeAlias = "h5py.Dataset | zarr.Array"
ROWS_AT_ONCE = 1 << 16
_OBS, _RAW, _BARCODE = "obs:", "raw", "barcode"
NO_LABELS = "none"
_CATEGORIES, _NULLABLE = ("codes", "categories"), ("values", "mask")  # how columns other than plain arrays are stored
_FORMS = {"csr_matrix": "csr", "csc_matrix": "csc"}
_PARTS = ("data", "indices", "indptr", "shape", "barcodes")  # of a matrix of 10x
_CODECS = ("codecs", "filters", "compressor", "compressors")  # in the description of a Zarr array


def opened_hdf5(path: str) -> h5py.File:
    """The HDF5 file `path`. Raises BadInputError for a file that is not HDF5 or has links, NotFoundError."""
    import h5py

    def link(name: str, member: object) -> str | None:
        what = {h5py.SoftLink: "is a link", h5py.ExternalLink: "lies in another file"}.get(type(member))
        return what and f"{name} {what}"

    try:
        place = regular(path)
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    with readable(path, what="not a readable HDF5 file"):
        file = h5py.File(place, "r")
        if outside := file.visititems_links(link):
            raise BadInputError(f"{path}: {outside}; save the data as one file, without links")
        return file


def _opened(path: str) -> Group:
    """The same for a file, or a Zarr group in a folder."""
    if not os.path.isdir(path):
        return opened_hdf5(path)
    import zarr

    try:
        expect_files_only(path)
    except CorruptError as error:
        raise BadInputError(str(error)) from None
    with readable(path, what="not a readable Zarr group"):
        return zarr.open_group(path, mode="r")


def _member(group: Group, name: str, path: str) -> Any:
    """The member of that name ("a/b" is one of `a`), None if there is none. Raises BadInputError for one in another file."""
    try:
        member: Any = group[name]
    except KeyError:
        return None
    where = f"{path}: {str(member.name).strip('/')}"
    if is_of(member, "h5py.Dataset") and (member.is_virtual or member.external):
        raise BadInputError(f"{where} lies in another file; save the data as one file")
    if is_of(member, "zarr.Array", "zarr.Group"):
        described = member.metadata.to_dict()
        if "pickle" in str([described.get(codec) for codec in _CODECS]).lower():
            raise BadInputError(f"{where}: holds pickled objects, which could run code; save it with another codec")
    return member


def is_group(member: object) -> TypeIs[Group]:
    """Whether it is a group; the shape of an array, which may depend on other files, is not looked at."""
    return is_of(member, "h5py.Group", "zarr.Group")


def _is_array(member: Group | Stored | None, *shape: int) -> TypeGuard[Stored]:
    """Whether it is an array of one dimension, or of this shape."""
    return member is not None and not is_group(member) and (member.shape == shape if shape else len(member.shape) == 1)


def _chunk_bytes(*parts: Stored) -> int:
    """Memory for the largest chunk of these arrays while it is unpacked: HDF5 doubles its buffer until all fits, and keeps it."""
    sizes = [part.dtype.itemsize * (1 + part.dtype.hasobject) * math.prod(map(int, part.chunks or (0,))) for part in parts]
    return 3 * max(sizes, default=0)


class _Compressed:
    """The arrays of a CSR matrix of `lines` rows, or a CSC matrix of so many columns, whose indices are below `bound`."""

    def __init__(self, group: Group, lines: int, bound: int, path: str) -> None:
        self._data, self._indices, self._indptr = parts = [_member(group, name, path) for name in _PARTS[:3]]
        if not all(map(_is_array, parts)) or self._indptr.shape != (lines + 1,):
            raise BadInputError(f"{path}: data, indices or indptr do not match the shape; the file is damaged")
        self._lines, self._bound, self._where = lines, bound, path
        self.chunk_bytes = _chunk_bytes(*parts)

    def pointers(self, start: int, stop: int) -> np.ndarray:
        """The pointers of these lines, and the one after them, int64."""
        return expect_pointers(np.asarray(self._indptr[start : stop + 1]), self._data.shape[0], f"{self._where}: indptr")

    def read(self, cut: slice) -> tuple[np.ndarray, np.ndarray]:
        """(indices, values) of a range of the entries."""
        indices, values = (np.asarray(part[cut]) for part in (self._indices, self._data))
        if not len(indices) == len(values) == cut.stop - cut.start:
            raise BadInputError(f"{self._where}: indices or data end early; the file is damaged")
        return expect_indices(indices, self._bound, f"{self._where}: indices"), values

    def rows(self, start: int) -> Iterator[RawRows]:
        """The rows of a CSR matrix from number `start` on."""
        for begin in range(start, self._lines, ROWS_AT_ONCE):
            bounds = self.pointers(begin, min(begin + ROWS_AT_ONCE, self._lines))
            for first, last in cuts(bounds):
                yield RawRows(bounds[first : last + 1], *self.read(slice(*bounds[[first, last]].tolist())))


class AnnDataFile:
    """Labels, query ids and weights are columns of obs (labels also "obs:NAME"); labels "none": zeros.

    Of the options, `layer` names a layer instead of X; "raw": the matrix of raw, with its own var, unless a layer has that name.

    keep      columns of obs for `kept`; `named`: also the names of the cells
    scratch   folder for the scratch file that CSC matrices need
    recipe    the names of the features (var), and where the labels are
    """

    def __init__(
        self, path: str, options: ConvertOptions, scratch: str, *, keep: Sequence[str] = (), named: bool = False
    ) -> None:
        self.path, self._scratch = path, scratch
        with readable(path):
            self._open(str(options.labels), options)
            index = self._index() if named else ""
            self._kept = {name: self._column(name) for name in (*([index] if index else []), *keep)}
            self._shown = {index: _BARCODE} if index in ("_index", "index") else {}

    def _open(self, labels: str, options: ConvertOptions) -> None:
        path, group, layer = self.path, _opened(self.path), options.layer
        held = set(group)
        if "obs" not in held or not {"X", "layers", "raw"} & held:
            raise BadInputError(f"{path}: not an AnnData file (obs, or X and layers, are missing); it holds {', '.join(group)}")
        self._obs = self._frame(group, "obs")
        if layer is None and "X" not in held:
            layers = [*(_member(group, "layers", path) or ()), *[_RAW] * (_RAW in held)]
            raise UsageError(f"{path}: has no X; --layer names the matrix to read, one of {', '.join(layers) or 'none'}")
        self.X, var = (_member(group, "X", path), "var") if layer is None else self._layer(group, layer)
        self.form, self.n_rows, self.n_features = self._form_and_shape()
        if self.form != "dense":
            lines, bound = (self.n_rows, self.n_features) if self.form == "csr" else (self.n_features, self.n_rows)
            self._matrix = _Compressed(self.X, lines, bound, path)
        chunk = _chunk_bytes(self.X) if self.form == "dense" else self._matrix.chunk_bytes
        name = labels.removeprefix(_OBS)
        none = labels == NO_LABELS and NO_LABELS not in list(self._obs)
        wanted = {"labels": None if none else name, "qid": options.qid, "weight": options.weights}
        self._columns = {role: self._column(column) for role, column in wanted.items() if column is not None}
        self._rule = LabelRule(none=True) if none else LabelRule(column=name)
        self._var, self._layer_name = self._frame(group, var) if _member(group, var, path) is not None else None, layer
        chunk = max(chunk, *(_chunk_bytes(*column.parts) for column in self._columns.values()), 0)
        self.held_bytes = chunk + 64 * self.n_rows * (1 + len(self._columns)) + 8 * self.n_features * (self.form == "csc")

    @cached_property
    def recipe(self) -> Recipe:
        with readable(self.path):
            return Recipe(labels=self._rule, names=self._names(), layer=self._layer_name)

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        """Of the columns of obs, by purpose."""
        return {role: column.values() for role, column in self._columns.items()}

    def rows(self, start: int) -> Iterator[RawRows]:
        for part in self._entries(start):
            columns = {role: values[start : start + part.n_rows] for role, values in self._values.items()}
            yield RawRows(part.indptr, part.indices, part.values, **columns)
            start += part.n_rows

    def _entries(self, start: int) -> Iterator[RawRows]:
        if self.form == "dense":
            return entries_of(self.X, start)
        if self.form == "csr":
            return self._matrix.rows(start)
        pointers = self._matrix.pointers(0, self.n_features)
        return by_rows(pointers, self._matrix.read, self.n_rows, self._scratch, f"{self.path}: X", start)

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
        index = self._obs.attrs.get("_index", "_index")
        return index if isinstance(index, str) and index in list(self._obs) else ""

    def _frame(self, group: Group, name: str) -> Group:
        """obs or var."""
        frame = _member(group, name, self.path)
        if not is_group(frame):
            raise BadInputError(
                f"{self.path}: {name} is not a group of columns (as before AnnData 0.7); save it anew with anndata"
            )
        return frame

    def _layer(self, group: Group, layer: str) -> tuple[Group | Stored, str]:
        """(the matrix, the group with its var)."""
        layers = _member(group, "layers", self.path)
        names = list(layers) if is_group(layers) else []
        if layer in names:
            return _member(layers, layer, self.path), "var"
        if layer == _RAW and (matrix := _member(group, "raw/X", self.path)) is not None:
            return matrix, "raw/var"
        raise UsageError(f"{self.path}: no layer {layer!r}; it has {', '.join(names) or 'none'}")

    def _form_and_shape(self) -> tuple[str, int, int]:
        """("csr", "csc" or "dense", rows, columns) of the matrix."""
        form, shape = "dense", () if is_group(self.X) else self.X.shape
        if is_group(self.X):
            encoding = self.X.attrs.get("encoding-type")
            form = _FORMS.get(str(encoding), "")
            if not form:
                raise BadInputError(f"{self.path}: X is stored as {encoding}; csr, csc and dense matrices are read")
            shape = self.X.attrs["shape"]
        if len(shape) != 2:
            raise BadInputError(f"{self.path}: X has {len(shape)} dimensions, not 2")
        rows, columns = expect_indices(np.asarray(shape), INT64_MAX, f"{self.path}: X", "a side of its shape").tolist()
        return form, rows, columns

    def _names(self) -> tuple[str, ...] | None:
        """The names of the features: the index of var."""
        index = "" if self._var is None else self._var.attrs.get("_index", "_index")
        names = _member(self._var, index, self.path) if isinstance(index, str) and index else None
        return tuple(map(_text, np.asarray(names[:]).tolist())) if _is_array(names, self.n_features) else None


class _Column:
    """A column of obs. Nothing is read before `values`. Raises UsageError naming the existing columns, BadInputError."""

    def __init__(self, obs: Group, name: str, n_rows: int, path: str) -> None:
        self._where = f"{path}: obs/{name}"
        member = _member(obs, name, path)
        if member is None:
            order: Any = obs.attrs.get("column-order", list(obs))
            columns = [str(column) for column in order]
            raise UsageError(f"{path}: obs has no column {name!r}; it has {', '.join(columns) or 'none'}")
        parts, self._categories = [member], False
        if is_group(member):
            names = next((names for names in (_CATEGORIES, _NULLABLE) if all(part in member for part in names)), ())
            parts = [_member(member, part, f"{path}: obs/{name}") for part in names]
            self._categories = names is _CATEGORIES
        if not parts or not all(map(_is_array, parts)):
            raise BadInputError(f"{self._where} is neither a plain column nor categories")
        if parts[0].shape[0] != n_rows:
            raise BadInputError(f"{self._where} has {parts[0].shape[0]} values for {n_rows} rows")
        self.parts = parts

    def values(self) -> np.ndarray:
        """Numbers or words, None where there is none."""
        values, *others = (np.asarray(part[:]) for part in self.parts)
        if others and self._categories:
            values = self._words(values, others[0])
        elif others:
            values = values.astype(object)
            values[others[0].astype(bool)] = None
        if values.dtype.kind in "biuf":
            return values
        words = [None if value is None else _text(value) for value in values.tolist()]
        if all(word is None or word in BOOLEANS for word in words):
            return np.array([np.nan if word is None else float(BOOLEANS[word] == "true") for word in words])
        return np.array(words, dtype=object)

    def _words(self, codes: np.ndarray, categories: np.ndarray) -> np.ndarray:
        """The meaning of the codes; −1 means no value."""
        present = codes[codes != -1] if codes.dtype.kind == "i" else codes
        expect_indices(present, len(categories), self._where, "code")
        numbers = categories.dtype.kind in "biuf"
        last = np.array([np.nan if numbers else None], dtype=np.float64 if numbers else object)
        return np.concatenate([categories.astype(last.dtype), last])[codes]


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


class TenXFile:
    """The matrix is stored by barcodes (CSC of features × barcodes), so rows are read directly.

    recipe   names of the features: the gene names, and ids for duplicate names
    """

    def __init__(self, path: str, options: ConvertOptions, scratch: str, **_: object) -> None:
        self.path = path
        with readable(path):
            file = opened_hdf5(path)
            groups = [name for name in file if is_group(file[name]) and all(part in file[name] for part in _PARTS)]
            if len(groups) != 1:
                listed = ", ".join(groups) or "no matrix"
                raise BadInputError(f"{path}: a file with exactly one CellRanger matrix is needed, and this file has {listed}")
            self._group = file[groups[0]]
            shape = _member(self._group, "shape", path)
            if not _is_array(shape, 2):
                raise BadInputError(f"{path}: shape is not that of a matrix; the file is damaged")
            self.n_features, self.n_rows = expect_indices(shape[:], INT64_MAX, f"{path}: shape", "a side").tolist()
            self._matrix = _Compressed(self._group, self.n_rows, self.n_features, path)
            self.held_bytes = self._matrix.chunk_bytes

    @cached_property
    def recipe(self) -> Recipe:
        with readable(self.path):
            return Recipe(names=self._names())

    def rows(self, start: int) -> Iterator[RawRows]:
        return self._matrix.rows(start)

    def kept(self, rows: slice) -> dict[str, list]:
        """The barcodes of these rows."""
        with readable(self.path):
            return {_BARCODE: [word.decode() for word in _member(self._group, "barcodes", self.path)[rows].tolist()]}

    def _names(self) -> tuple[str, ...] | None:
        of = _member(self._group, "features", self.path)
        names = ("features/id", "features/name") if of is not None else ("genes", "gene_names")  # since CellRanger 3, and before
        arrays = [_member(self._group, name, self.path) for name in names]
        if any(part is None for part in arrays):
            return None
        if not all(_is_array(part, self.n_features) for part in arrays):
            raise BadInputError(f"{self.path}: the number of names is not {self.n_features}; the file is damaged")
        codes, words = ([word.decode() for word in part[:].tolist()] for part in arrays)
        twice = Counter(words)
        return tuple(word if twice[word] == 1 else code for code, word in zip(codes, words, strict=True))
