"""Matrices saved by SciPy and NumPy (`.npz` and MatrixMarket, both read whole, and `.npy`), with labels, query ids and weights
in separate files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.fields import INT64_MAX
from streamcut.foundation.opened import opened_file, opened_raw, readable, regular
from streamcut.io.indices import expect_indices, expect_pointers
from streamcut.io.sources.arrays import entries_of
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize
from streamcut.io.text.decompress import Joined, open_bytes
from streamcut.io.text.inputs import NOT_UTF8, not_text


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
        self._values = self._array() if path.endswith(".npy") else self._lines()

    def read(self, start: int, count: int) -> np.ndarray:
        """Values of rows start … start + count - 1. Raises BadInputError when the file is too short."""
        found = self._values[start : start + count]
        if len(found) < count:
            raise BadInputError(f"{self.path}: {start + len(found)} values, but the matrix has more rows than that")
        return found

    def expect_end(self, rows: int) -> None:
        """Raise BadInputError when the file has values for more than `rows` rows."""
        if len(self._values) > rows:
            raise BadInputError(f"{self.path}: more values than the {rows} rows of the matrix")

    def _array(self) -> np.ndarray:
        with readable(self.path, what="not a .npy file"), opened_file(self.path) as file:
            found = np.load(file, allow_pickle=False)
        if found.ndim != 1 or found.dtype.kind not in "biufU":
            raise BadInputError(
                f"{self.path}: {self.what} must be one-dimensional numbers or words, not {found.dtype} of shape {found.shape}"
            )
        return found

    def _lines(self) -> np.ndarray:
        with readable(self.path), io.BufferedReader(cast(io.RawIOBase, open_bytes(opened_raw(self.path), self.path)[0])) as file:
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


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Column files that accompany matrices, over all rows of all inputs together; labels None: unlabelled."""

    labels: ColumnFile | None = None
    qid: ColumnFile | None = None
    weight: ColumnFile | None = None

    @classmethod
    def of(cls, labels: str | None, qid: str | None, weight: str | None) -> Self:
        """The files of these paths."""
        names = {"--label": labels, "--qid": qid, "--weights": weight}
        return cls(*(None if path is None else ColumnFile(path, what) for what, path in names.items()))

    def rows(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, first: int) -> RawRows:
        """Rows of a matrix, the first of which is row `first` of all inputs, with their labels, qids and weights."""
        count = len(indptr) - 1
        labels, qid, weight = (None if each is None else each.read(first, count) for each in (self.labels, self.qid, self.weight))
        return RawRows(indptr, indices, values, np.zeros(count) if labels is None else labels, qid, weight)

    def expect_end(self, rows: int) -> None:
        """Raise BadInputError when a file has values for more than `rows` rows."""
        for file in (self.labels, self.qid, self.weight):
            if file is not None:
                file.expect_end(rows)


_AT_ONCE = 1 << 20  # bytes of text
_COORDINATE_BYTES = 64  # (row, column, value) twice while reading, their order, and the resulting CSR


class MatrixReader:
    """A matrix in a file, rows = examples; `n_rows`, `n_features` and `held_bytes` as in TableReader, set by subclasses."""

    n_rows = n_features = held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset

    def _matrix(self) -> Any:
        """It as a csr_array, or as what slices like a two-dimensional array. Raises any exception."""
        raise NotImplementedError

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        for part in entries_of(self._matrix(), size, self.path, start=start):
            yield self.side.rows(part.indptr, part.indices, part.values, self.offset + part.first)


