"""Stores that are read: files are checked, decoded into reused memory, checked again as rows, and become a Chunk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property

import numpy as np

from streamcut.errors import NotFoundError
from streamcut.foundation import systems
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.opened import IrregularFileError, open_regular, opened_raw
from streamcut.io.dataset import ShownDataset, first_rows
from streamcut.io.manifest import Manifest, chunk_length, chunk_name, damaged, shard_files
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.io.stores.buffers import Space, largest
from streamcut.io.stores.spec import METADATA, RECIPE, SHARDS, TRAILER, shard_name
from streamcut.io.stores.zarr_layout import crc32c, decode, read_trailer

_AHEAD = 128 << 10  # bytes: Linux may truncate longer readahead requests to this


def read_exactly(root: str | os.PathLike, name: str, length: int, buffers: Space | None = None) -> np.ndarray:
    """The `length` bytes of the file `name` ("a/b") of the store `root`, uint8, in `buffers` if given.

    Raises CorruptError when the file is missing, not a regular file, unreadable or of another length, NotFoundError without
    permission to read it.
    """
    path = f"{os.fspath(root)}/{name}"
    try:
        with opened_raw(path) as file:
            found = os.fstat(file.fileno()).st_size
            if found != length:
                raise damaged(path, f"is {found:,} bytes long, and should be {length:,}")
            view = (buffers or Space()).array("raw", np.uint8, length)
            rest = view.data
            while rest:
                if not (got := file.readinto(rest)):
                    raise damaged(path, "became shorter while it was read")
                rest = rest[got:]
            return view
    except (FileNotFoundError, NotADirectoryError):
        raise damaged(path, "missing") from None
    except PermissionError as error:
        raise NotFoundError(f"{path}: {error.strerror}; make it readable") from None
    except IrregularFileError as error:
        raise damaged(path, str(error.strerror)) from None
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})") from error


def fetch_ahead(root: str | os.PathLike, name: str, length: int) -> None:
    """Ask the kernel to read `length` bytes of a store's file into its cache, without waiting; the later read raises."""
    with suppress(OSError):
        handle = open_regular(os.path.join(root, name))
        try:
            for start in range(0, length, _AHEAD):
                systems.fetch_ahead(handle, start, _AHEAD)
        finally:
            os.close(handle)


def read_guarded(root: str | os.PathLike, name: str, guard: tuple[int, int], buffers: Space | None = None) -> np.ndarray:
    """The content of a store's file, whose (length, CRC-32C) must be `guard`, in `buffers` if given.

    Raises as read_exactly does.
    """
    length, crc = guard
    content = read_exactly(root, name, length, buffers)
    if crc32c(content) != crc:
        raise damaged(f"{os.fspath(root)}/{name}", "does not have the checksum that the manifest states")
    return content


def expect_files_only(root: str) -> None:
    """Raise CorruptError unless there are only files and folders below `root`: zarr-python opens anything with the right name."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(folder, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise damaged(os.path.join(folder, name), str(IrregularFileError(name, mode).strerror))


class Store(ShownDataset):
    """A store in a folder, a Dataset (`io/dataset.py`). Safe to read from several threads, each with buffers of its own.

    Here it is of the native backend: each array is one file, whose length is checked, which is read into a reused buffer, its
    checksum compared, and decompressed into a preallocated array. Nothing is allocated and nothing is copied twice.
    """

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path: str | None = path
        self.manifest = manifest
        self._first_rows = first_rows(manifest)
        self._named: set[int] = set()  # shards already being fetched
        self._sound: set[int] = set()  # shards with checked structure: equal checksums mean they are unchanged

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Space) -> None:
        """Decode the arrays named in `out` into it (dtypes and sizes as in the manifest), and check their checksums.

        Raises CorruptError naming the file.
        """
        arrays = self.manifest.shards[shard].arrays
        for name, array in out.items():
            info = arrays[name]
            if not info.size:
                continue  # Zarr stores no chunk for an empty array
            content = self.content(shard, name, buffers)
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

    def content(self, shard: int, name: str, buffers: Space) -> np.ndarray:
        """The stored chunk of array `name`, uint8, of the right length; may be in `buffers`."""
        length = chunk_length(self.manifest.shards[shard].arrays[name])
        return read_exactly(str(self.path), chunk_name(shard, name), length, buffers)

    def expect(self, *shards: int) -> None:
        """Let the system read the files of the first two shards into its cache while this thread computes, so that the disk stays
        busy while the first is decoded. Shards named in the last call are already being read. See Dataset.expect."""
        named, self._named = self._named, set(shards[:2])
        for number in self._named - named:
            for name, length in self.files(number):
                fetch_ahead(str(self.path), name, length)

    def files(self, shard: int) -> Iterator[tuple[str, int]]:
        """(name inside the store, length) of the files that reading the shard needs."""
        info = self.manifest.shards[shard]
        unread = {chunk_name(shard, "data")} if info.ones else ()
        for name, (length, _) in shard_files(self.manifest.backend, shard, info).items():
            if not name.endswith(METADATA) and name not in unread:
                yield name, length

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

    def buffers(self) -> Space:
        """Memory for one reading thread, `buffer_bytes` in all."""
        return Space(largest(self.manifest))

    def read(self, shard: int, buffers: Space | None = None) -> Chunk:
        """Shard number `shard`; see Dataset.read. Without `buffers` the arrays are new and belong to the caller."""
        if not 0 <= shard < len(self.manifest.shards):
            raise IndexError(f"shard {shard} of {len(self.manifest.shards)}")
        info = self.manifest.shards[shard]
        names = [name for name in info.arrays if not (info.ones and name == "data")]
        return self.read_arrays(shard, names, buffers or Space())

    def read_arrays(self, shard: int, names: Iterable[str], buffers: Space) -> Chunk:
        """The same with the arrays `names`; without "data" every value is 1."""
        found = self.manifest.shards[shard].arrays
        arrays = {name: buffers.array(name, found[name].dtype, found[name].size) for name in names}
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
