"""Labels, query ids and weights in separate files, for matrices that cannot hold them."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator

import numpy as np

from streamcut.errors import BadInputError, NotFoundError
from streamcut.foundation.opened import opened_file, opened_raw, readable, regular
from streamcut.io.places.archives import array_header
from streamcut.io.text.decompress import open_bytes
from streamcut.io.text.inputs import NOT_UTF8, not_text


class ColumnFile:
    """One value per row: a text file (one per line, compressed or not; blank lines only at the end) or a one-dimensional `.npy`.

    `read(start, count)` is fast for consecutive calls. Words stay words (labels go through --label-map later).
    """

    def __init__(self, path: str, what: str) -> None:
        try:
            regular(path)
        except OSError as error:
            needed = f"{what} needs a text file with one value per line, or a .npy file"
            raise NotFoundError(f"{path}: {error.strerror}; {needed}") from None
        self.path, self.what = path, what
        self._next = 0
        self._lines: Iterator[str] | None = None
        self._array: tuple[int, np.dtype, int] | None = None  # offset, type, length
        if path.endswith(".npy"):
            self._open_array()

    def read(self, start: int, count: int) -> np.ndarray:
        """Values of rows start … start + count - 1. Raises BadInputError when the file is too short."""
        if self._array is not None:
            offset, dtype, length = self._array
            found = np.fromfile(
                regular(self.path), dtype, max(0, min(count, length - start)), offset=offset + start * dtype.itemsize
            )
        else:
            found = self._read_lines(start, count)
        if len(found) < count:
            raise BadInputError(f"{self.path}: {start + len(found)} values, but the matrix has more rows than that")
        return found

    def expect_end(self, rows: int) -> None:
        """Raise BadInputError when the file has values for more than `rows` rows."""
        if (self._array[2] - rows if self._array is not None else len(self._read_lines(rows, 1))) > 0:
            raise BadInputError(f"{self.path}: more values than the {rows} rows of the matrix")

    def _open_array(self) -> None:
        with readable(self.path, what="not a .npy file"), opened_file(self.path) as file:
            shape, _, dtype = array_header(file)
            if len(shape) != 1 or dtype.kind not in "biufU":
                raise BadInputError(
                    f"{self.path}: {self.what} must be one-dimensional numbers or words, not {dtype} of shape {shape}"
                )
            self._array = (file.tell(), dtype, shape[0])

    def _read_lines(self, start: int, count: int) -> np.ndarray:
        with readable(self.path):
            if self._lines is None or start < self._next:
                self._lines, self._next = _open_text(self.path, self.what), 0
            lines = self._lines
            for _ in itertools.islice(lines, start - self._next):
                pass
            words = [line.strip() for line in itertools.islice(lines, count)]
        self._next = start + len(words)
        blank = next((i for i, word in enumerate(words) if not word), None)
        if blank is not None:
            if any(words[blank:]) or any(line.strip() for line in lines):
                raise BadInputError(f"{self.path}:{start + blank + 1}: no value on this line")
            words = words[:blank]
        try:
            return np.array(words, dtype=np.float64)
        except ValueError:
            return np.array(words, dtype=object)


def _open_text(path: str, what: str) -> Iterator[str]:
    """The lines of a text file, compressed or not. Raises BadInputError, also for other kinds of files."""
    stream, _ = open_bytes(opened_raw(path), path)
    file = io.BufferedReader(stream)
    try:
        if (kind := not_text(file.peek(16))) is None:
            yield from io.TextIOWrapper(file, encoding="utf-8-sig")
            return
    except UnicodeDecodeError:
        kind = NOT_UTF8
    raise BadInputError(f"{path}: {kind}; {what} needs a text file with one value per line, or a .npy file of np.save")
