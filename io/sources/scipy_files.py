"""Matrices saved by SciPy and NumPy: `.npz` of scipy.sparse.save_npz and MatrixMarket, both read whole, and `.npy`."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.fields import INT64_MAX
from streamcut.foundation.opened import opened_file, opened_raw, readable, regular
from streamcut.io.indices import expect_indices, expect_pointers
from streamcut.io.places.archives import Archive, array_header
from streamcut.io.sources.arrays import dense_entries
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.columns import ColumnFile
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.text.decompress import Joined, open_bytes

_AT_ONCE = 1 << 20  # bytes of text
COORDINATE_BYTES = 64  # (row, column, value) twice while reading, their order, and the resulting CSR


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Column files that accompany matrices, over all rows of all inputs together."""

    labels: ColumnFile | None  # None: unlabelled
    qid: ColumnFile | None = None
    weight: ColumnFile | None = None

    def rows(self, indptr, indices, values, first: int) -> RawRows:
        count = len(indptr) - 1
        qid, weight = (None if file is None else file.read(first, count) for file in (self.qid, self.weight))
        labels = np.zeros(count) if self.labels is None else self.labels.read(first, count)
        return RawRows(indptr, indices, values, labels, qid, weight)

    def expect_end(self, rows: int) -> None:
        for file in (self.labels, self.qid, self.weight):
            if file is not None:
                file.expect_end(rows)


class NpzReader:
    """A matrix saved by scipy.sparse.save_npz (CSR, CSC or COO), compressed or not. It is read whole.

    `held_bytes` is the memory of that.
    """

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset
        with self._opened() as archive:
            if not {"data", "shape", "format"} <= set(archive.names):
                listed = ", ".join(sorted(archive.names)[:10])
                raise BadInputError(f"{path}: not a sparse matrix of scipy.sparse.save_npz (it holds {listed})")
            layout = np.ravel(self._whole(archive, "format")).tolist()
            self._layout = "".join(each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in layout)
            if self._layout not in _MEMBERS or not {*_MEMBERS[self._layout]} <= set(archive.names):
                raise BadInputError(f"{path}: the matrix is saved as {self._layout}; save it by rows: save_npz(path, X.tocsr())")
            shape = self._whole(archive, "shape")
            if shape.shape != (2,):
                raise BadInputError(f"{path}: shape holds {shape.size} numbers, not those of rows and columns")
            self.n_rows, self.n_features = expect_indices(shape, INT64_MAX, f"{path}: shape", "a side").tolist()
            lengths = [self._length(archive, name) for name in (*_MEMBERS[self._layout], "data")]
            lines = {"csr": self.n_rows, "csc": self.n_features}.get(self._layout, lengths[1] - 1)
            if lengths[1] != lines + 1:
                raise BadInputError(f"{path}: {lengths[1]} pointers, not {lines + 1}; the file is damaged")
            if lengths[0] != lengths[2] or (self._layout == "coo" and lengths[1] != lengths[2]):
                raise BadInputError(f"{path}: {lengths[0]} indices for {lengths[2]} values; the file is damaged")
            self.held_bytes = lengths[2] * (16 if self._layout == "csr" else COORDINATE_BYTES) + lengths[1] * 16

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with self._opened() as archive:
            indices, others, values = (self._whole(archive, name) for name in (*_MEMBERS[self._layout], "data"))
        if self._layout == "coo":
            columns = expect_indices(others, self.n_features, f"{self.path}: column")
            rows = expect_indices(indices, self.n_rows, self.path, "row of an entry")
        else:
            others = expect_pointers(others, len(values), f"{self.path}: indptr")
            if self._layout == "csr":
                columns = expect_indices(indices, self.n_features, f"{self.path}: column")
            else:
                rows = expect_indices(indices, self.n_rows, f"{self.path}: row")
                columns = np.repeat(np.arange(self.n_features), np.diff(others))
        if self._layout != "csr":
            order = np.lexsort((columns, rows))
            columns, values = columns[order], values[order]
            others = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.n_rows))])
        yield from _pieces(self, others, columns, values, start, size)

    def _length(self, archive: Archive, name: str) -> int:
        with archive.member(name) as member:
            if len(member.shape) != 1 or member.dtype.kind not in "biuf":
                where = f"{self.path}: {name} is {member.dtype} of shape {member.shape}"
                raise BadInputError(f"{where}, not a one-dimensional array of real numbers")
            return member.shape[0]

    @staticmethod
    def _whole(archive: Archive, name: str) -> np.ndarray:
        with archive.member(name) as member:
            return member.whole()

    @contextmanager
    def _opened(self) -> Iterator[Archive]:
        with readable(self.path, what="not a readable .npz file"), Archive(opened_file(self.path)) as archive:
            yield archive


