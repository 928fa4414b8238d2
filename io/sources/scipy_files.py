"""Matrices saved by SciPy and other programs: `.npz` of scipy.sparse.save_npz (streamed) and MatrixMarket (read whole)."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from streamcut.errors import BadInputError
from streamcut.foundation.fields import INT64_MAX
from streamcut.foundation.opened import opened_file, opened_raw, readable, regular
from streamcut.io.indices import expect_indices, expect_pointers
from streamcut.io.places.archives import Archive, Member, array_header
from streamcut.io.sources import scattered
from streamcut.io.sources.arrays import dense_entries
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.columns import ColumnFile
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.text.decompress import ShortLines, open_bytes

ROWS_AT_ONCE = 1 << 16
_AT_ONCE = 1 << 20  # bytes of text
COORDINATE_BYTES = 48  # (row, column, value) twice while reading, and the resulting CSR


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
    """A matrix saved by scipy.sparse.save_npz (CSR, CSC or COO), compressed or not, streamed in bounded memory.

    scratch   folder for the scratch file that CSC and COO matrices need
    """

    held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int, scratch: str = ".") -> None:
        self.path, self.side, self.offset, self._scratch = path, side, offset, scratch
        with self._opened() as archive:
            if not {"data", "shape", "format"} <= set(archive.names):
                listed = ", ".join(sorted(archive.names)[:10])
                raise BadInputError(f"{path}: not a sparse matrix of scipy.sparse.save_npz (it holds {listed})")
            layout = archive.small("format", 1).reshape(-1)[:1].tolist()
            self._layout = (
                layout[0].decode(errors="replace") if layout and isinstance(layout[0], bytes) else "".join(map(str, layout))
            )
            if self._layout not in _MEMBERS or not _MEMBERS[self._layout] <= set(archive.names):
                raise BadInputError(f"{path}: the matrix is saved as {self._layout}; save it by rows: save_npz(path, X.tocsr())")
            shape = archive.small("shape", 2)
            if shape.shape != (2,):
                raise BadInputError(f"{path}: shape holds {shape.size} numbers, not those of rows and columns")
            self.n_rows, self.n_features = expect_indices(shape, INT64_MAX, f"{path}: shape", "a side").tolist()
            if self._layout != "csr":
                self.held_bytes = scattered.held_bytes(self.n_rows) + 8 * self.n_features * (self._layout == "csc")
            if self._layout != "coo":
                lines = self.n_rows if self._layout == "csr" else self.n_features
                found = {}
                for name in ("indptr", "indices", "data"):
                    with self._vector(archive, name) as member:
                        found[name] = member.length
                if found["indptr"] != lines + 1:
                    raise BadInputError(f"{path}: {found['indptr']} pointers, not {lines + 1}; the file is damaged")
                if found["indices"] != found["data"]:
                    raise BadInputError(f"{path}: {found['indices']} indices for {found['data']} values; the file is damaged")

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        if self._layout == "csr":
            yield from self._csr_rows(start, size)
            return
        for part in scattered.by_rows(self._scattered, self.n_rows, self._scratch, size, self.path, start):
            yield self.side.rows(part.indptr, part.indices, part.values, self.offset + part.first)

    def _scattered(self) -> Iterator[scattered.Scattered]:
        """The entries of a CSC or COO matrix."""
        names = ("row", "col") if self._layout == "coo" else ("indices", "indptr")
        with self._opened() as archive, ExitStack() as stack:
            rows, columns, data = (stack.enter_context(self._vector(archive, name)) for name in (*names, "data"))
            if self._layout == "csc":
                indptr = expect_pointers(columns.read(columns.length), data.length, f"{self.path}: indptr")

                def read(cut: slice) -> tuple[np.ndarray, np.ndarray]:
                    count = cut.stop - cut.start
                    return rows.read(count), data.read(count)

                yield from scattered.column_entries(indptr, read, self.path)
            else:
                if not rows.length == columns.length == data.length:
                    raise BadInputError(f"{self.path}: rows, columns and values differ in number; the file is damaged")
                for begin in range(0, data.length, scattered.AT_ONCE):
                    count = min(scattered.AT_ONCE, data.length - begin)
                    yield scattered.Scattered(rows.read(count), self._columns(columns.read(count)), data.read(count))
            for member in (rows, columns, data):
                member.finish()

    def _csr_rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with self._opened() as archive, ExitStack() as stack:
            members = [stack.enter_context(self._vector(archive, name)) for name in ("indptr", "indices", "data")]
            indptr, indices, data = members
            indptr.skip(start)
            bounds = indptr.read(1)
            first = int(expect_pointers(bounds, data.length, f"{self.path}: indptr")[0])
            indices.skip(first)
            data.skip(first)
            while start < self.n_rows:
                bounds = np.concatenate([bounds[-1:], indptr.read(min(ROWS_AT_ONCE, self.n_rows - start))])
                bounds = expect_pointers(bounds, data.length, f"{self.path}: indptr", "row pointer")
                for first, stop in row_ranges(bounds, size, self.path, start):
                    count = int(bounds[stop] - bounds[first])
                    entries = self._columns(indices.read(count)), data.read(count)
                    yield self.side.rows(bounds[first : stop + 1], *entries, self.offset + start + first)
                start += len(bounds) - 1
            for member in members:
                member.finish()

    def _columns(self, found: np.ndarray) -> np.ndarray:
        return expect_indices(found, self.n_features, f"{self.path}: column")

    @contextmanager
    def _opened(self) -> Iterator[Archive]:
        with readable(self.path, what="not a readable .npz file"), Archive(opened_file(self.path)) as archive:
            yield archive

    def _vector(self, archive: Archive, name: str) -> _Vector:
        return _Vector(archive.member(name), f"{self.path}: {name}")


_MEMBERS = {"csr": {"indices", "indptr"}, "csc": {"indices", "indptr"}, "coo": {"row", "col"}}  # in addition to data


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


class _Vector:
    """A member of an .npz file: a one-dimensional array of real numbers, read from front to back."""

    def __init__(self, member: Member, where: str) -> None:
        self._member = member
        if len(member.shape) != 1 or member.dtype.kind not in "biuf":
            raise BadInputError(f"{where} is {member.dtype} of shape {member.shape}, not a one-dimensional array of real numbers")
        self.length, self._left = member.shape[0], member.shape[0]

    def __enter__(self) -> _Vector:
        return self

    def __exit__(self, *_: object) -> None:
        self._member.close()

    def skip(self, count: int) -> None:
        self._left -= count
        self._member.skip(count)

    def read(self, count: int) -> np.ndarray:
        self._left -= count
        return self._member.read(count)

    def finish(self) -> None:
        """Read the rest, so that the archive's checksum is compared."""
        self.skip(self._left)
        self._member.expect_end()


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
        for first, stop in row_ranges(X.indptr[start:], size, self.path, start):
            first, stop = start + first, start + stop
            entries = slice(X.indptr[first], X.indptr[stop])
            yield self.side.rows(X.indptr[first : stop + 1], X.indices[entries], X.data[entries], self.offset + first)

    def _text(self) -> io.BufferedReader:
        """The file, decompressed, with bounded line length."""
        return io.BufferedReader(ShortLines(open_bytes(opened_raw(self.path), self.path)[0], self.path), _AT_ONCE)
