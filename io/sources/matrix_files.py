"""Matrices of SciPy, NumPy and MatrixMarket, whose labels are in other files; stores; Parquet files with lists of features."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from streamcut.errors import BadInputError, NotFoundError, UsageError
from streamcut.foundation.opened import opened_file, opened_raw, readable, regular
from streamcut.foundation.shown import INT64_MAX
from streamcut.io.dataset import first_rows
from streamcut.io.opening import open_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.arrays import Sliced, entries_of
from streamcut.io.sources.canonical import RawRows, expect_indices, expect_pointers
from streamcut.io.sources.source import expect_room
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.io.text.inputs import NOT_UTF8, Joined, not_text, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    import scipy.sparse as sp

    from streamcut.io.conversion.options import ConvertOptions


class ColumnFile:
    """One value per row: a text file (one per line, compressed or not; blank lines only at the end) or a one-dimensional `.npy`.

    It is read whole. Words stay words (labels go through --label-map later). Raises NotFoundError and BadInputError.
    """

    def __init__(self, path: str, what: str) -> None:
        try:
            regular(path)
        except OSError as error:
            needed = f"{what} needs a text file with one value per line, or a .npy file"
            raise NotFoundError(f"{path}: {error.strerror}; {needed}") from None
        self.path, self.what = path, what
        self.values = self._array() if path.endswith(".npy") else self._lines()

    def expect(self, rows: int, matrices: str) -> None:
        """Raise BadInputError unless the file has a value for each of the rows of `matrices`."""
        if (count := len(self.values)) != rows:
            name = f"; if its first, {self.values[0]!r}, is a name, remove it" if count == rows + 1 else ""
            raise BadInputError(f"{self.path}: {count:,} values for the {rows:,} rows of {matrices}{name}")

    def _array(self) -> np.ndarray:
        with readable(self.path, what="not a .npy file"), opened_file(self.path) as file:
            array = _loaded(self.path, file)
        if array.ndim != 1 or array.dtype.kind not in "biufU":
            raise BadInputError(
                f"{self.path}: {self.what} must be one-dimensional numbers or words, not {array.dtype} of shape {array.shape}"
            )
        return array

    def _lines(self) -> np.ndarray:
        with readable(self.path), io.BufferedReader(open_bytes(opened_raw(self.path), self.path)[0]) as file:
            kind = not_text(file.peek(16))
            try:
                text = "" if kind else file.read().decode("utf-8-sig")
            except UnicodeDecodeError:
                kind = NOT_UTF8
        if kind:
            raise BadInputError(
                f"{self.path}: {kind}; {self.what} needs a text file with one value per line, or a .npy file of np.save"
            )
        words = [line.strip() for line in text.rstrip().split("\n")] if text.strip() else []
        if "" in words:
            raise BadInputError(f"{self.path}:{words.index('') + 1}: no value on this line")
        try:
            return np.array(words, dtype=np.float64)
        except ValueError:
            return np.array(words, dtype=object)


# --- matrices whose labels are in other files ---------------------------------------------------------------------------------

_TEXT_AT_ONCE = 1 << 20  # bytes
_COORDINATE_BYTES = 64  # (row, column, value) twice while reading, their order, and the resulting CSR


def _loaded(path: str, file: str | io.BufferedReader, mmap_mode: Literal["r"] | None = None) -> np.ndarray:
    """np.load of an array. Raises BadInputError for one of Python objects."""
    try:
        return np.load(file, mmap_mode, allow_pickle=False)
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        raise BadInputError(f"{path}: an array of Python objects; save values.astype(str), or .astype(float)") from None


class _Whole:
    """A matrix that is read whole; subclasses read it."""

    recipe = Recipe()
    n_rows = n_features = held_bytes = 0

    def __init__(self, path: str, options: ConvertOptions, scratch: str) -> None:
        self.path = path
        self._open()
        expect_room(options.memory, self.held_bytes, path)

    def _open(self) -> None:
        """Find `n_rows`, `n_features` and `held_bytes`."""
        raise NotImplementedError

    def _matrix(self) -> np.ndarray | sp.sparray | Sliced:
        """It in any format of SciPy, or as what slices like a two-dimensional array. Raises any exception."""
        raise NotImplementedError

    def rows(self, start: int) -> Iterator[RawRows]:
        return entries_of(self._matrix(), start)


_MEMBERS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}  # in addition to data


class NpzFile(_Whole):
    """A matrix saved by scipy.sparse.save_npz (CSR, CSC or COO), compressed or not."""

    def _open(self) -> None:
        path, what = self.path, "not a readable .npz file"
        with readable(path, what=what), np.load(regular(path), allow_pickle=False) as arrays:
            if not {"data", "shape", "format"} <= set(arrays):
                listed = ", ".join(sorted(arrays)[:10])
                raise BadInputError(f"{path}: not a sparse matrix of scipy.sparse.save_npz (it holds {listed})")
            name = arrays["format"].item()
            self._layout = layout = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
            if not {*_MEMBERS.get(layout, [""])} <= set(arrays):
                raise BadInputError(f"{path}: the matrix is saved as {layout}; save it by rows: save_npz(path, X.tocsr())")
            sides = expect_indices(arrays["shape"], INT64_MAX, f"{path}: shape", "a side")
            if sides.shape != (2,):
                raise BadInputError(f"{path}: shape holds {sides.size} numbers, not those of rows and columns")
            self.n_rows, self.n_features = sides.tolist()
            self.held_bytes = (2 if layout == "csr" else 5) * sum(member.file_size for member in arrays.zip.infolist())

    def _matrix(self) -> sp.sparray:
        import scipy.sparse as sp

        where, shape = f"{self.path}: ", (self.n_rows, self.n_features)
        with np.load(regular(self.path), allow_pickle=False) as arrays:
            values, indices, others = (arrays[name] for name in ("data", *_MEMBERS[self._layout]))
        if self._layout == "coo":
            rows, columns = expect_indices(indices, shape[0], f"{where}row"), expect_indices(others, shape[1], f"{where}col")
            order = np.argsort(rows, kind="stable")  # SciPy would add up entries that are there twice, in their type
            pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
            return sp.csr_array((values[order], columns[order], pointers), shape)
        expect_indices(indices, shape[1 if self._layout == "csr" else 0], f"{where}indices")
        pointers = expect_pointers(others, len(values), f"{where}indptr")
        made = sp.csr_array if self._layout == "csr" else sp.csc_array
        return made((values, indices, pointers), shape)


class NpyFile(_Whole):
    """A dense matrix in a `.npy` file, a few rows at a time: the file is not mapped, as its pages would count as memory."""

    def _open(self) -> None:
        path = self.path
        with readable(path, what="not a .npy file"):
            mapped = _loaded(path, regular(path), "r")
            assert isinstance(mapped, np.memmap)
            self.shape, self._dtype, self._begin = mapped.shape, mapped.dtype, mapped.offset
        if len(self.shape) != 2 or self._dtype.kind not in "biuf":
            raise BadInputError(f"{path}: {self._dtype} of shape {self.shape}, not a matrix of real numbers")
        if not mapped.flags.c_contiguous:
            raise BadInputError(f"{path}: array stored by columns; save it by rows: np.save(path, np.ascontiguousarray(X))")
        self.n_rows, self.n_features = self.shape

    def _matrix(self) -> NpyFile:
        return self

    def __getitem__(self, rows: slice) -> np.ndarray:
        """A run of rows."""
        count, line = (rows.stop - rows.start) * self.n_features, self.n_features * self._dtype.itemsize
        values = np.fromfile(regular(self.path), self._dtype, count, offset=self._begin + rows.start * line)
        if len(values) != count:
            raise BadInputError(f"{self.path}: ends early; the file is damaged")
        return values.reshape(-1, self.n_features)


class MtxFile(_Whole):
    """A MatrixMarket file (also .gz, .bz2, .xz, .zst), whose entries are unordered."""

    def _open(self) -> None:
        import scipy.io

        path = self.path
        with readable(path, what="not a MatrixMarket file"), self._text() as text:
            self.n_rows, self.n_features, entries, layout, field, symmetry = scipy.io.mminfo(text)
        if field == "complex":
            raise BadInputError(f"{path}: complex values; a feature must be a real number")
        if min(self.n_rows, self.n_features, entries) < 0:
            raise BadInputError(f"{path}: {self.n_rows} rows, {self.n_features} columns, {entries} entries; the file is damaged")
        copies = 1 if symmetry == "general" else 2
        coordinates = entries * copies if layout == "coordinate" else self.n_rows * self.n_features
        self.held_bytes = coordinates * _COORDINATE_BYTES + self.n_rows * 16

    def _matrix(self) -> np.ndarray | sp.sparray:
        import scipy.io

        with self._text() as text:
            return scipy.io.mmread(text)

    def _text(self) -> io.BufferedReader:
        """The file, decompressed. It cannot be sought: SciPy seeks after an error, which ends the process."""
        return io.BufferedReader(Joined(b"", open_bytes(opened_raw(self.path), self.path)[0]), _TEXT_AT_ONCE)


# --- files that hold their labels ---------------------------------------------------------------------------------------------


class StoreFile:
    """A streamcut store, for another backend or other shards, a shuffle or a split. One shard is held at a time."""

    def __init__(self, path: str, options: ConvertOptions, scratch: str) -> None:
        self._data = open_dataset(path)
        manifest = self._data.manifest
        self.recipe, self.held_bytes = self._data.recipe or Recipe(), buffer_bytes(manifest)
        self.n_rows, self.n_features = manifest.statistics.n_rows, manifest.statistics.n_features

    def rows(self, start: int) -> Iterator[RawRows]:
        firsts, buffers = first_rows(self._data.manifest), self._data.buffers()
        for shard in range(bisect_right(firsts, start) - 1, len(firsts) - 1):
            chunk = self._data.read(shard, buffers)
            chunk = chunk.rows(max(0, start - firsts[shard]), chunk.n_rows)
            entries = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
            values = None if chunk.data is None else chunk.data[entries]
            yield RawRows(chunk.indptr, chunk.indices[entries], values, chunk.y, chunk.qid, chunk.weight)


class ListsFile:
    """A Parquet file with a label column and, in each row, a list of feature numbers and a list of values."""

    recipe, n_features, held_bytes = Recipe(), None, 0

    def __init__(self, path: str, options: ConvertOptions, scratch: str) -> None:
        from streamcut.io.tables.files import ParquetTable, require

        if options.index_base == "auto":
            raise UsageError("--index-base=auto is for svmlight input; say whether the lists count from 0 or from 1")
        self.path, self._base = path, int(options.index_base or 0)
        named = (options.labels, options.qid, options.weights)
        self._lists, self._columns = (options.index_column, options.value_column or None), named
        self._wanted = [name for name in (*self._lists, *named) if name is not None]
        self._table = ParquetTable(path)
        require(path, self._table.schema(), self._wanted)
        self.n_rows = self._table.n_rows or 0
        self.held_bytes = self._table.reading_bytes(self._wanted)

    def rows(self, start: int) -> Iterator[RawRows]:
        import pyarrow as pa

        schema = pa.schema([self._table.schema().field(name) for name in self._wanted])
        for batch in self._table.batches(schema, start):
            yield self._raw(batch, start)
            start += batch.num_rows

    def _raw(self, batch: pa.RecordBatch, row: int) -> RawRows:
        index, value = self._lists
        indptr, indices = self._entries(batch, str(index), row)
        if indices.dtype.kind not in "iu":
            raise UsageError(f"{self.path}: column {index!r} holds {indices.dtype}, not whole feature numbers")
        indices = expect_indices(indices, INT64_MAX, f"{self.path}: column {index!r}").astype(np.int64) - self._base
        values = None
        if value is not None:
            value_ptr, values = self._entries(batch, value, row)
            if not np.array_equal(value_ptr, indptr):
                bad = int(np.flatnonzero(value_ptr != indptr)[0]) - 1
                raise BadInputError(f"{self.path}: row {row + bad} (0-based) has lists of different lengths")
        columns = (None if name is None else self._full(batch, name, row) for name in self._columns)
        arrays = (None if column is None else column.to_numpy(zero_copy_only=False) for column in columns)
        return RawRows(indptr, indices, values, *arrays)

    def _entries(self, batch: pa.RecordBatch, name: str, row: int) -> tuple[np.ndarray, np.ndarray]:
        """(pointers from 0 on, the values) of a column of lists."""
        import pyarrow as pa

        column = batch.column(name)
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise UsageError(f"{self.path}: column {name!r} is {column.type}, not lists of numbers")
        offsets = self._full(batch, name, row).offsets.to_numpy().astype(np.int64)
        flat = column.flatten()
        if flat.null_count:
            raise BadInputError(f"{self.path}: column {name!r} has an empty entry in or after row {row} (0-based)")
        return offsets - offsets[0], flat.to_numpy(zero_copy_only=False)

    def _full(self, batch: pa.RecordBatch, name: str, row: int) -> pa.Array:
        """A column, of which no value may be missing."""
        if batch.column(name).null_count:
            raise BadInputError(f"{self.path}: column {name!r} is empty in or after row {row} (0-based)")
        return batch.column(name)
