"""The row state on the workers' own disks, as the client sees it: which workers hold which file, and how to access them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from streamcut.execution.dask import row_exchange
from streamcut.execution.dask.cluster import POLL, Cluster, lost
from streamcut.execution.dask.plan import Placement
from streamcut.execution.dask.shared_rows import SharedRows
from streamcut.execution.lanes import Lanes
from streamcut.execution.row_state import Refill

_LEGACY = 20.0  # seconds that workers shutting down in good order have to hand over their files


class OwnedRows(SharedRows):
    """SharedRows whose files the workers hold; the client's folder has those requested, until the next pass."""

    def __init__(
        self, folder: Path, lanes: Lanes, scratch: Path, number: Callable[[], int], cluster: Cluster, run: str,
        placed: Callable[[], Placement],
    ) -> None:  # fmt: skip
        super().__init__(folder, lanes, scratch, number)
        self._cluster = cluster
        self._run = run
        self._placed = placed
        self._placement: Placement

    def refill(self, name: str, refill: Refill) -> None:
        self.place(self._placed())
        super().refill(name, refill)

    def place(self, placement: Placement) -> None:
        """Set where lanes run from now on. Files of lost workers are searched for: they may be handed on."""
        self._placement = placement
        if all(address in placement.threads_of for holders in self.files.holders.values() for address in holders):
            return
        until = time.monotonic() + _LEGACY
        while not self._found(sorted(placement.threads_of)) and time.monotonic() < until:
            time.sleep(POLL)

    def _found(self, there: list[str]) -> bool:
        """Whether each file is on at least one of these workers."""
        found = self._cluster.ask(there, row_exchange.files_of, self._run)
        for (name, lane), version in self.files.versions.items():
            file = self.files.path(name, lane, version).name
            self.files.holders[name, lane] = tuple(address for address in there if file in found.get(address, ()))
        return all(self.files.holders[key] for key in self.files.versions)

    def held(self, lane: int, changed: tuple[str, ...], holders: tuple[str, ...]) -> None:
        """Record that all arrays of `lane`, with those that a pass `changed`, are at `holders` now."""
        for name in {*changed, *(name for name, of in self.files.versions if of == lane)}:
            self.files.holders[name, lane] = holders

    def _see(self, name: str, lane: int) -> None:
        version = self.files.versions.get((name, lane))
        if version is None or (path := self.files.path(name, lane, version)).exists():
            return
        temporary = path.with_name(f".{path.name}")
        with open(temporary, "wb") as file:
            for piece in self._content(name, lane, version):
                file.write(piece)
        temporary.rename(path)

    def _content(self, name: str, lane: int, version: int) -> Iterator[bytes]:
        file, offset, last = self.files.path(name, lane, version).name, 0, False
        while not last:
            piece = self._piece(name, lane, file, offset)
            yield piece
            offset += len(piece)
            last = len(piece) < row_exchange.PIECE

    def _piece(self, name: str, lane: int, file: str, offset: int) -> bytes:
        """A piece of the file from `offset` on, from any holder. A worker that shut down in good order may have handed it on."""
        until = time.monotonic() + _LEGACY
        while True:
            holders = self.files.holders[name, lane]
            for address in holders:
                answer = self._cluster.ask([address], row_exchange.read_piece, self._run, file, offset).get(address)
                if answer is not None:
                    self.files.holders[name, lane] = (address, *(other for other in holders if other != address))
                    return answer
            there = sorted(self._cluster.running())  # raises when the scheduler is gone
            if not self._found(there) and time.monotonic() > until:
                raise lost(self._cluster.address, f"the workers that had the row state of lane {lane} are gone")
            time.sleep(POLL)

    @contextmanager
    def _writing(self, name: str, lane: int, version: int, size: int) -> Iterator[Callable[[memoryview], None]]:
        """See RowFiles.writing: the file goes to the worker of its lane and to that worker's neighbour."""
        first = self._placement.worker_of[lane]
        second = self._placement.neighbours().get(first)
        taking = [address for address in (first, second) if address is not None]
        file, token = self.files.path(name, lane, version).name, uuid.uuid4().hex

        def give(piece: memoryview, last: bool = False) -> None:
            answers = self._cluster.ask(taking, row_exchange.write_piece, self._run, file, token, bytes(piece), last)
            taking[:] = [address for address in taking if answers.get(address)]
            if not taking:
                raise lost(self._cluster.address, f"no worker takes the row state of lane {lane}")

        def write(view: memoryview) -> None:
            for start in range(0, len(view), row_exchange.PIECE):
                give(view[start : start + row_exchange.PIECE])

        yield write
        give(memoryview(b""), last=True)
        self.files.holders[name, lane] = tuple(taking)

    def _forget_copies(self) -> None:
        for path in Path(self.files.folder).glob("[!.]*.*.*"):
            path.unlink()
