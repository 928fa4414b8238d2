"""Per-row numbers that are read several times: in memory while they are few, then in a scratch file.

A block holds the same rows for any memory budget, so sums over blocks have the same bits. Scratch files have no name, so
nothing remains of them however the process ends.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from streamcut.errors import NotFoundError
from streamcut.foundation.files import disk_full, scratch_folder

BLOCK_BYTES = 4 << 20
HELD_BYTES = 64 << 20  # in memory


class KeptRows:
    """Rows of `dtype`, a structured type. `held`: bytes kept in memory; `folder`: where the scratch file for more goes.

    Iterating yields arrays of equal length, except the last.
    """

    def __init__(self, dtype: np.dtype, *, held: int = HELD_BYTES, folder: Path | None = None) -> None:
        self.dtype, self._held, self._folder, self._count = dtype, held, folder, 0
        self._file: IO[bytes] = io.BytesIO()

    def __len__(self) -> int:
        return self._count

    def add(self, **columns: np.ndarray) -> None:
        """Append rows, given by column name. Raises DiskFullError, NotFoundError."""
        rows = np.empty(len(next(iter(columns.values()))), self.dtype)
        for name, column in columns.items():
            rows[name] = column
        self._file.seek(0, 2)
        if isinstance(self._file, io.BytesIO) and self._file.tell() + rows.nbytes > self._held:
            self._to_disk(self._file)
        with disk_full(self._folder or "memory", rows.nbytes):
            self._file.write(rows.tobytes())
        self._count += len(rows)

    def __iter__(self) -> Iterator[np.ndarray]:
        self._file.seek(0)
        size = max(1, BLOCK_BYTES // self.dtype.itemsize) * self.dtype.itemsize
        while block := self._file.read(size):
            yield np.frombuffer(block, self.dtype)

    def _to_disk(self, held: io.BytesIO) -> None:
        self._folder = scratch_folder(self._folder)
        try:
            self._file = tempfile.TemporaryFile(dir=self._folder, prefix="streamcut-")  # noqa: SIM115 - as long as self
        except (FileNotFoundError, PermissionError) as error:
            raise NotFoundError(f"{self._folder}: cannot create a scratch file there ({error.strerror}); set TMPDIR") from None
        with disk_full(self._folder, len(held.getbuffer())):
            self._file.write(held.getbuffer())