class NpzReader(MatrixReader):
    """A matrix saved by scipy.sparse.save_npz (CSR, CSC or COO), compressed or not. It is read whole."""

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        super().__init__(path, side, offset)
        with self._opened() as arrays:
            if not {"data", "shape", "format"} <= set(arrays):
                listed = ", ".join(sorted(arrays)[:10])
                raise BadInputError(f"{path}: not a sparse matrix of scipy.sparse.save_npz (it holds {listed})")
            name = arrays["format"].item()
            self._layout = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
            if not {*_MEMBERS.get(self._layout, [""])} <= set(arrays):
                raise BadInputError(f"{path}: the matrix is saved as {self._layout}; save it by rows: save_npz(path, X.tocsr())")
            sides = expect_indices(arrays["shape"], INT64_MAX, f"{path}: shape", "a side")
            if sides.shape != (2,):
                raise BadInputError(f"{path}: shape holds {sides.size} numbers, not those of rows and columns")
            self.n_rows, self.n_features = sides.tolist()
            self.held_bytes = (2 if self._layout == "csr" else 5) * sum(member.file_size for member in arrays.zip.infolist())

    def _matrix(self) -> Any:
        import scipy.sparse as sp

        where, shape = f"{self.path}: ", (self.n_rows, self.n_features)
        with self._opened() as arrays:
            values, indices, others = (arrays[name] for name in ("data", *_MEMBERS[self._layout]))
            if self._layout == "coo":
                rows, columns = expect_indices(indices, shape[0], f"{where}row"), expect_indices(others, shape[1], f"{where}col")
                order = np.argsort(rows, kind="stable")  # SciPy would add up entries that are there twice, in their type
                pointers = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
                return sp.csr_array((values[order], columns[order], pointers), shape)
            expect_indices(indices, shape[1 if self._layout == "csr" else 0], f"{where}indices")
            pointers = expect_pointers(others, len(values), f"{where}indptr")
            made = sp.csr_array if self._layout == "csr" else sp.csc_array
            return sp.csr_array(made((values, indices, pointers), shape))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with readable(self.path, what="not a readable .npz file"), np.load(regular(self.path), allow_pickle=False) as arrays:
            yield arrays


_MEMBERS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}  # in addition to data


class NpyReader(MatrixReader):
    """A dense matrix in a `.npy` file, a few rows at a time: the file is not mapped, as its pages would count as memory."""

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        super().__init__(path, side, offset)
        with readable(path, what="not a .npy file"):
            mapped = np.load(regular(path), mmap_mode="r", allow_pickle=False)
            self.shape, self._dtype, self._begin = mapped.shape, mapped.dtype, mapped.offset
        if len(self.shape) != 2 or self._dtype.kind not in "biuf":
            raise BadInputError(f"{path}: {self._dtype} of shape {self.shape}, not a matrix of real numbers")
        if not mapped.flags.c_contiguous:
            raise BadInputError(f"{path}: array stored by columns; save it by rows: np.save(path, np.ascontiguousarray(X))")
        self.n_rows, self.n_features = self.shape

    def _matrix(self) -> NpyReader:
        return self

    def __getitem__(self, rows: slice) -> np.ndarray:
        """A run of rows."""
        count, line = (rows.stop - rows.start) * self.n_features, self.n_features * self._dtype.itemsize
        values = np.fromfile(regular(self.path), self._dtype, count, offset=self._begin + rows.start * line)
        if len(values) != count:
            raise BadInputError(f"{self.path}: ends early; the file is damaged")
        return values.reshape(-1, self.n_features)


class MatrixMarketReader(MatrixReader):
    """A MatrixMarket file (also .gz, .bz2, .xz, .zst). Its entries are unordered, so it is read whole."""

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        import scipy.io

        super().__init__(path, side, offset)
        with readable(path, what="not a MatrixMarket file"), self._text() as text:
            self.n_rows, self.n_features, entries, layout, field, symmetry = scipy.io.mminfo(text)
        if field == "complex":
            raise BadInputError(f"{path}: complex values; a feature must be a real number")
        if min(self.n_rows, self.n_features, entries) < 0:
            raise BadInputError(f"{path}: {self.n_rows} rows, {self.n_features} columns, {entries} entries; the file is damaged")
        copies = 1 if symmetry == "general" else 2
        coordinates = entries * copies if layout == "coordinate" else self.n_rows * self.n_features
        self.held_bytes = coordinates * _COORDINATE_BYTES + self.n_rows * 16

    def _matrix(self) -> Any:
        import scipy.io
        from scipy.sparse import csr_array

        with self._text() as text:
            return csr_array(scipy.io.mmread(text))

    def _text(self) -> io.BufferedReader:
        """The file, decompressed. It cannot be sought: SciPy seeks after an error, which ends the process."""
        return io.BufferedReader(Joined(b"", open_bytes(opened_raw(self.path), self.path)[0]), _AT_ONCE)
