"""Matrices as SciPy and other programs save them: `.npz` of scipy.sparse.save_npz (streamed) and MatrixMarket (read whole)."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamcut.errors import BadInputError
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.columns import ColumnFile
from streamcut.io.sources.row_source import BlockSize, row_ranges

ROWS_AT_ONCE = 1 << 16
COORDINATE_BYTES = 48  # (row, column, value) twice while they are read, and the CSR that they become


@dataclass(frozen=True, slots=True)
class SideFiles:
    """Column files that go with matrices, over all rows of all inputs together."""

    labels: ColumnFile
    qid: ColumnFile | None = None
    weight: ColumnFile | None = None

    def rows(self, indptr, indices, values, first: int) -> RawRows:
        count = len(indptr) - 1
        qid, weight = (None if file is None else file.read(first, count) for file in (self.qid, self.weight))
        return RawRows(indptr, indices, values, self.labels.read(first, count), qid, weight)

    def expect_end(self, rows: int) -> None:
        for file in (self.labels, self.qid, self.weight):
            if file is not None:
                file.expect_end(rows)


class NpzReader:
    """A CSR matrix saved by scipy.sparse.save_npz, compressed or not, streamed in constant memory."""

    held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset
        with self._archive() as archive:
            members = {name.removesuffix(".npy") for name in archive.namelist()}
            if not {"indices", "indptr", "data", "shape", "format"} <= members:
                raise BadInputError(
                    f"{path}: not a sparse matrix of scipy.sparse.save_npz (it holds {', '.join(sorted(members))})"
                )
            layout = self._small(archive, "format").item()
            layout = layout.decode() if isinstance(layout, bytes) else layout
            if layout != "csr":
                raise BadInputError(f"{path}: the matrix is saved as {layout}; save it by rows: save_npz(path, X.tocsr())")
            self.n_rows, self.n_features = (int(size) for size in self._small(archive, "shape"))
            with _Member(archive, path, "indptr") as indptr:
                if indptr.length != self.n_rows + 1:
                    raise BadInputError(f"{path}: {indptr.length} row pointers for {self.n_rows} rows; the file is damaged")

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
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
