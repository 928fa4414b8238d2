"""A store in the making on a disk: NAME.partial/ holds a lock, the journal and `store/`, which in the end gets the name NAME.

What is made of object storage instead is in remote_build.py; `build_of` knows which of them a path needs.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Protocol

from streamcut.errors import NotFoundError
from streamcut.foundation.files import UNREACHABLE, disk_full, failpoint, locked, sync_directory, write_durably
from streamcut.io.manifest import Manifest
from streamcut.io.places.remote import is_url
from streamcut.io.stores.journal import Journal, check_options, read_journal
from streamcut.io.stores.leftovers import STORE, Replaced, expect_partial, expect_replaceable, lock_of, remove, remove_partial
from streamcut.io.stores.manifest_file import shard_from_record
from streamcut.io.stores.spec import BUILD, JOURNAL, MANIFEST, PARTIAL, SHARDS
from streamcut.io.stores.stored import StoredDataset


class Build(Protocol):
    """The store `path` in the making, and what earlier runs left of it. `files` writes shards (ZarrWriter is one) once open."""

    files: Any

    def store_exists(self) -> bool:
        """Whether there is something of the name of the store."""

    def begun(self) -> dict:
        """The options of what is there to be resumed; empty when there is nothing."""

    def has_rows(self) -> bool:
        """Whether what is there to be resumed holds rows."""

    def expect_free(self, force: bool) -> None:
        """Raise UsageError when the store may not be made: it exists, unless `force`, or something is in the way."""

    def open(self, stack: contextlib.ExitStack, options: dict, *, resume: bool, force: bool) -> list[dict]:
        """Begin, or with `resume` continue, until `stack` ends; the records of the shards that are whole.

        Raises UsageError when what is there was begun with other `options`, LockedError, NotFoundError, DiskFullError.
        """

    def append(self, record: dict) -> None:
        """Remember durably that a shard is finished."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file next to the shards."""

    def read_again(self, manifest: Manifest) -> StoredDataset:
        """The shards of the store that has no name yet."""

    def publish(self, manifest: bytes, *, force: bool) -> None:
        """Write what makes it a store, give it its name, and remove what it replaces and what it was made of."""

    def settle(self) -> None:
        """Remove what a run left that died between giving the store its name and cleaning up."""

    def discard(self) -> None:
        """Remove what there is to be resumed; no run holds it open. Raises LockedError."""

    def stored_bytes(self) -> int:
        """Bytes of the finished store."""


def build_of(path: str | os.PathLike, backend: str = "zarr", n_features: int | None = None) -> Build:
    """Where the store `path` is made; the others are what its writer needs to know."""
    if is_url(path):
        from streamcut.io.stores.remote_build import RemoteBuild

        return RemoteBuild(str(path))
    return LocalBuild(Path(os.path.realpath(path)) if os.path.islink(path) else Path(path), backend, n_features)


