"""Arrays in scratch files, mapped to memory: they live as long as they are referenced, and take memory while accessed.

Scratch files have no name, so nothing remains of them however the process ends.
"""

from __future__ import annotations

import math
import mmap
import tempfile
import weakref
from pathlib import Path

import numpy as np

from streamcut.errors import NotFoundError
from streamcut.foundation.files import disk_full
from streamcut.foundation.systems import release, reserve


class ScratchShelf:
    """A shelf (streamcut.bundle.shelf) of files in `folder`."""

    far = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()

    def zeros(self, *shape: int) -> np.ndarray:
        mapped = scratch_map(self._folder, 8 * math.prod(shape))
        self._maps.add(mapped)
        return np.frombuffer(mapped, np.float64).reshape(shape)

    def space(self, *shape: int) -> np.ndarray:
        return self.zeros(*shape)

    def put(self, vector: np.ndarray) -> np.ndarray:
        out = self.zeros(*vector.shape)
        out[...] = vector
        self.release()
        return out

    def take(self, vector: np.ndarray) -> np.ndarray:
        out = vector.copy()
        self.release()
        return out

    def release(self) -> None:
        for mapped in self._maps:
            release(mapped, 0, len(mapped))


def scratch_map(folder: Path, size: int) -> mmap.mmap:
    """A file of `size` bytes of zeros. Raises DiskFullError at once when the disk is full, not when a page is written."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix="streamcut-") as file:
            with disk_full(folder, size):
                reserve(file.fileno(), size)
            return mmap.mmap(file.fileno(), size)
    except FileNotFoundError:
        raise NotFoundError(f"--scratch: {folder} is not a folder; create it first") from None
    except PermissionError:
        raise NotFoundError(f"--scratch: {folder} cannot be written to; choose another folder") from None
