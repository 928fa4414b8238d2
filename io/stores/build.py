"""Building a store on a disk: NAME.partial/ holds a lock, the journal and `store/`, which is finally renamed to NAME.

remote_build.py does the same in object storage; `build_of` selects one by the path.
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
    """The store `path` under construction, and what earlier runs left. Once open, `files` writes shards (e.g. ZarrWriter)."""

    files: Any

    def store_exists(self) -> bool:
        """Whether something with the store's name exists."""

    def begun(self) -> dict:
        """The options of the run that can be resumed; empty when there is none."""

    def has_rows(self) -> bool:
        """Whether the run that can be resumed holds rows."""

    def expect_free(self, force: bool) -> None:
        """Raise UsageError when the store may not be built: it exists (without `force`), or other files are in the way."""

    def open(self, stack: contextlib.ExitStack, options: dict, *, resume: bool, force: bool) -> list[dict]:
        """Begin, or continue with `resume`, until `stack` ends. Returns the records of the complete shards.

        Raises UsageError when the earlier run had other `options`, LockedError, NotFoundError, DiskFullError.
        """

    def append(self, record: dict) -> None:
        """Record durably that a shard is finished."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file next to the shards."""

    def read_again(self, manifest: Manifest) -> StoredDataset:
        """The shards of the store before it is published."""

    def publish(self, manifest: bytes, *, force: bool) -> None:
        """Write the manifest, rename the store to its final name, and remove the store it replaces and the partial files."""

    def settle(self) -> None:
        """Clean up after a run that died between the final rename and its own cleanup."""

    def discard(self) -> None:
        """Remove a resumable run that no process holds open. Raises LockedError."""

    def stored_bytes(self) -> int:
        """Bytes of the finished store."""


def build_of(path: str | os.PathLike, backend: str = "zarr", n_features: int | None = None) -> Build:
    """The Build for the store `path`; `backend` and `n_features` go to its writer."""
    if is_url(path):
        from streamcut.io.stores.remote_build import RemoteBuild

        return RemoteBuild(str(path))
    return LocalBuild(Path(os.path.realpath(path)) if os.path.islink(path) else Path(path), backend, n_features)


class LocalBuild:
    """See the module. `path` is not a link."""

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
        expect_partial(self._partial)  # before a lock is created in a folder that is not ours

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
        """Restore NAME.partial to its state after the last finished shard, or empty it."""
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
        whole = finished == len(records) - 1  # then the journal's record of NAME.replaced stays, too
        self._journal = Journal(self._partial / JOURNAL, journal[-1][1] if whole else records[finished][1] if records else 0)
        stack.callback(self._journal.close)
        if not records:
            self._journal.append({"options": options})
        (self._store / SHARDS).mkdir(exist_ok=True)
        for folder in (self._store, self._partial, self.path.parent):  # makes their entries durable
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
        expect_replaceable(self.path, force)  # NAME, or a file inside it, may have appeared meanwhile
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
