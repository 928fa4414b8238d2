"""Per-row numbers that are read several times: in memory while they are few, then in a scratch file, block by block.

A block holds the same rows for any memory budget, so sums over blocks have the same bits. Scratch files have no name, so
nothing remains of them however the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from streamcut.errors import NotFoundError
from streamcut.foundation.files import disk_full, scratch_folder

BLOCK_BYTES = 4 << 20
HELD_BYTES = 64 << 20  # of blocks in memory


class KeptRows:
    """Rows of `dtype`, a structured type. `held`: bytes kept in memory; `folder`: where the scratch file with the others goes.

    Iterating yields arrays of equal length, except the last; each is valid until the next one.
    """

    def __init__(self, dtype: np.dtype, *, held: int = HELD_BYTES, folder: Path | None = None) -> None:
        self.dtype, self._held, self._folder = dtype, held, folder
        self._rows = max(1, BLOCK_BYTES // dtype.itemsize)
        self._blocks: list[np.ndarray] = []
        self._file: BinaryIO | None = None
        self._filling, self._filled = np.empty(0, dtype), 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, **columns: np.ndarray) -> None:
        """Append rows, given by column name. Raises DiskFullError."""
        n, start = len(next(iter(columns.values()))), 0
        while start < n:
            if self._filled == len(self._filling):
                self._put_away()
            count = min(n - start, len(self._filling) - self._filled)
            for name, column in columns.items():
                self._filling[name][self._filled : self._filled + count] = column[start : start + count]
            start, self._filled, self._count = start + count, self._filled + count, self._count + count

    def __iter__(self) -> Iterator[np.ndarray]:
        yield from self._blocks
        if self._file is not None:
            self._file.seek(0)
            block = np.empty(self._rows, self.dtype)
            whole = block.view(np.uint8).data
            for _ in range((self._count - self._filled) // self._rows - len(self._blocks)):
                left = whole
                while left:
                    left = left[self._file.readinto(left) :]  # type: ignore[attr-defined]
                yield block
        if self._filled:
            yield self._filling[: self._filled]

    def _put_away(self) -> None:
        """Free memory for another block."""
        if not self._filled:
            self._filling = np.empty(self._rows, self.dtype)
            return
        if (len(self._blocks) + 1) * self._filling.nbytes <= self._held:
            self._blocks.append(self._filling)
            self._filling = np.empty(self._rows, self.dtype)
        else:
            self._write(self._filling.view(np.uint8).data)
        self._filled = 0

    def _write(self, left: memoryview) -> None:
        try:
            if self._file is None:
                folder = self._folder = scratch_folder(self._folder)
                self._file = tempfile.TemporaryFile(dir=folder, prefix="streamcut-", buffering=0)  # noqa: SIM115
        except (FileNotFoundError, PermissionError) as error:
            raise NotFoundError(f"{self._folder}: cannot create a scratch file there ({error.strerror}); set TMPDIR") from None
        self._file.seek(0, 2)
        assert self._folder is not None
        with disk_full(self._folder, len(left)):
            while left:
                left = left[self._file.write(left) :]
