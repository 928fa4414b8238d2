"""Reading the native store behind a URL: one request per chunk, several in flight, each checked as on a disk.

A request costs a round trip regardless of its size, so a reader that waits for each would leave the connection idle. While
shards are decoded and processed, other threads fetch the next ones, as many as AHEAD_BYTES allow.

Failed requests are retried with growing delays: busy object stores return errors, and connections break. Keys and endpoints
are left to fsspec and the libraries below it, with their own variables and files; none is stored here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from streamcut.errors import CorruptError, IncompleteError, NotFoundError
from streamcut.foundation.interrupts import result_of
from streamcut.io.manifest import Manifest
from streamcut.io.places.answers import Fetchers, ask, attempts
from streamcut.io.places.direct import Direct, direct
from streamcut.io.places.remote import OBJECT_STORES, MissingError, file_system, info_of, no_bucket, objects_below, rest, retried
from streamcut.io.stores.chunk_cache import ChunkCache
from streamcut.io.stores.codec import TRAILER, crc32c
from streamcut.io.stores.guarded import damaged
from streamcut.io.stores.manifest_file import MAX_MANIFEST, parse_manifest
from streamcut.io.stores.shards_ahead import ShardsAhead
from streamcut.io.stores.spec import JOURNAL, MANIFEST
from streamcut.io.stores.zarr_layout import METADATA, chunk_length, chunk_name, is_foreign
from streamcut.io.stores.zarr_store import ZarrStore

AHEAD_BYTES = 64 << 20  # of chunks in flight, or received and not yet used
_REQUESTS = 16  # at once
_OURS = "metadata"  # in the cache: marks this store's metadata as ours
_MANIFESTS = "manifests"  # folder of the cache for manifests
_MISSING = -1  # length of a missing file
T = TypeVar("T")
U = TypeVar("U")


class RemoteStore(ZarrStore):
    """A store that fsspec opens: s3://, gs://, az://, https://, memory://, ….

    cache     local cache of chunks, None: no cache
    manifest  of shards that are not a store yet; None: it is stored with them
    """

    def __init__(self, url: str, cache: ChunkCache | None = None, manifest: Manifest | None = None) -> None:
        self._files, self._root = file_system(url)
        super().__init__(url, manifest or _manifest(self._files, self._root, url, cache))
        self._cache = cache
        if cache is not None:
            cache.begin(self.manifest.fingerprint)
        self._pool, self._direct = Fetchers(_REQUESTS), direct(self._files, url, _REQUESTS)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "cache": self._cache}

    def __setstate__(self, state: dict[str, Any]) -> None:
        RemoteStore.__init__(self, state["path"], state["cache"])

    @property
    def held_bytes(self) -> int:
        """Memory in addition to the buffers of readers: chunks in flight."""
        return AHEAD_BYTES + max(self._sizes, default=0)

    def expect(self, *shards: int) -> None:
        """Begin to fetch as many of these shards as memory allows, the others as soon as this thread has taken some."""
        self._ahead.expect(shards)

    def content(self, shard: int, name: str, raw: np.ndarray) -> np.ndarray:
        chunk = self._ahead.take(shard, name)
        return np.frombuffer(self._fetch(shard, name) if chunk is None else result_of(chunk), np.uint8)

    def guarded(self, name: str, guard: tuple[int, int]) -> bytes:
        return self._cached(name, guard[0], guard[1], 0)

    def found(self, files: Mapping[str, int]) -> tuple[list[CorruptError], list[str]]:
        """One listing where the server supports it; else (https://) one request per file."""
        listed = str(self.path).partition("://")[0] in OBJECT_STORES
        there = objects_below(str(self.path)) if listed else dict(zip(files, self.each(self._length, files), strict=True))
        wrong = []
        for name, length in files.items():
            if (size := there.get(name, _MISSING)) == _MISSING:
                wrong.append(damaged(f"{self.path}/{name}", "missing"))
            elif size not in (None, length):
                wrong.append(damaged(f"{self.path}/{name}", f"is {size:,} bytes long, and should be {length:,}"))
        return wrong, [name for name in there if name not in files and name != MANIFEST]

    def each(self, call: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
        answers = [self._pool.submit(call, item) for item in items]
        try:
            yield from map(result_of, answers)
        finally:
            for answer in answers:
                answer.cancel()

    def _length(self, name: str) -> int | None:
        """Bytes of a file, _MISSING when there is none; None when the server does not say."""
        try:
            return retried(f"{self.path}/{name}", lambda: ask(self._files, "info", f"{self._root}/{name}"), doing="read")["size"]
        except MissingError:
            return _MISSING

    @cached_property
    def _sizes(self) -> list[int]:
        """Bytes of each shard."""
        return [sum(length for _, length in self.files(shard)) for shard in range(len(self.manifest.shards))]

    @cached_property
    def _ahead(self) -> ShardsAhead:
        return ShardsAhead(self._sizes, self._begun, AHEAD_BYTES)

    def _begun(self, shard: int) -> dict[str, Future]:
        wanted = {file for file, _ in self.files(shard)}
        names = [name for name in self.manifest.shards[shard].arrays if chunk_name(shard, name) in wanted]
        return {name: self._pool.submit(self._fetch, shard, name) for name in names}

    def _fetch(self, shard: int, name: str) -> bytes:
        """A chunk from the cache, or from the server, then added to the cache."""
        file, info = chunk_name(shard, name), self.manifest.shards[shard].arrays[name]
        length = chunk_length(info)
        return self._cached(file, length, info.stored_crc32c, TRAILER)

    def _cached(self, file: str, length: int, crc: int, trailer: int) -> bytes:
        if self._cache is not None and (found := self._cache.get(file, length)) is not None:
            if crc32c(found[: length - trailer]) == crc:
                return found
            self._cache.forget(file)
        content = self._request(file, length, crc, trailer)
        if self._cache is not None:
            self._cache.put(file, content)
        return content

    def known(self) -> bool:
        """Whether its metadata was checked earlier, when its chunks entered the cache."""
        return self._cache is not None and self._cache.get(_OURS, len(_OURS)) is not None

    def know(self) -> None:
        """Record in the cache that its metadata is as we write it."""
        if self._cache is not None:
            self._cache.put(_OURS, _OURS.encode())

    def _request(self, file: str, length: int, crc: int, trailer: int = 0) -> bytes:
        def problem(content: bytes) -> str | None:
            if len(content) != length:
                return f"is {len(content):,} bytes long, and should be {length:,}"
            good = crc32c(np.frombuffer(content, np.uint8)[: length - trailer]) == crc
            return None if good else "does not have the checksum that the manifest states"

        return fetched(self._files, f"{self._root}/{file}", f"{self.path}/{file}", problem, length, self._direct)


def fetched(
    files: Any, path: str, where: str, problem: Callable[[bytes], str | None], length: int | None = None,
    by: Direct | None = None,
) -> bytes:  # fmt: skip
    """The content of `path` in which `problem` finds no fault; requested again while that may help.

    A file of `length` bytes is fetched `by` a faster function, if given. Else one byte more is requested, to detect a longer
    file: s3fs asks for the length of an object before reading it whole, which would take two requests each. Raises
    NotFoundError when it cannot be read, CorruptError when it is missing or `problem` finds something each time.
    """
    limits = {} if length is None else {"start": 0, "end": length + 1}

    def get() -> bytes:
        if by is not None and length is not None and (content := by.get(path, length)) is not None:
            return content
        return ask(files, "cat_file", path, size=length or 0, **limits)

    for attempt in range(most := attempts()):
        try:
            content = retried(where, get, doing="read")
        except MissingError:
            raise damaged(where, "missing") from None
        found = problem(content)
        if found is None:
            return content
        if attempt == most - 1:
            raise damaged(where, found)
        rest(where, found, attempt)
    raise AssertionError("unreachable")


def open_remote(url: str, cache: ChunkCache | None = None) -> RemoteStore | None:
    """The store at `url` if it is in our own format, None if other software wrote it. Raises as open_dataset does."""
    store = RemoteStore(url.rstrip("/"), cache)
    if store.manifest.backend != "zarr":
        raise NotFoundError(f"{url}: a store of {store.manifest.backend} files, which is read only from a disk; copy it there")
    if store.known():
        return store
    for file, (length, crc) in store.manifest.files.items():
        content = fetched(store._files, f"{store._root}/{file}", f"{url}/{file}", lambda _: None)
        if len(content) != length or crc32c(content) != crc:  # zarr-python may have added its consolidated metadata
            return None
    first = store.manifest.shards[0]
    for name, info in first.arrays.items():
        file = f"{store.where(0, name)}/{METADATA}"
        if info.size and is_foreign(fetched(store._files, file.replace(str(store.path), store._root, 1), file, lambda _: None)):
            return None
    store.know()
    return store


def _manifest(files: Any, root: str, url: str, cache: ChunkCache | None) -> Manifest:
    """The manifest of the store, from the cache if the server reports the object unchanged."""
    where = f"{url}/{MANIFEST}"
    try:
        about = retried(url, lambda: info_of(files, f"{root}/{MANIFEST}"), doing="read")
    except MissingError:
        if url.partition("://")[0] in OBJECT_STORES and objects_below(f"{url}/{JOURNAL}"):
            what = "its conversion was never finished; run the same `streamcut convert` with --resume"
            raise IncompleteError(f"{url}: {what}, or without, to begin anew") from None
        if (error := no_bucket(url)) is not None:
            raise error from None
        if url.partition("://")[0] in OBJECT_STORES and not objects_below(url):
            raise NotFoundError(f"{url}: there is nothing at this address; check the spelling") from None
        what = f"has no {MANIFEST}, so it is not a streamcut store; make one with `streamcut convert`"
        raise NotFoundError(f"{url}: {what}") from None
    size, version = about["size"], about.get("ETag")
    if size is not None and size > MAX_MANIFEST:
        raise damaged(where, f"is {size:,} bytes long, which no manifest is")
    whole = lambda content: None if size in (None, len(content)) else f"is {len(content):,} of {size:,} bytes"  # noqa: E731
    name = hashlib.sha256(f"{url} {version}".encode()).hexdigest()
    if cache is not None and version and size is not None:
        cache.begin(_MANIFESTS)
        if (found := cache.get(name, size)) is not None:
            with suppress(CorruptError):
                return parse_manifest(found, where)
            cache.forget(name)
    content = fetched(files, f"{root}/{MANIFEST}", where, whole)
    manifest = parse_manifest(content, where)
    if cache is not None and version and size is not None:
        cache.put(name, content)
    return manifest
