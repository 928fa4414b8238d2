"""Matrices of CellRanger (`.h5` of 10x Genomics): barcodes are rows, and their labels lie in a file of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from streamcut.errors import BadInputError
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.sources.scipy_files import SideFiles
from streamcut.io.sources.self_contained import expect_self_contained, readable

ROWS_AT_ONCE = 1 << 16


class TenXReader:
    """The matrix lies by barcodes (CSC of features × barcodes), so rows are read as they are.

    recipe   names of the features: those of genes, and their ids where a name stands twice
    """

    held_bytes = 0

    def __init__(self, path: str, side: SideFiles, offset: int) -> None:
        self.path, self.side, self.offset = path, side, offset
        with readable(path):
            self._open()

    def _open(self) -> None:
        import h5py

        path = self.path
        try:
            file = h5py.File(path, "r")
        except OSError as error:
            raise BadInputError(f"{path}: not a readable HDF5 file ({error})") from None
        groups = [name for name in file if {"barcodes", "data", "indices", "indptr", "shape"} <= set(file[name])]
        if len(groups) != 1:
            listed = ", ".join(groups) or "no matrix"
            raise BadInputError(f"{path}: one matrix of CellRanger is read, and this file has {listed}")
        self._matrix = file[groups[0]]
        expect_self_contained(self._matrix, path)
        self.n_features, self.n_rows = (int(size) for size in self._matrix["shape"][:])
        if len(self._matrix["indptr"]) != self.n_rows + 1:
            raise BadInputError(f"{path}: {len(self._matrix['indptr'])} pointers for {self.n_rows} barcodes; the file is damaged")
        self.recipe = Recipe(names=self._names())

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with readable(self.path):
            yield from self._rows(start, size)

    def _rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        while start < self.n_rows:
            stop = min(start + ROWS_AT_ONCE, self.n_rows)
            bounds = np.asarray(self._matrix["indptr"][start : stop + 1], np.int64)
            if (np.diff(bounds) < 0).any():
                raise BadInputError(f"{self.path}: pointers of barcodes decrease; the file is damaged")
            for first, last in row_ranges(bounds, size, self.path, start):
                cut = slice(int(bounds[first]), int(bounds[last]))
                indices, values = self._matrix["indices"][cut], self._matrix["data"][cut]
                if len(indices) != cut.stop - cut.start or len(values) != len(indices):
                    raise BadInputError(f"{self.path}: indices or data end early; the file is damaged")
                yield self.side.rows(bounds[first : last + 1], indices, values, self.offset + start + first)
            start = stop

    def _names(self) -> tuple[str, ...] | None:
        matrix = self._matrix
        of = matrix.get("features", matrix)
        ids, names = ("id", "name") if "features" in matrix else ("genes", "gene_names")  # as of CellRanger 3, and before
        if ids not in of or names not in of:
            return None
        codes, words = ([word.decode() for word in of[name][:].tolist()] for name in (ids, names))
        if not len(codes) == len(words) == self.n_features:
            raise BadInputError(f"{self.path}: {len(words)} names for {self.n_features} features; the file is damaged")
        twice = Counter(words)
        return tuple(word if twice[word] == 1 else code for code, word in zip(codes, words, strict=True))
