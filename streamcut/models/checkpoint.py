"""Checkpoints: the state of a training run between two passes, from which it resumes to the same bits.

A checkpoint is one file in a folder, or one object behind a URL: a line that names the format, the length of the JSON that
follows (8 bytes, little-endian), the JSON (`record`, and name, dtype and shape of each array), the arrays one after the other,
and the SHA-256 of all that. Names, types and shapes are compared with what the run expects, its initial state; whether the
numbers come from the data cannot be seen in them: `verify` proves what a model claims, from the data. A new one takes the
place of the last in one step, once it is whole and on disk: if that fails, the last one is intact.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.config import CheckpointOptions
from streamcut.errors import CorruptError, DiskFullError, UsageError
from streamcut.foundation.files import locked, scratch_folder, sync_directory
from streamcut.foundation.opened import IrregularFileError, open_regular, opened_file
from streamcut.foundation.redaction import redacted
from streamcut.io.outputs import output
from streamcut.io.remote import expect_bucket, fetch_object, is_url, objects_below, remove_object, size_of

log = logging.getLogger(__name__)

NAME = "state.checkpoint"
ALONG = ("C=", "l1=", "class=")  # prefixes of the folders of a path's steps, and of classes trained one by one
_MAGIC = b"streamcut checkpoint 4\n"
_DIGEST = 32
_PIECE = 1 << 20


def write_checkpoint(
    place: str | os.PathLike,
    record: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    after: Callable[[], None] = lambda: None,
) -> None:
    """Write a checkpoint of `record` (JSON types) and C-contiguous `arrays`, without a copy, to a file or an object.

    `after` is called after each piece. Raises DiskFullError, NotFoundError.
    """
    listed = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    header, digest = json.dumps({"record": record, "arrays": listed}).encode(), hashlib.sha256()
    head = _MAGIC + len(header).to_bytes(8, "little") + header
    size = len(head) + sum(array.nbytes for array in arrays.values()) + _DIGEST
    pieces: Iterator[bytes | memoryview] = chain([head], *map(_pieces_of, arrays.values()))
    with output(place, prefix="ckpt", size=size) as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
            after()
        file.write(digest.digest())


def _pieces_of(array: np.ndarray) -> Iterator[memoryview]:
    view = array.reshape(-1).view(np.uint8).data
    yield from (view[start : start + _PIECE] for start in range(0, len(view), _PIECE))


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """An intact checkpoint on disk: its record, and for each array (dtype, shape, offset in the file). Names of arrays begin with
    `prefix`."""

    path: Path
    record: dict[str, Any]
    arrays: dict[str, tuple[str, tuple[int, ...], int]]
    prefix: str = ""

    def inside(self, name: str) -> StoredCheckpoint:
        """The arrays of the part `name`."""
        return replace(self, prefix=f"{self.prefix}{name}.")

    def __getitem__(self, name: str) -> np.ndarray:
        """Array `name`, newly allocated."""
        dtype, shape, _ = self.arrays[self.prefix + name]
        self.fill(name, array := np.empty(shape, dtype))
        return array

    def fill(self, name: str, out: np.ndarray, after: Callable[[], None] = lambda: None) -> None:
        """Read array `name` into `out`, which has its dtype and shape, piece by piece; `after` is called after each."""
        dtype, shape, offset = self.arrays[self.prefix + name]
        if (out.dtype.str, out.shape) != (dtype, shape):
            raise self.wrong(f"array {name} is {dtype} {shape}, expected {out.dtype.str} {out.shape}")
        with opened_file(self.path) as file:
            file.seek(offset)
            for piece in _pieces_of(out):
                if file.readinto(piece) < len(piece):
                    raise CorruptError(f"{self.path}: became shorter while it was read")
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
            raise CorruptError(f"{name}: damaged checkpoint ({size:,} bytes, SHA-256 differs); remove it to start again")
        file.seek(0)
        if file.read(len(_MAGIC)) != _MAGIC:
            raise CorruptError(f"{name}: not a checkpoint of this version of streamcut; remove it to start again")
        content = file.read(int.from_bytes(file.read(8), "little"))
    header, arrays, offset = json.loads(content), {}, len(_MAGIC) + 8 + len(content)
    for array, dtype, shape in header["arrays"]:
        arrays[array] = (dtype, tuple(shape), offset)
        offset += np.dtype(dtype).itemsize * math.prod(shape)
    return StoredCheckpoint(path, header["record"], arrays)


class Checkpoints:
    """The checkpoint of one run in a folder, locked while in use, or behind a URL. Use as a context.

    `identity` (JSON types) is what a run must have in common with the one that it resumes. Raises UsageError when the place
    holds a checkpoint and `options.resume` is not set, or that of another run; LockedError when another run uses the folder
    (for a URL the user ensures one run).
    """

    def __init__(self, options: CheckpointOptions, identity: dict[str, Any]) -> None:
        self.stored: StoredCheckpoint | None = None
        self._options = options
        self._identity = json.loads(json.dumps(identity))
        self._remote = is_url(options.directory)
        self._location = options.directory.rstrip("/") if self._remote else os.fspath(Path(options.directory))
        self._last = time.monotonic()
        self._stack = ExitStack()

    def __enter__(self) -> Checkpoints:
        try:
            self._find(self._entered())
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def part(self, name: str) -> Checkpoints:
        """That of a part of the run, in a folder of its own below this one."""
        below_it = replace(self._options, directory=below(self._options.directory, name))
        return Checkpoints(below_it, {**self._identity, "part": name})

    def due(self) -> bool:
        """Whether the present state should be saved."""
        return time.monotonic() - self._last >= self._options.every

    def save(self, state: dict[str, Any], arrays: Mapping[str, np.ndarray], after: Callable[[], None]) -> None:
        """Replace the checkpoint. A failure to write is a warning: training goes on."""
        try:
            write_checkpoint(f"{self._location}/{NAME}", {"identity": self._identity, "state": state}, arrays, after)
        except (DiskFullError, OSError) as error:
            log.warning("no checkpoint: %s; training continues, the previous one is kept", error)
        self._last = time.monotonic()

    def _entered(self) -> Path:
        """The checkpoint as a local file, which need not exist; its place exists and, where possible, is locked."""
        if self._remote:
            expect_bucket(self._location, "--checkpoint: ")
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="streamcut-", dir=scratch_folder(None))))
            if size_of(url := f"{self._location}/{NAME}") is not None:
                fetch_object(url, folder / NAME)
            return folder / NAME
        folder = Path(self._location)
        folder.mkdir(exist_ok=True)
        sync_directory(folder.parent)  # else a power failure could lose the folder with its synced files
        self._stack.enter_context(locked(folder / "lock", self._location))
        for leftover in folder.glob(".*.checkpoint.*.tmp"):
            leftover.unlink()
        return folder / NAME

    def _find(self, path: Path) -> None:
        where = self._location
        if not path.exists():
            if self._options.resume:
                log.warning("%s holds no checkpoint yet: training starts from the beginning", redacted(where))
            return
        if not self._options.resume:
            raise UsageError(f"{where} holds the checkpoint of a run; continue it with --resume, or remove the folder")
        self.stored = open_checkpoint(path, f"{where}/{NAME}")
        theirs = self.stored.record["identity"]
        differing = [
            f"{key} ({theirs.get(key)!r}, now {self._identity.get(key)!r})"
            for key in sorted(theirs.keys() | self._identity.keys())
            if theirs.get(key) != self._identity.get(key)
        ]
        if differing:
            raise UsageError(f"the checkpoint in {where} is of a different run: {', '.join(differing)} differ")


def below(directory: str, name: str) -> str:
    """The place `name` in `directory`, created if it is a folder."""
    if is_url(directory):
        return f"{directory.rstrip('/')}/{name}"
    Path(directory).mkdir(exist_ok=True)
    return os.fspath(Path(directory) / name)


def remove_checkpoints(directory: str, *, nested: bool = False) -> None:
    """Remove the checkpoint of a finished run, those of each step of a path, and folders left empty.

    nested   also those of runs in subfolders
    """
    if is_url(directory):
        root = directory.rstrip("/")
        for name in objects_below(root):
            place, _, last = name.rpartition("/")
            if last == NAME and (nested or _of_steps(place or ".")):
                remove_object(f"{root}/{name}")
        return
    folder = Path(directory)
    folders = {folder, *(path.parent for path in folder.glob("**/lock"))}
    for within in sorted(folders, reverse=True):  # the deepest first
        if nested or _of_steps(within.relative_to(folder).as_posix()):
            with locked(within / "lock", str(within), remove=True):
                (within / NAME).unlink(missing_ok=True)
            if not any(within.iterdir()):
                within.rmdir()
    for within in [*(folder.glob("*") if nested else ()), folder]:
        if within.is_dir() and not any(within.iterdir()):
            within.rmdir()


def _of_steps(place: str) -> bool:
    """Whether a place, relative to that of the run, is its own (".") or that of a step, or of a class in one."""
    return place == "." or all(name.startswith(ALONG) for name in place.split("/"))
