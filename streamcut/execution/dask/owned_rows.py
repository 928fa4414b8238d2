"""The row state on the workers' own disks, as the client sees it: who holds which file, and how it gets to see them all."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from streamcut.execution.dask import row_exchange
from streamcut.execution.dask.cluster import POLL, Cluster, lost
from streamcut.execution.dask.plan import Placement
from streamcut.execution.dask.shared_rows import SharedRows
from streamcut.execution.lanes import Lanes

_LEGACY = 20.0  # seconds that workers which end in good order have to leave what they hold to others


class OwnedRows(SharedRows):
    """SharedRows whose files the workers hold; the client's folder has those that somebody wants to see, until the next pass."""

    def __init__(self, folder: Path, lanes: Lanes, scratch: Path, cluster: Cluster, run: str) -> None:
        super().__init__(folder, lanes, scratch)
        self._cluster = cluster
        self._run = run
        self._placement: Placement

    def place(self, placement: Placement) -> None:
        """Where lanes go from now on. What workers held that are gone is looked for: they may be leaving it to others."""
        self._placement = placement
        there = sorted(placement.threads_of)
        if all(address in placement.threads_of for holders in self.files.holders.values() for address in holders):
            return
        until = time.monotonic() + _LEGACY
        while not self._found(there) and time.monotonic() < until:
            time.sleep(POLL)

    def _found(self, there: list[str]) -> bool:
        """Whether each file is at one of these workers at least."""
        found = self._cluster.ask(there, row_exchange.files_of, self._run)
        for (name, lane), version in self.files.versions.items():
            file = self.files.path(name, lane, version).name
            self.files.holders[name, lane] = tuple(address for address in there if file in found.get(address, ()))
        return all(self.files.holders[key] for key in self.files.versions)

    def held(self, lane: int, changed: tuple[str, ...], holders: tuple[str, ...]) -> None:
        """All arrays of `lane`, with what a pass `changed`, are at `holders` now."""
        for name in {*changed, *(name for name, of in self.files.versions if of == lane)}:
            self.files.holders[name, lane] = holders

    def _see(self, name: str, lane: int) -> None:
        version = self.files.versions.get((name, lane))
        if version is None or (path := self.files.path(name, lane, version)).exists():
            return
        for address in self.files.holders[name, lane]:
            if self._fetched(address, path):
                return
        self._cluster.running()  # raises when it is the scheduler that is gone
        raise lost(self._cluster.address, f"the workers that had the row state of lane {lane} are gone")

    def _written(self, name: str, lane: int, version: int) -> None:
        """Give a file that was written here to the worker of its lane and that one's neighbour."""
        first = self._placement.worker_of[lane]
        second = self._placement.neighbours().get(first)
        asked = [address for address in (first, second) if address is not None]
        holders = tuple(address for address in asked if self._given(address, self.files.path(name, lane, version)))
        if not holders:
            raise lost(self._cluster.address, f"no worker takes the row state of lane {lane}")
        self.files.holders[name, lane] = holders

    def _forget_copies(self) -> None:
        for path in Path(self.files.folder).glob("[!.]*.*.*"):
            path.unlink()

    def _fetched(self, address: str, path: Path) -> bool:
        temporary = path.with_name(f".{path.name}")
        with open(temporary, "wb") as file:
            while True:
                piece = self._cluster.ask([address], row_exchange.read_piece, self._run, path.name, file.tell()).get(address)
                if piece is None:
                    return False
                file.write(piece)
                if len(piece) < row_exchange.PIECE:
                    break
        temporary.rename(path)
        return True

    def _given(self, address: str, path: Path) -> bool:
        token = uuid.uuid4().hex
        with open(path, "rb") as file:
            while True:
                piece = file.read(row_exchange.PIECE)
                last = len(piece) < row_exchange.PIECE
                call = row_exchange.write_piece, self._run, path.name, token, piece, last
                if not self._cluster.ask([address], *call).get(address):
                    return False
                if last:
                    return True
