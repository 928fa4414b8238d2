"""The row state in a folder shared by several processes: a file per lane and array, rewritten when a pass changes it.

No file is ever changed in place. A new version gets a new name, and the old one is removed after the pass; so computing a lane
twice, even concurrently, is harmless.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import FileIO
from pathlib import Path

import numpy as np
from numpy.typing import DTypeLike

from streamcut.execution.lanes import Lanes
from streamcut.execution.row_state import Refill, RowPieces, Rows, RowState
from streamcut.foundation.files import disk_full
from streamcut.foundation.opened import opened_raw

_PIECE = 1 << 20

CACHED = "cached"  # name of the files that list the cached rows of a lane; not row state

Versions = dict[tuple[str, int], int]  # (array, lane) → number of its file; without one it is all zeros


@dataclass(frozen=True, slots=True)
class RowFiles:
    """The location of the row state: `kinds` are {array: (dtype, shape of one row)}.

    holders  the workers that have a file, when they do not share a folder
    """

    folder: str
    kinds: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    versions: Versions = field(default_factory=dict)
    holders: dict[tuple[str, int], tuple[str, ...]] = field(default_factory=dict)

    def path(self, name: str, lane: int, version: int) -> Path:
        return Path(self.folder, f"{name}.{lane}.{version}")

    def read(self, name: str, lane: int, rows: int) -> np.ndarray:
        """The array of a lane that has `rows` rows, newly allocated."""
        dtype, shape = ("|b1", ()) if name == CACHED else self.kinds[name]
        version = self.versions.get((name, lane))
        if version is None:
            return np.zeros((rows, *shape), dtype)
        array = np.empty((rows, *shape), dtype)
        with opened_raw(self.path(name, lane, version)) as file:
            _fill(file, _bytes(array))
        return array

    def differs(self, name: str, lane: int, array: np.ndarray) -> bool:
        """Whether `array` differs from what `read` gives."""
        version = self.versions.get((name, lane))
        flat = np.asarray(_bytes(array))
        if version is None:
            return bool(flat.any())  # -0.0 differs from 0.0
        piece = np.empty(_PIECE, np.uint8)
        start = 0
        with opened_raw(self.path(name, lane, version)) as file:
            while start < len(flat):
                count = file.readinto(piece[: len(flat) - start].data)
                if not count or not np.array_equal(piece[:count], flat[start : start + count]):
                    return True
                start += count
        return False

    def write(self, name: str, lane: int, version: int, array: np.ndarray) -> None:
        """Write a new version. It gets its name only when complete."""
        with self.writing(name, lane, version, array.nbytes) as write:
            write(_bytes(array))

    @contextmanager
    def writing(self, name: str, lane: int, version: int, size: int) -> Iterator[Callable[[memoryview], None]]:
        """Takes the bytes of a new version, `size` in total, in order; it gets its name only when complete."""
        path = self.path(name, lane, version)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        with disk_full(path, size):
            with open(temporary, "wb", buffering=0) as file:

                def write(view: memoryview) -> None:
                    while view:
                        view = view[file.write(view[:_PIECE]) :]

                yield write
            os.replace(temporary, path)

    def prune(self, number: int) -> None:
        """Remove outdated files of passes before `number`."""
        valid = {self.path(name, lane, version).name for (name, lane), version in self.versions.items()}
        for path in Path(self.folder).glob("[!.]*.*.*"):
            if path.name not in valid and int(path.suffix[1:]) < number:
                path.unlink(missing_ok=True)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _fill(file: FileIO, view: memoryview) -> None:
    while view:
        count = file.readinto(view[:_PIECE])
        if not count:
            raise OSError(f"{file.name}: too short; another process wrote to the scratch folder")
        view = view[count:]


class _Lane:
    """An array of one lane, indexed by the row numbers of the whole data set; its length is the number after its last row."""

    def __init__(self, array: np.ndarray, first: int) -> None:
        self._array = array
        self._first = first

    def __getitem__(self, rows: slice | int) -> np.ndarray | np.generic:
        if isinstance(rows, slice):
            return self._array[rows.start - self._first : rows.stop - self._first]
        return self._array[rows - self._first]

    def __len__(self) -> int:
        return self._first + len(self._array)


class LaneRows:
    """The row state of one lane in memory, as a Runner expects it: the existing arrays among `names`; None: all."""

    n_rows = -1  # a lane never counts as all rows: its arrays are not plain ones

    def __init__(self, files: RowFiles, lane: int, start: int, stop: int, names: tuple[str, ...] | None = None) -> None:
        self._files = files
        self._lane = lane
        self._read = {name: files.read(name, lane, stop - start) for name in files.kinds if names is None or name in names}
        self.arrays = {name: _Lane(array, start) for name, array in self._read.items()}

    def release(self, start: int, stop: int) -> None:
        """Nothing is mapped: no effect."""

    def keep(self, version: int) -> tuple[str, ...]:
        """Write the arrays that were changed; returns their names."""
        changed = tuple(name for name, array in self._read.items() if self._files.differs(name, self._lane, array))
        for name in changed:
            self._files.write(name, self._lane, version, self._read[name])
        return changed


class SharedRows:
    """The row state of all lanes as solvers and checkpoints see it; between passes its files are authoritative.

    Checkpoints read and write it in pieces: nothing that grows with the rows is loaded on the client.

    scratch  a folder for the whole arrays, when requested
    number   returns a new number for files
    """

    def __init__(self, folder: Path, lanes: Lanes, scratch: Path, number: Callable[[], int]) -> None:
        self.n_rows = lanes.bounds[-1]
        self.files = RowFiles(str(folder))
        self._lanes = lanes
        self._scratch = scratch
        self._new_number = number
        self._whole: RowState | None = None
        self.within: dict[str, tuple[float, float]] = {}

    def add(
        self, name: str, dtype: DTypeLike = np.float64, shape: tuple[int, ...] = (), *,
        within: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        """See RowKeeper."""
        if within is not None:
            self.within[name] = within
        for key in [key for key in self.files.versions if key[0] == name]:  # the next pass removes their files
            del self.files.versions[key]
        self.files.kinds[name] = (np.dtype(dtype).str, shape)
        self._whole = None

    @property
    def arrays(self) -> Rows:
        """The whole arrays. Changes made before the next pass become the row state."""
        if self._whole is None:
            self._whole = RowState(self.n_rows, self._scratch)
            for name, (dtype, shape) in self.files.kinds.items():
                self._whole.add(name, dtype, shape)
                for lane in range(len(self._lanes)):
                    start, stop = self._lanes.rows(lane)
                    self._see(name, lane)
                    self._whole.arrays[name][start:stop] = self.files.read(name, lane, stop - start)
                    self._whole.release(start, stop)
        return self._whole.arrays

    def kept(self) -> Rows | dict[str, RowPieces]:
        """See RowKeeper."""
        if self._whole is not None:  # the caller may have changed it
            return self._whole.arrays
        return {
            name: RowPieces(np.dtype(dtype), (self.n_rows, *shape), partial(self._pieces, name))
            for name, (dtype, shape) in self.files.kinds.items()
        }

    def refill(self, name: str, refill: Refill) -> None:
        """See RowKeeper."""
        if self._whole is not None:
            self._whole.refill(name, refill)
            return
        dtype, shape = self.files.kinds[name]
        version = self._new_number()
        most = max(1, _PIECE // max(1, self._row_bytes(name)))
        for lane in range(len(self._lanes)):
            start, stop = self._lanes.rows(lane)
            with self._writing(name, lane, version, (stop - start) * self._row_bytes(name)) as write:
                for first in range(start, stop, most):
                    piece = np.empty((min(most, stop - first), *shape), dtype)
                    refill(piece, (first, self.n_rows))
                    write(_bytes(piece))
            self.replaced(name, lane, version)

    def _pieces(self, name: str) -> Iterator[bytes | memoryview]:
        """The bytes of an array, lane by lane from its files."""
        row = self._row_bytes(name)
        for lane in range(len(self._lanes)):
            start, stop = self._lanes.rows(lane)
            version = self.files.versions.get((name, lane))
            if version is None:
                size = (stop - start) * row
                yield from (bytes(min(_PIECE, size - first)) for first in range(0, size, _PIECE))
                continue
            yield from self._content(name, lane, version)

    def _row_bytes(self, name: str) -> int:
        dtype, shape = self.files.kinds[name]
        return np.dtype(dtype).itemsize * math.prod(shape)

    def release(self, start: int, stop: int) -> None:
        if self._whole is not None:
            self._whole.release(start, stop)

    def commit(self) -> None:
        """Write changes made in `arrays` to files, and release the arrays."""
        if self._whole is None:
            return
        version = self._new_number()
        for name, array in self._whole.arrays.items():
            for lane in range(len(self._lanes)):
                start, stop = self._lanes.rows(lane)
                if self.files.differs(name, lane, array[start:stop]):
                    with self._writing(name, lane, version, array[start:stop].nbytes) as write:
                        write(_bytes(array[start:stop]))
                    self.replaced(name, lane, version)
                self._whole.release(start, stop)
        self._whole = None
        self._forget_copies()

    def replaced(self, name: str, lane: int, version: int) -> None:
        """Record `version` as the valid file."""
        old = self.files.versions.get((name, lane))
        self.files.versions[name, lane] = version
        if old is not None:
            self.files.path(name, lane, old).unlink(missing_ok=True)

    def _content(self, name: str, lane: int, version: int) -> Iterator[bytes]:
        """The bytes of a file."""
        with opened_raw(self.files.path(name, lane, version)) as file:
            while piece := file.read(_PIECE):
                yield piece

    def _writing(self, name: str, lane: int, version: int, size: int) -> AbstractContextManager[Callable[[memoryview], None]]:
        """See RowFiles.writing."""
        return self.files.writing(name, lane, version, size)

    def _see(self, name: str, lane: int) -> None:
        """Fetch the file of an array; here all files are at hand."""

    def _forget_copies(self) -> None:
        """Nothing to do: there are no copies."""
