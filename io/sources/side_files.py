"""Labels, query ids and weights in separate files, for matrices that cannot hold them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.opened import opened_file, opened_raw, readable, regular
from streamcut.io.sources.canonical import RawRows
from streamcut.io.text.decompress import open_bytes
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