_MEMBERS = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}  # in addition to data


def _pieces(reader: Any, indptr, indices, values, start: int, size: BlockSize) -> Iterator[RawRows]:
    """The rows of CSR arrays from number `start` on, in pieces cut by `row_ranges`, with what `side` says about them."""
    for first, stop in row_ranges(indptr[start:], size, reader.path, start):
        first, stop = start + first, start + stop
        entries = slice(int(indptr[first]), int(indptr[stop]))
        yield reader.side.rows(indptr[first : stop + 1], indices[entries], values[entries], reader.offset + first)


class NpyReader:
    """A dense matrix in a `.npy` file, a few rows at a time."""

    held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset
        with readable(path, what="not a .npy file"), opened_file(path) as file:
            shape, by_columns, self._dtype = array_header(file)
            self._begin = file.tell()
            size = os.fstat(file.fileno()).st_size
        if len(shape) != 2 or self._dtype.kind not in "biuf":
            raise BadInputError(f"{path}: {self._dtype} of shape {shape}, not a matrix of real numbers")
        if by_columns and min(shape) > 1:
            raise BadInputError(f"{path}: array stored by columns; save it by rows: np.save(path, np.ascontiguousarray(X))")
        self.n_rows, self.n_features = shape
        if self._begin + self.n_rows * self.n_features * self._dtype.itemsize > size:
            raise BadInputError(f"{path}: ends early: {self._dtype} of shape {shape} in {size:,} bytes; the file is damaged")

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    def __getitem__(self, rows: slice) -> np.ndarray:
        """A run of rows."""
        count, line = rows.stop - rows.start, self.n_features * self._dtype.itemsize
        found = np.fromfile(regular(self.path), self._dtype, count * self.n_features, offset=self._begin + rows.start * line)
        if len(found) != count * self.n_features:
            raise BadInputError(f"{self.path} ends early; the file is damaged")
        return found.reshape(count, self.n_features)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        for part in dense_entries(self, size, start):
            yield self.side.rows(part.indptr, part.indices, part.values, self.offset + part.first)


class MatrixMarketReader:
    """A MatrixMarket file (also .gz, .bz2, .xz, .zst), rows = examples. Its entries are unordered, so it is read whole.

    `held_bytes` is the memory of that.
    """

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        import scipy.io

        self.path, self.side, self.offset = path, side, offset
        with readable(path, what="not a MatrixMarket file"), self._text() as text:
            self.n_rows, self.n_features, entries, layout, field, symmetry = scipy.io.mminfo(text)
        if field == "complex":
            raise BadInputError(f"{path}: complex values; a feature must be a real number")
        if min(self.n_rows, self.n_features, entries) < 0:
            raise BadInputError(f"{path}: {self.n_rows} rows, {self.n_features} columns, {entries} entries; the file is damaged")
        copies = 1 if symmetry == "general" else 2
        coordinates = entries * copies if layout == "coordinate" else self.n_rows * self.n_features
        self.held_bytes = coordinates * COORDINATE_BYTES + self.n_rows * 16

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        import scipy.io
        import scipy.sparse as sp

        with self._text() as text:
            X = sp.csr_array(scipy.io.mmread(text))
        yield from _pieces(self, X.indptr, X.indices, X.data, start, size)

    def _text(self) -> io.BufferedReader:
        """The file, decompressed. It cannot be sought: SciPy seeks after an error, which ends the process."""
        return io.BufferedReader(Joined(b"", open_bytes(opened_raw(self.path), self.path)[0]), _AT_ONCE)