class LocalBuild:
    """See the module. `path` is no link."""

    def __init__(self, path: Path, backend: str, n_features: int | None) -> None:
        self.path = path
        self.files: Any = None
        self._backend, self._n_features = backend, n_features
        self._partial = path.with_name(path.name + PARTIAL)
        self._store = self._partial / BUILD
        self._replaced = Replaced(path)

    def store_exists(self) -> bool:
        return os.path.exists(self.path)

    def begun(self) -> dict:
        records = read_journal(self._partial / JOURNAL)
        return records[0][0]["options"] if records else {}

    def has_rows(self) -> bool:
        return len(read_journal(self._partial / JOURNAL)) > 1  # the first line names the options

    def expect_free(self, force: bool) -> None:
        expect_replaceable(self.path, force)
        expect_partial(self._partial)  # before a lock is put into a folder of somebody else's

    def open(self, stack: contextlib.ExitStack, options: dict, *, resume: bool, force: bool) -> list[dict]:
        self.expect_free(force)
        try:
            with disk_full(self._partial):
                self._partial.mkdir(exist_ok=True)
                stack.enter_context(locked(lock_of(self._partial), str(self.path)))
                failpoint("convert.open")
                expect_partial(self._partial)
                return self._begin(stack, options, resume, force)
        except OSError as error:
            if error.errno not in UNREACHABLE:
                raise
            raise NotFoundError(f"{self._partial}: cannot be made ({error.strerror})") from error

    def _begin(self, stack: contextlib.ExitStack, options: dict, resume: bool, force: bool) -> list[dict]:
        """Make NAME.partial what it was after the last finished shard, or empty."""
        journal = read_journal(self._partial / JOURNAL) if resume else []
        records = [record for record in journal if "replacing" not in record[0]]
        if records:
            check_options(records[0][0]["options"], options, str(self._partial))
        elif self._store.exists():
            remove(self._store, STORE)
        self._replaced.settle(back=not records)
        expect_replaceable(self.path, force)  # another writer may have finished between the first check and the lock
        self._store.mkdir(exist_ok=True)
        if self._backend == "hdf5":
            from streamcut.io.stores.hdf5_writer import HDF5Writer

            self.files = HDF5Writer(self._store, self._n_features)
        else:
            from streamcut.io.stores.zarr_writer import ZarrWriter

            self.files = ZarrWriter(self._store)
        finished = 0
        for record, _ in records[1:]:
            if not self.files.is_whole(finished, shard_from_record(record["shard"])):
                break
            finished += 1
        self.files.keep(finished)
        whole = finished == len(records) - 1  # then what the journal says of NAME.replaced stays, too
        self._journal = Journal(self._partial / JOURNAL, journal[-1][1] if whole else records[finished][1] if records else 0)
        stack.callback(self._journal.close)
        if not records:
            self._journal.append({"options": options})
        (self._store / SHARDS).mkdir(exist_ok=True)
        for folder in (self._store, self._partial, self.path.parent):  # from now on what is inside them is safe
            sync_directory(folder)
        return [record for record, _ in records[1 : finished + 1]]

    def append(self, record: dict) -> None:
        self._journal.append(record)

    def write(self, name: str, content: bytes) -> None:
        write_durably(self._store / name, content, prefix="convert.extra")

    def read_again(self, manifest: Manifest) -> StoredDataset:
        if self._backend == "hdf5":
            from streamcut.io.stores.hdf5_store import HDF5Store

            return HDF5Store(str(self._store), manifest)
        from streamcut.io.stores.zarr_store import ZarrStore

        return ZarrStore(str(self._store), manifest)

    def publish(self, manifest: bytes, *, force: bool) -> None:
        failpoint("convert.manifest")
        write_durably(self._store / MANIFEST, manifest, prefix="convert.manifest")
        failpoint("convert.root")
        self.files.finish()
        sync_directory(self._store)
        failpoint("convert.rename")
        expect_replaceable(self.path, force)  # it may have come into being meanwhile, or something inside it
        if self.path.exists():
            self._replaced.settle(back=False)
            self._journal.append(self._replaced.record())
            self._replaced.move()
            failpoint("convert.rename")
        os.rename(self._store, self.path)
        sync_directory(self.path.parent)
        failpoint("convert.rename")
        self._replaced.settle(back=False)
        self._journal.close()
        remove_partial(self._partial)

    def settle(self) -> None:
        expect_partial(self._partial)
        if self._partial.exists():
            with locked(lock_of(self._partial), str(self.path)):
                self._replaced.settle(back=False)
                remove_partial(self._partial)

    def discard(self) -> None:
        with locked(lock_of(self._partial), str(self.path)):
            remove_partial(self._partial)

    def stored_bytes(self) -> int:
        files = (os.path.join(folder, name) for folder, _, names in os.walk(self.path) for name in names)
        return sum(os.lstat(file).st_size for file in files)
