"""Matrices of CellRanger (`.h5` of 10x Genomics): barcodes are rows; their labels are in a separate file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from streamcut.errors import BadInputError
from streamcut.foundation.fields import INT64_MAX
from streamcut.foundation.opened import readable
from streamcut.io.indices import expect_indices, expect_pointers
from streamcut.io.recipe.recipe import Recipe
from streamcut.io.sources.canonical import RawRows
from streamcut.io.sources.row_source import BlockSize, row_ranges
from streamcut.io.sources.self_contained import CHUNK_COPIES, Array, Members, opened_hdf5
from streamcut.io.sources.side_files import SideFiles

ROWS_AT_ONCE = 1 << 16
_PARTS = ("data", "indices", "indptr", "shape", "barcodes")


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
        ((_, self._matrix),) = groups
        self._data, self._indices, self._indptr, shape = (self._matrix[name] for name in _PARTS[:4])
        arrays = (self._data, self._indices, self._indptr, shape)
        if not all(isinstance(part, Array) and len(part.shape) == 1 for part in arrays) or len(shape) != 2:
            raise BadInputError(f"{path}: data, indices, indptr and shape do not form a matrix; the file is damaged")
        sides = expect_indices(shape[:], INT64_MAX, f"{path}: shape", "a side")
        self.n_features, self.n_rows = (int(side) for side in sides)
        if len(self._indptr) != self.n_rows + 1:
            raise BadInputError(f"{path}: {len(self._indptr)} pointers for {self.n_rows} barcodes; the file is damaged")
        self.held_bytes = CHUNK_COPIES * max(part.chunk_bytes for part in arrays)

    @cached_property
    def recipe(self) -> Recipe:
        with readable(self.path):
            return Recipe(names=self._names())

    def rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        with readable(self.path):
            yield from self._rows(start, size)

    def _rows(self, start: int, size: BlockSize) -> Iterator[RawRows]:
        while start < self.n_rows:
            stop = min(start + ROWS_AT_ONCE, self.n_rows)
            bounds = expect_pointers(self._indptr[start : stop + 1], len(self._data), f"{self.path}: indptr")
            for first, last in row_ranges(bounds, size, self.path, start):
                cut = slice(int(bounds[first]), int(bounds[last]))
                indices, values = expect_indices(self._indices[cut], self.n_features, f"{self.path}: indices"), self._data[cut]
                if len(indices) != cut.stop - cut.start or len(values) != len(indices):
                    raise BadInputError(f"{self.path}: indices or data end early; the file is damaged")
                yield self.side.rows(bounds[first : last + 1], indices, values, self.offset + start + first)
            start = stop

    def kept(self, rows: slice) -> dict[str, list]:
        """The barcodes of these rows."""
        with readable(self.path):
            return {"barcode": [word.decode() for word in self._matrix["barcodes"][rows].tolist()]}

    def _names(self) -> tuple[str, ...] | None:
        matrix = self._matrix
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
