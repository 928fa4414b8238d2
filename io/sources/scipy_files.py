"""Matrices as SciPy and other programs save them: `.npz` of scipy.sparse.save_npz (streamed) and MatrixMarket (read whole)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamcut.errors import BadInputError
from streamcut.io.sources import scattered
from streamcut.io.sources.arrays import dense_entries
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.columns import ColumnFile
from streamcut.io.sources.row_source import BlockSize, row_ranges

ROWS_AT_ONCE = 1 << 16
COORDINATE_BYTES = 48  # (row, column, value) twice while they are read, and the CSR that they become


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Column files that go with matrices, over all rows of all inputs together."""

    labels: ColumnFile | None  # None: there are none
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

    scratch   folder for a scratch file, which CSC and COO matrices take
    """

    held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int, scratch: str = ".") -> None:
        self.path, self.side, self.offset, self._scratch = path, side, offset, scratch
        with self._archive() as archive:
            members = {name.removesuffix(".npy") for name in archive.namelist()}
            if not {"data", "shape", "format"} <= members:
                raise BadInputError(
                    f"{path}: not a sparse matrix of scipy.sparse.save_npz (it holds {', '.join(sorted(members))})"
                )
            layout = self._small(archive, "format").item()
            layout = layout.decode() if isinstance(layout, bytes) else layout
            if layout not in _MEMBERS or not _MEMBERS[layout] <= members:
                raise BadInputError(f"{path}: the matrix is saved as {layout}; save it by rows: save_npz(path, X.tocsr())")
            self._layout = layout
            self.n_rows, self.n_features = (int(size) for size in self._small(archive, "shape"))
            if layout != "csr":
                self.held_bytes = scattered.held_bytes(self.n_rows) + 8 * self.n_features * (layout == "csc")
            if layout != "coo":
                lines = self.n_rows if layout == "csr" else self.n_features
                with _Member(archive, path, "indptr") as indptr:
                    if indptr.length != lines + 1:
                        raise BadInputError(f"{path}: {indptr.length} pointers, and not {lines + 1}; the file is damaged")

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        if self._layout == "csr":
            yield from self._csr_rows(start, size)
            return
        for part in scattered.by_rows(self._scattered, self.n_rows, self._scratch, size, self.path, start):
            yield self.side.rows(part.indptr, part.indices, part.values, self.offset + part.first)

    def _scattered(self) -> Iterator[scattered.Scattered]:
        """The entries of a CSC or COO matrix."""
        names = ("row", "col") if self._layout == "coo" else ("indices", "indptr")
        with (
            self._archive() as archive,
            _Member(archive, self.path, names[0]) as rows,
            _Member(archive, self.path, names[1]) as columns,
            _Member(archive, self.path, "data") as data,
        ):
            if self._layout == "csc":
                indptr = columns.read(columns.length).astype(np.int64)

                def read(cut: slice) -> tuple[np.ndarray, np.ndarray]:
                    count = cut.stop - cut.start
                    return rows.read(count), data.read(count)

                yield from scattered.column_entries(indptr, read, self.path)
                return
            if not rows.length == columns.length == data.length:
                raise BadInputError(f"{self.path}: rows, columns and values differ in number; the file is damaged")
            for begin in range(0, data.length, scattered.AT_ONCE):
                count = min(scattered.AT_ONCE, data.length - begin)
                yield scattered.Scattered(rows.read(count), columns.read(count), data.read(count))

    def _csr_rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with (
            self._archive() as archive,
            _Member(archive, self.path, "indptr") as indptr,
            _Member(archive, self.path, "indices") as indices,
            _Member(archive, self.path, "data") as data,
        ):
            indptr.skip(start)
            bounds = indptr.read(1)
            indices.skip(int(bounds[0]))
            data.skip(int(bounds[0]))
            while start < self.n_rows:
                bounds = np.concatenate([bounds[-1:], indptr.read(min(ROWS_AT_ONCE, self.n_rows - start))]).astype(np.int64)
                if (np.diff(bounds) < 0).any():
                    raise BadInputError(f"{self.path}: row pointers decrease; the file is damaged")
                for first, stop in row_ranges(bounds, size, self.path, start):
                    count = int(bounds[stop] - bounds[first])
                    entries = indices.read(count), data.read(count)
                    yield self.side.rows(bounds[first : stop + 1], *entries, self.offset + start + first)
                start += len(bounds) - 1

    def _archive(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise BadInputError(f"{self.path}: not a readable .npz file ({error})") from None

    def _small(self, archive: zipfile.ZipFile, name: str) -> np.ndarray:
        with archive.open(f"{name}.npy") as file:
            try:
                return np.lib.format.read_array(file, allow_pickle=False)
            except (ValueError, zipfile.BadZipFile) as error:
                raise BadInputError(f"{self.path}: {name} cannot be read ({error})") from None


_MEMBERS = {"csr": {"indices", "indptr"}, "csc": {"indices", "indptr"}, "coo": {"row", "col"}}  # beside data


class NpyReader:
    """A dense matrix in a `.npy` file, a few rows at a time."""

    held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset
        with open(path, "rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, by_columns, self._dtype = header(file)
            except ValueError as error:
                raise BadInputError(f"{path}: not a .npy file ({error})") from None
            self._begin = file.tell()
        if len(shape) != 2 or self._dtype.kind not in "biuf":
            raise BadInputError(f"{path}: {self._dtype} of shape {shape}, not a matrix of real numbers")
        if by_columns and min(shape) > 1:
            raise BadInputError(f"{path}: the array lies by columns; save it by rows: np.save(path, np.ascontiguousarray(X))")
        self.n_rows, self.n_features = shape

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, self.n_features

    def __getitem__(self, rows: slice) -> np.ndarray:
        """A run of rows."""
        count, line = rows.stop - rows.start, self.n_features * self._dtype.itemsize
        found = np.fromfile(self.path, self._dtype, count * self.n_features, offset=self._begin + rows.start * line)
        if len(found) != count * self.n_features:
            raise BadInputError(f"{self.path} ends early; the file is damaged")
        return found.reshape(count, self.n_features)

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        for part in dense_entries(self, size, start):
            yield self.side.rows(part.indptr, part.indices, part.values, self.offset + part.first)


class _Member:
    """One array of an .npz file, read from front to back."""

    def __init__(self, archive: zipfile.ZipFile, path: str, name: str) -> None:
        self.where = f"{path}: {name}"
        self.file = archive.open(f"{name}.npy")
        try:
            version = np.lib.format.read_magic(self.file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, self.dtype = header(self.file)
        except ValueError as error:
            raise BadInputError(f"{self.where} cannot be read ({error})") from None
        if len(shape) != 1 or self.dtype.kind not in "biuf":
            raise BadInputError(f"{self.where} is {self.dtype} of shape {shape}, not one row of real numbers")
        self.length = shape[0]

    def __enter__(self) -> _Member:
        return self

    def __exit__(self, *_) -> None:
        self.file.close()

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self.read(min(count, 1 << 20)))

    def read(self, count: int) -> np.ndarray:
        out = np.empty(count, self.dtype)
        view = out.view(np.uint8).data
        try:
            while view:
                got = self.file.readinto(view)  # type: ignore[attr-defined]
                if not got:
                    raise BadInputError(f"{self.where} ends early; the file is damaged")
                view = view[got:]
        except (zipfile.BadZipFile, EOFError) as error:
            raise BadInputError(f"{self.where} cannot be read ({error})") from None
        return out


class MatrixMarketReader:
    """A MatrixMarket file (also .gz, .bz2), rows = examples. Its entries come in any order, so it is read whole.

    `held_bytes` is what that takes.
    """

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        import scipy.io

        self.path, self.side, self.offset = path, side, offset
        try:
            self.n_rows, self.n_features, entries, layout, field, symmetry = scipy.io.mminfo(path)
        except (ValueError, OSError) as error:
            raise BadInputError(f"{path}: not a MatrixMarket file ({error})") from None
        if field == "complex":
            raise BadInputError(f"{path}: complex values; a feature must be a real number")
        copies = 1 if symmetry == "general" else 2
        coordinates = entries * copies if layout == "coordinate" else self.n_rows * self.n_features
        self.held_bytes = coordinates * COORDINATE_BYTES + self.n_rows * 16

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        import scipy.io
        import scipy.sparse as sp

        try:
            X = sp.csr_array(scipy.io.mmread(self.path))
        except (ValueError, OSError, EOFError, OverflowError) as error:
            raise BadInputError(f"{self.path}: {error}") from None
        for first, stop in row_ranges(X.indptr[start:], size, self.path, start):
            first, stop = start + first, start + stop
            entries = slice(X.indptr[first], X.indptr[stop])
            yield self.side.rows(X.indptr[first : stop + 1], X.indices[entries], X.data[entries], self.offset + first)
