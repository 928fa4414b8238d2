"""Row state on workers' own disks: how files move between workers, and to the client.

Each worker has a folder per run, which no other process touches. Files are sent in pieces, through Dask's own connections
(including TLS) and outside its tasks: a worker answers even if its threads are busy. The client's requests go through the
scheduler, since it may not be able to reach workers directly.
"""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Any

from streamcut.execution.runner import Interrupted
from streamcut.foundation.files import disk_full
from streamcut.foundation.opened import opened_raw

PIECE = 4 << 20
_PATIENCE = 10.0  # seconds that another worker has to deliver a piece
_DEAF = 60.0  # seconds for which a worker that did not answer gets no copies

_folders: dict[str, Path] = {}  # of this process, by run
_over: set[str] = set()  # runs that have ended
_lock = threading.Lock()  # of the two: tasks run on threads, requests on the event loop
_unheard: dict[str, float] = {}  # when workers did not answer


def folder_of(run: str, directory: str) -> Path:
    """The folder of a run on this worker, created in its local `directory` on first use.

    Raises Interrupted when the run is over.
    """
    with _lock:
        if run in _over:
            raise Interrupted
        if run not in _folders:
            _folders[run] = Path(tempfile.mkdtemp(dir=directory, prefix="streamcut-rows-"))
        return _folders[run]


def forget(run: str) -> None:
    """Remove all that this worker has of a run, which has ended here."""
    with _lock:
        _over.add(run)
        folder = _folders.pop(run, None)
    if folder is not None:
        over = folder.with_name(f".{folder.name}")  # a concurrent write finds no folder, and leaves none
        folder.rename(over)
        shutil.rmtree(over, ignore_errors=True)


def forget_others(clients: Iterable[str]) -> None:
    """Remove leftovers of runs whose clients the scheduler no longer knows."""
    known = set(clients)
    for run in list(_folders):  # threads may add some
        if run.partition(" ")[0] not in known:
            forget(run)


def read_piece(run: str, file: str, offset: int, size: int = PIECE) -> bytes | None:
    """At most `size` bytes of a file, fewer at its end; None: the file is not here."""
    try:
        with opened_raw(_path(run, file)) as handle:
            handle.seek(offset)
            return handle.read(size)
    except (FileNotFoundError, KeyError):
        return None


def write_piece(run: str, file: str, token: str, piece: bytes, last: bool, dask_worker: Any = None) -> bool:
    """Append to a file, which gets its name when complete."""
    folder_of(run, dask_worker.local_directory)
    path = _path(run, file)
    temporary = path.with_name(f".{path.name}.{token}")
    with disk_full(path, len(piece)), open(temporary, "ab", buffering=0) as handle:
        view = memoryview(piece)
        while view:
            view = view[handle.write(view) :]
    if last:
        os.replace(temporary, path)
    return True


def _path(run: str, file: str) -> Path:
    if os.sep in file or file.startswith("."):
        raise ValueError(f"{file!r} is not the name of a row-state file")
    return _folders[run] / file


def serve(worker: Any) -> None:
    """Let other workers read and write files here, and take them over at shutdown; `worker` is Dask's."""

    def write(run: str, file: str, token: str, piece: bytes, last: bool) -> bool:
        return write_piece(run, file, token, piece, last, worker)

    worker.handlers["streamcut_read"] = read_piece
    worker.handlers["streamcut_write"] = write
    worker.plugins["streamcut-rows"] = Legacy()


async def fetch(here: Any, address: str, run: str, file: str) -> bool:
    """Copy a file of the worker at `address` into the folder of the run on the worker `here`; whether it was there.

    Raises OSError or TimeoutError when it does not answer.
    """
    token, offset = uuid.uuid4().hex, 0
    while True:
        piece = await remote_piece(here, address, run, file, offset, PIECE)
        if piece is None:
            return False
        write_piece(run, file, token, piece, len(piece) < PIECE, here)
        if len(piece) < PIECE:
            return True
        offset += len(piece)


async def push(here: Any, address: str, run: str, file: str) -> None:
    """Copy a file from the folder of the run on the worker `here` to the worker at `address`.

    Raises OSError or TimeoutError when it does not answer.
    """
    token, offset = uuid.uuid4().hex, 0
    while True:
        piece = read_piece(run, file, offset)
        assert piece is not None
        last = len(piece) < PIECE
        await _within(address, here.rpc(address).streamcut_write(run=run, file=file, token=token, piece=piece, last=last))
        if last:
            return
        offset += len(piece)


async def remote_piece(here: Any, address: str, run: str, file: str, offset: int, size: int) -> bytes | None:
    """As read_piece, from the worker at `address`. Raises OSError or TimeoutError when it does not answer."""
    return await _within(address, here.rpc(address).streamcut_read(run=run, file=file, offset=offset, size=size))


def unheard(address: str) -> bool:
    """Whether a worker recently failed to answer."""
    return time.monotonic() - _unheard.get(address, -math.inf) < _DEAF


def files_of(run: str) -> list[str]:
    """Names of the row-state files that are here."""
    return [path.name for path in _folders[run].glob("[!.+]*.*.*")] if run in _folders else []


class Legacy:
    """Dask worker plugin: at an orderly shutdown, the worker's files go to a remaining worker."""

    async def teardown(self, worker: Any) -> None:
        if not any(files_of(run) for run in list(_folders)):
            return
        known = (await worker.scheduler.identity(n_workers=-1))["workers"]
        heirs = [at for at, other in known.items() if at != worker.address and other["status"] == "running" and not unheard(at)]
        for run in list(_folders):
            for file in files_of(run):
                while heirs:
                    try:
                        await push(worker, heirs[0], run, file)
                        break
                    except (OSError, TimeoutError):
                        del heirs[0]


async def _within(address: str, call: Awaitable[Any]) -> Any:
    try:
        return await asyncio.wait_for(call, _PATIENCE)
    except (OSError, TimeoutError):
        _unheard[address] = time.monotonic()
        raise
