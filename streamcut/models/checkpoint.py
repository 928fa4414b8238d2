"""Checkpoints: the state of a training run between two passes, from which it resumes to the same bits.

A checkpoint is one file: a line that names the format, the length of the JSON that follows (8 bytes, little-endian), the JSON
(`record`, and name, dtype and shape of each array), the arrays one after the other, and the SHA-256 of all that.
The checksum guards against damage, not against forgery. Names, types and shapes are checked against what the run expects, its
initial state, indices and dual variables against the ranges stated by their owner (`Fill`, RowState.add),
floats against infinity and NaN. So no checkpoint makes kernels access memory out of bounds. Numbers in range are trusted: whether
a cut comes from the data cannot be seen in the cut. `verify` proves what a model claims, from the data.
A folder holds two generations, written alternately: if writing one fails, the other is intact.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from streamcut.config import CheckpointOptions
from streamcut.errors import CorruptError, DiskFullError, UsageError
from streamcut.foundation.fields import Fields, shown
from streamcut.foundation.opened import IrregularFileError, open_regular, opened_raw
from streamcut.foundation.redaction import redacted
from streamcut.models.checkpoint_places import below, checkpoint_place

log = logging.getLogger(__name__)

_MAGIC = b"streamcut checkpoint 1\n"
_DIGEST = 32
_PIECE = 1 << 20
Within = tuple[float, float]  # the smallest and the largest number that an array may hold


class Fill(Protocol):
    """Reads array `name` of a checkpoint into `out`, which has its dtype and shape, piece by piece; calls `after` after each.

    Raises CorruptError for floats that are not finite, and for numbers that are not `within`.
    """

    def __call__(
        self,
        name: str,
        out: np.ndarray,
        after: Callable[[], None] = lambda: None,
        within: Within | None = None,
    ) -> None: ...


def checkpoint_parts(
    record: Mapping[str, Any], arrays: Mapping[str, np.ndarray], after: Callable[[], None]
) -> tuple[Iterator[bytes | memoryview], int]:
    """The content of a checkpoint of `record` (JSON types) and C-contiguous `arrays`, without a copy, and its size in bytes.

    `after` is called after each piece.
    """
    listed = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    header = json.dumps({"record": record, "arrays": listed}).encode()

    def parts() -> Iterator[bytes | memoryview]:
        digest = hashlib.sha256()
        head = _MAGIC + len(header).to_bytes(8, "little") + header
        pieces: Iterator[bytes | memoryview] = chain([head], *map(_pieces_of, arrays.values()))
        for piece in pieces:
            digest.update(piece)
            yield piece
            after()
        yield digest.digest()

    size = len(_MAGIC) + 8 + len(header) + sum(array.nbytes for array in arrays.values()) + _DIGEST
    return parts(), size


def _pieces_of(array: np.ndarray) -> Iterator[memoryview]:
    view = _bytes_of(array)
    yield from (view[start : start + _PIECE] for start in range(0, len(view), _PIECE))


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """An intact checkpoint on disk: its record, and for each array (dtype, shape, offset in the file)."""

    path: Path
    record: dict[str, Any]
    arrays: dict[str, tuple[str, tuple[int, ...], int]]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of array `name`."""
        if name not in self.arrays:
            raise self.wrong(f"it lacks array {name}")
        return self.arrays[name][1]

    def read(self, name: str, shape: tuple[int, ...], kind: DTypeLike = np.float64, within: Within | None = None) -> np.ndarray:
        """Array `name`, newly allocated, of this shape and dtype."""
        if self.shape(name) != shape:  # before memory is allocated
            raise self.wrong(f"array {name} is of shape {self.shape(name)}, not {shape}")
        array = np.empty(shape, kind)
        self.read_into(name, array, within=within)
        return array

    def read_all(self) -> dict[str, np.ndarray]:
        """All arrays as stored: floats are finite; the caller checks the rest."""
        return {name: self.read(name, shape, dtype) for name, (dtype, shape, _) in self.arrays.items()}

    def read_into(
        self,
        name: str,
        out: np.ndarray,
        after: Callable[[], None] = lambda: None,
        within: Within | None = None,
    ) -> None:
        """See `Fill`."""
        shape, (dtype, _, offset) = self.shape(name), self.arrays[name]
        if (out.dtype.str, out.shape) != (dtype, shape):
            raise self.wrong(f"array {name} is {dtype} {shape}, expected {out.dtype.str} {out.shape}")
        flat, step = out.reshape(-1), _PIECE // out.dtype.itemsize
        with opened_raw(self.path) as file:
            file.seek(offset)
            for start in range(0, len(flat), step):
                piece = flat[start : start + step]
                view = _bytes_of(piece)
                while view:
                    count = file.readinto(view)
                    if not count:
                        raise CorruptError(f"{self.path}: became shorter while it was read")
                    view = view[count:]
                bad = np.zeros(len(piece), bool) if piece.dtype.kind != "f" else ~np.isfinite(piece)
                if within is not None:
                    bad |= (piece < within[0]) | (piece > within[1])
                if bad.any():
                    raise self.wrong(f"array {name} holds {piece[np.argmax(bad)]:g}")
                after()

    def wrong(self, what: str) -> CorruptError:
        """The error for a checkpoint with the fault `what`."""
        return CorruptError(f"{self.path}: not a state of this run: {what}; start again without it")

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Turn errors from wrong or missing values, met while a state is restored, into CorruptError."""
        try:
            yield
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            detail = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
            raise self.wrong(detail) from error


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def open_checkpoint(path: Path, name: str | None = None) -> StoredCheckpoint:
    """The checkpoint in the file `path`, called `name` in messages. Raises CorruptError unless it is intact to the last bit."""
    name = name or str(path)
    try:
        handle = open_regular(path)
    except IrregularFileError as error:
        raise CorruptError(f"{name}: {error.strerror}, not a checkpoint; remove it") from None
    digest = hashlib.sha256()
    with open(handle, "rb") as file:
        size = os.fstat(handle).st_size
        left = size - _DIGEST
        while left > 0 and (piece := file.read(min(left, _PIECE))):
            digest.update(piece)
            left -= len(piece)
        if left != 0 or file.read() != digest.digest():
            raise CorruptError(f"{name}: damaged checkpoint ({size:,} bytes, SHA-256 differs)")
        file.seek(0)
        if file.read(len(_MAGIC)) != _MAGIC:
            raise CorruptError(f"{name}: not a checkpoint of this version of streamcut")
        content = file.read(min(int.from_bytes(file.read(8), "little"), size))
    try:
        header = Fields(json.loads(content), "checkpoint")
        arrays = _places(header, len(_MAGIC) + 8 + len(content), size - _DIGEST)
        record = header.object("record")
        record.integer("generation")
        for name in ("identity", "state"):
            record.object(name)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptError(f"{name}: not a well-formed checkpoint: {error}") from None
    return StoredCheckpoint(path, record.plain(), arrays)


def _places(header: Fields, offset: int, end: int) -> dict[str, tuple[str, tuple[int, ...], int]]:
    """The (dtype, shape, offset) of each array; they are stored contiguously from `offset` to `end`."""
    places = {}
    for each in header.list("arrays"):
        name, dtype, shape = each
        if not isinstance(name, str) or np.dtype(dtype).kind not in "biuf" or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"array {shown(each)}")
        places[name] = (dtype, tuple(shape), offset)
        offset += np.dtype(dtype).itemsize * math.prod(shape)
    if offset != end:
        raise ValueError(f"arrays end at byte {offset:,}, not {end:,}")
    return places


class Checkpoints:
    """The checkpoints of one run in a place of their own (see checkpoint_places.py), locked while in use. Use as a context.

    `identity` (JSON types) is what a run must have in common with the one that it resumes. Raises UsageError when the place
    holds checkpoints and `options.resume` is not set, or those of another run; LockedError when another run uses the folder.
    """

    def __init__(self, options: CheckpointOptions, identity: dict[str, Any]) -> None:
        self.found: StoredCheckpoint | None = None
        self._options = options
        self._identity = json.loads(json.dumps(identity))
        self._place = checkpoint_place(options.directory)
        self._generation = 0
        self._last = time.monotonic()
        self._stack = ExitStack()

    def __enter__(self) -> Checkpoints:
        try:
            self._place.enter(self._stack)
            self._find()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def part(self, name: str) -> Checkpoints:
        """Those of a part of the run, in a folder of its own below this one."""
        below_it = replace(self._options, directory=below(self._options.directory, name))
        return Checkpoints(below_it, {**self._identity, "part": name})

    def due(self) -> bool:
        """Whether the present state should be saved."""
        return time.monotonic() - self._last >= self._options.every

    def save(self, state: dict[str, Any], arrays: Mapping[str, np.ndarray], after: Callable[[], None]) -> None:
        """Replace the older generation. A failure to write is a warning: training goes on."""
        record = {"identity": self._identity, "generation": self._generation + 1, "state": state}
        try:
            self._place.write(self._generation + 1, *checkpoint_parts(record, arrays, after))
            self._generation += 1
        except (DiskFullError, OSError) as error:
            log.warning("no checkpoint: %s; training continues, the previous one is kept", error)
        self._last = time.monotonic()

    def _find(self) -> None:
        place, whole, damaged = self._place.name, [], []
        for name, path in self._place.found():
            if not self._options.resume:
                raise UsageError(f"{place} holds checkpoints of a run; continue it with --resume, or remove the folder")
            try:
                whole.append((name, open_checkpoint(path, name)))
            except CorruptError as error:
                damaged.append(error)
        if not whole:
            if damaged:
                raise damaged[0]
            if self._options.resume:
                log.warning("%s holds no checkpoint yet: training starts from the beginning", redacted(place))
            return
        for problem in damaged:
            log.warning("%s; resuming from %s", problem, redacted(whole[0][0]))
        self.found = max((each for _, each in whole), key=lambda checkpoint: checkpoint.record["generation"])
        self._generation = self.found.record["generation"]
        theirs = self.found.record["identity"]
        differing = [
            f"{key} ({theirs.get(key)!r}, now {self._identity.get(key)!r})"
            for key in sorted(theirs.keys() | self._identity.keys())
            if theirs.get(key) != self._identity.get(key)
        ]
        if differing:
            raise UsageError(f"the checkpoint in {place} is of a different run: {', '.join(differing)} differ")
