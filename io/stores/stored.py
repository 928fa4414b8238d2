"""Stores that are read: arrays are filled by a subclass, checked, and become a Chunk; and the native store, on a disk."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

import numpy as np

from streamcut.errors import CorruptError, NotFoundError
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import ShownDataset, first_rows
from streamcut.io.manifest import Manifest, ShardInfo
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.codec import TRAILER, crc32c, decode, read_trailer
from streamcut.io.stores.guarded import damaged, expect_length, fetch_ahead, read_exactly, read_guarded
from streamcut.io.stores.spec import MANIFEST, RECIPE, SHARDS, shard_name
from streamcut.io.stores.zarr_layout import chunk_length, chunk_name

T = TypeVar("T")
U = TypeVar("U")


class StoredDataset(ShownDataset, ABC):
    """A Dataset (`io/dataset.py`) whose subclasses read the bytes in `fill`.

    Safe to read from several threads, each with buffers of its own.
    """

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path: str | None = path
        self.manifest = manifest
        self._first_rows = first_rows(manifest)
        self._named: set[int] = set()  # shards already being fetched
        self._sound: set[int] = set()  # shards with checked structure: equal checksums mean they are unchanged

    @abstractmethod
    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        """Decode the arrays named in `out` into it (dtypes and sizes as in the manifest), and check their checksums.

        May use `buffers.raw`. Raises CorruptError naming the file.
        """

    def expect(self, *shards: int) -> None:
        """Let the system read the files of the first two shards into its cache while this thread computes, so that the disk stays
        busy while the first is decoded. Shards named in the last call are already being read. See Dataset.expect."""
        named, self._named = self._named, set(shards[:2])
        for number in self._named - named:
            for name, length in self.files(number):
                fetch_ahead(str(self.path), name, length)

    def files(self, shard: int) -> Iterator[tuple[str, int]]:
        """(name inside the store, length) of the local files that `fill` reads."""
        yield from ()

    @cached_property
    def recipe(self) -> Recipe | None:
        """How its rows became features, None when unknown. Raises CorruptError."""
        try:
            if RECIPE not in self.manifest.extras:
                return None
            return Recipe.from_json(self.extra(RECIPE))
        except NewerRecipeError as error:
            raise NotFoundError(f"{self.path}/{RECIPE}: {error}") from None
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(f"{self.path}/{RECIPE}", f"is not a recipe ({error})") from None

    def extra(self, name: str) -> bytes:
        """The file `name` next to the shards, checked. Raises CorruptError."""
        return self.guarded(name, self.manifest.extras[name])

    def guarded(self, name: str, guard: tuple[int, int]) -> bytes:
        """A file of the store, whose (length, CRC-32C) must be `guard`. Raises CorruptError."""
        return read_guarded(str(self.path), name, guard).tobytes()

    def found(self, files: Mapping[str, int]) -> tuple[list[CorruptError], list[str]]:
        """Faults of the `files` of the store, {name: length}, apart from their content; and the names of other files."""
        root, wrong = str(self.path), []
        for name, length in files.items():
            try:
                expect_length(root, name, length)
            except CorruptError as error:
                wrong.append(error)
        there = (os.path.relpath(os.path.join(folder, name), root) for folder, _, names in os.walk(root) for name in names)
        return wrong, [name for name in there if name not in files and name != MANIFEST]

    def each(self, call: Callable[[T], U], items: Iterable[T]) -> Iterator[U]:
        """Map `call` over the items in order, with the concurrency that suits the storage."""
        return map(call, items)

    def buffers(self, shards: Iterable[ShardInfo] | None = None) -> Buffers:
        """Memory for one reading thread: for any shard, or any of `shards`."""
        return Buffers(self.manifest.shards if shards is None else shards)

    def read(self, shard: int, buffers: Buffers | None = None) -> Chunk:
        """Shard number `shard`; see Dataset.read. Without `buffers` the arrays are new and belong to the caller."""
        if not 0 <= shard < len(self.manifest.shards):
            raise IndexError(f"shard {shard} of {len(self.manifest.shards)}")
        info = self.manifest.shards[shard]
        names = [name for name in info.arrays if not (info.ones and name == "data")]
        return self.read_arrays(shard, names, self.buffers([info]) if buffers is None else buffers)

    def read_arrays(self, shard: int, names: Iterable[str], buffers: Buffers) -> Chunk:
        """The same with the arrays `names`; without "data" every value is 1."""
        arrays = {name: buffers.stored(name, self.manifest.shards[shard].arrays[name]) for name in names}
        self.fill(shard, arrays, buffers)
        arrays |= {name: buffers.widened(name, arrays[name]) for name in ("indptr", "y")}
        if shard not in self._sound:
            self._check(shard, arrays)
            self._sound.add(shard)
        if "weight" in arrays:
            arrays["weight"] = buffers.widened("weight", arrays["weight"])
        data, qid, weight = (arrays.get(name) for name in ("data", "qid", "weight"))
        return Chunk(arrays["indptr"], arrays["indices"], data, arrays["y"], qid, weight, self._first_rows[shard])

    def _check(self, shard: int, arrays: dict[str, np.ndarray]) -> None:
        """Raise CorruptError for a fault unsafe for kernels in a shard with these decoded arrays (indptr int64, y float64)."""
        from streamcut.io.stores.structure import first_problem  # loads Numba, not needed to show a store

        statistics = self.manifest.statistics
        limits = statistics.n_features, statistics.max_row_nnz, statistics.max_abs_value
        if (found := first_problem(arrays["indptr"], arrays["indices"], arrays.get("data"), arrays, *limits)) is not None:
            raise damaged(f"{self.path}/{SHARDS}/{shard_name(shard)}/{found[0]}", found[1])


class ZarrStore(StoredDataset):
    """The native store in a folder. Each array is one file: its length is checked, it is read into a reused buffer, its checksum
    is compared, and it is decompressed into a preallocated array. Nothing is allocated and nothing is copied twice.
    """

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        arrays = self.manifest.shards[shard].arrays
        for name, array in out.items():
            info = arrays[name]
            if not info.size:
                continue  # Zarr stores no chunk for an empty array
            content = self.content(shard, name, buffers.raw)
            path = f"{self.path}/{chunk_name(shard, name)}"
            payload = content[:-TRAILER]
            crc = crc32c(payload)
            if crc != read_trailer(content[-TRAILER:]):
                raise damaged(path, "does not have the checksum at its end")
            if crc != info.stored_crc32c:
                raise damaged(path, "is sound, but not the file that the manifest describes")
            try:
                decode(payload, array)
            except ValueError as error:
                raise damaged(path, str(error)) from None

    def content(self, shard: int, name: str, raw: np.ndarray) -> np.ndarray:
        """The stored chunk of array `name`, uint8, of the right length; may be a view of `raw`."""
        length = chunk_length(self.manifest.shards[shard].arrays[name])
        return read_exactly(str(self.path), chunk_name(shard, name), length, raw)

    def files(self, shard: int) -> Iterator[tuple[str, int]]:
        info = self.manifest.shards[shard]
        for name, array in info.arrays.items():
            if array.size and not (info.ones and name == "data"):
                yield chunk_name(shard, name), chunk_length(array)
