"""Building a store in object storage, where nothing can be renamed: manifest.json, written last, makes it a store.

NAME.partial/journal/000000 records the options, NAME.partial/journal/000001, … the finished shards, like the lines of a
journal on a disk. Shards go to NAME itself. When --force replaces a store NAME, they go to NAME.partial/store until the new
one is complete; then the old manifest is removed, the server copies the objects, and the new manifest is written.

Objects cannot be locked. Of two runs that write the same store, one finds at the end that the journal is the other's.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from streamcut.errors import LockedError, UsageError
from streamcut.foundation.files import failpoint
from streamcut.io.manifest import Manifest
from streamcut.io.places.remote import (
    copy_object,
    expect_bucket,
    objects_below,
    read_object,
    remove_object,
    size_of,
    write_object,
)
from streamcut.io.stores.journal import check_options, journal_line, read_lines
from streamcut.io.stores.leftovers import STORE, STORE_NAMES, expect_known_names
from streamcut.io.stores.manifest_file import shard_from_record
from streamcut.io.stores.remote_writer import RemoteWriter
from streamcut.io.stores.spec import BUILD, MANIFEST, PARTIAL
from streamcut.io.stores.stored import StoredDataset

_JOURNAL = "journal"
_OURS = re.compile(rf"{_JOURNAL}/\d{{6,}}|{BUILD}/{STORE_NAMES}")
_AT_ONCE = 16


class RemoteBuild:
    """See the module."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._partial = self.url + PARTIAL
        self._run = uuid.uuid4().hex
        self._root = self.url  # where shards go
        self._records = 0

    def store_exists(self) -> bool:
        return size_of(f"{self.url}/{MANIFEST}") is not None

    def begun(self) -> dict:
        records = self._journal()
        return records[0]["options"] if records else {}

    def has_rows(self) -> bool:
        return size_of(self._entry(1)) is not None

    def expect_free(self, force: bool) -> None:
        expect_bucket(self.url)
        expect_known_names(self._partial, objects_below(self._partial), _OURS)
        there = objects_below(self.url)
        expect_known_names(self.url, there, STORE)
        if MANIFEST in there and not force:
            raise UsageError(f"{self.url}: exists; choose another name, or replace it with --force")
        if there and MANIFEST not in there and size_of(self._entry(0)) is None:
            raise UsageError(
                f"{self.url}: holds {len(there):,} objects of a store without {MANIFEST}, and no journal that lists them; "
                f"remove them, or choose another name"
            )

    def open(self, stack: contextlib.ExitStack, options: dict, *, resume: bool, force: bool) -> list[dict]:
        self.expect_free(force)
        records = self._journal()
        if records and resume:
            check_options(records[0]["options"], options, self._partial)
        else:
            self._clear(records)
            records = [{"options": options, "build": BUILD if self.store_exists() else ""}]
        if records[0]["build"]:
            self._root = f"{self._partial}/{BUILD}"
        write_object(self._entry(0), journal_line({**records[0], "run": self._run}))
        self.files = stack.enter_context(contextlib.closing(RemoteWriter(self._root)))
        there = objects_below(self._root)
        finished = 0
        for record in records[1:]:
            if not self.files.is_whole(finished, shard_from_record(record["shard"]), there):
                break
            finished += 1
        self._remove(f"{self._root}/{name}" for name in there if not self.files.keeps(name, finished))
        self._remove(self._entry(number) for number in range(finished + 1, len(records)))
        self._records = finished + 1
        return records[1 : finished + 1]

    def append(self, record: dict) -> None:
        self.files.arrived(self._records - 1)
        failpoint("convert.journal")
        write_object(self._entry(self._records), journal_line(record))
        self._records += 1

    def write(self, name: str, content: bytes) -> None:
        write_object(f"{self._root}/{name}", content)

    def read_again(self, manifest: Manifest) -> StoredDataset:
        from streamcut.io.stores.remote_store import RemoteStore

        return RemoteStore(self._root, manifest=manifest)

    def publish(self, manifest: bytes, *, force: bool) -> None:
        failpoint("convert.root")
        self.files.finish()
        self._expect_ours()
        there = objects_below(self.url)
        expect_known_names(self.url, there, STORE)
        if MANIFEST in there and not force:
            raise UsageError(f"{self.url} appeared meanwhile; choose another name, or replace it with --force")
        if self._root != self.url:
            failpoint("convert.rename")
            remove_object(f"{self.url}/{MANIFEST}")  # from here on it is not a store
            names = objects_below(self._root)
            self._remove(f"{self.url}/{name}" for name in there if name not in names and name != MANIFEST)
            with ThreadPoolExecutor(_AT_ONCE, "copy") as pool:
                list(pool.map(lambda name: copy_object(f"{self._root}/{name}", f"{self.url}/{name}"), names))
        failpoint("convert.manifest")
        write_object(f"{self.url}/{MANIFEST}", manifest)
        failpoint("convert.rename")
        self.discard()

    def settle(self) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove NAME.partial and, while there is no manifest, the shards in its journal."""
        there = objects_below(self._partial)
        expect_known_names(self._partial, there, _OURS)
        self._clear(self._journal())

    def stored_bytes(self) -> int:
        return sum(objects_below(self.url).values())

    def _clear(self, records: list[dict]) -> None:
        """Remove what a run left behind; the journal goes last, because it identifies the rest."""
        if records and not self.store_exists():
            self._remove(f"{self.url}/{name}" for name in objects_below(self.url))
        there = sorted(objects_below(self._partial))
        for journal in (False, True):
            names = [name for name in there if name.startswith(_JOURNAL) == journal]
            self._remove(f"{self._partial}/{name}" for name in names if not name.endswith("/000000"))
        remove_object(self._entry(0))

    def _entry(self, number: int) -> str:
        return f"{self._partial}/{_JOURNAL}/{number:06d}"

    def _journal(self) -> list[dict]:
        """The records up to the first that is missing or damaged."""
        names = sorted(objects_below(f"{self._partial}/{_JOURNAL}"))
        whole = names[: next((k for k, name in enumerate(names) if name != f"{k:06d}"), len(names))]
        with ThreadPoolExecutor(_AT_ONCE, "journal") as pool:
            found = list(pool.map(lambda name: read_lines(read_object(f"{self._partial}/{_JOURNAL}/{name}")), whole))
        good = next((k for k, lines in enumerate(found) if not lines), len(found))
        return [lines[0][0] for lines in found[:good]]

    def _expect_ours(self) -> None:
        """Raise LockedError when another run has begun to write the same store."""
        lines = read_lines(read_object(self._entry(0)))
        if not lines or lines[0][0].get("run") != self._run:
            raise LockedError(f"{self.url} is being written by another process, too; let one of them finish, then start again")

    def _remove(self, urls: Iterable[str]) -> None:
        with ThreadPoolExecutor(_AT_ONCE, "remove") as pool:
            list(pool.map(remove_object, urls))
