"""The part common to all stores: arrays are filled by a subclass, checked, and become a Chunk."""

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
from streamcut.io.stores.codec import crc32c
from streamcut.io.stores.guarded import damaged, expect_length, fetch_ahead, read_guarded
from streamcut.io.stores.spec import MANIFEST, RECIPE, SHARDS, shard_name

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

    def where(self, shard: int, name: str = "") -> str:
        """The name of a shard, or of its array `name`, in messages."""
        return "/".join(filter(None, (str(self.path), SHARDS, shard_name(shard), name)))

    def buffers(self, shards: Iterable[ShardInfo] | None = None) -> Buffers:
        """Memory for one reading thread: for any shard, or any of `shards`."""
        return Buffers(self.manifest.shards if shards is None else shards)

    def read(self, shard: int, buffers: Buffers | None = None) -> Chunk:
        """Shard number `shard`; see Dataset.read. Without `buffers` the arrays are new and belong to the caller."""
        if not 0 <= shard < len(self.manifest.shards):
            raise IndexError(f"shard {shard} of {len(self.manifest.shards)}")
        info = self.manifest.shards[shard]
        buffers = self.buffers([info]) if buffers is None else buffers
        out = {name: buffers.stored(name, array) for name, array in info.arrays.items() if not (info.ones and name == "data")}
        self.fill(shard, out, buffers)
        return self._checked(shard, out, buffers)

    def _checked(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> Chunk:
        indptr, y = buffers.widened("indptr", out["indptr"]), buffers.widened("y", out["y"])
        if shard not in self._sound:
            if (problem := self.problem(shard, {**out, "indptr": indptr, "y": y})) is not None:
                raise problem
            self._sound.add(shard)
        return Chunk(
            indptr=indptr,
            indices=out["indices"],
            data=out.get("data"),
            y=y,
            qid=out.get("qid"),
            weight=buffers.widened("weight", out["weight"]) if "weight" in out else None,
            first_row=self._first_rows[shard],
        )

    def problem(self, shard: int, arrays: dict[str, np.ndarray]) -> CorruptError | None:
        """The first fault unsafe for kernels in a shard with these decoded arrays (indptr int64, y float64), or None."""
        statistics = self.manifest.statistics
        from streamcut.io.stores.structure import first_problem  # loads Numba, not needed to show a store

        found = first_problem(
            arrays["indptr"],
            arrays["indices"],
            arrays.get("data"),
            arrays,
            statistics.n_features,
            statistics.max_row_nnz,
            statistics.max_abs_value,
        )
        return None if found is None else damaged(self.where(shard, found[0]), found[1])

    def check_content(self, shard: int, name: str, array: np.ndarray) -> None:
        """Raise CorruptError unless the decoded `array` has the checksum that the manifest states."""
        if crc32c(array) != self.manifest.shards[shard].arrays[name].content_crc32c:
            raise damaged(self.where(shard, name), "does not have the content that the manifest states")
