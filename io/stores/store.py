"""Stores that are read: files are checked, decoded into reused memory, checked again as rows, and become a Chunk."""

from __future__ import annotations

import os
import stat
import struct
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
from streamcut.io.stores.buffers import ShardBuffers, largest
from streamcut.io.stores.spec import METADATA, RECIPE, SHARDS, TRAILER, shard_name
from streamcut.io.stores.zarr_layout import crc32c, decode

_AHEAD = 128 << 10  # bytes: Linux may truncate longer readahead requests to this


def fault(content: np.ndarray, length: int, crc: int, trailer: int = 0) -> str | None:
    """What is wrong with `content` (uint8), which should have this length and CRC-32C; the `trailer` bytes at its end, none or
    four, are not part of what is checked, but hold the CRC again."""
    if len(content) != length:
        return f"is {len(content):,} bytes long, and should be {length:,}"
    end = length - trailer
    good = crc32c(content[:end]) == crc and content[end:].tobytes() in (b"", struct.pack("<I", crc))
    return None if good else "does not have the checksum that the manifest states"


def expect_files_only(root: str) -> None:
    """Raise CorruptError unless there are only files and folders below `root`: zarr-python opens anything with the right name."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(folder, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise damaged(os.path.join(folder, name), str(IrregularFileError(name, mode).strerror))


class Store(ShownDataset):
    """A store in a folder, a Dataset (`io/dataset.py`). Safe to read from several threads that have separate buffers.

    Here it is of the native backend: each array is one file, which is read into a reused buffer, its length and checksum
    compared, and decompressed into a preallocated array. Nothing is allocated and nothing is copied twice.
    """

    def __init__(self, path: str, manifest: Manifest) -> None:
        self.path: str | None = path
        self.manifest = manifest
        self._first_rows = first_rows(manifest)
        self._named: set[int] = set()  # shards already being fetched
        self._sound: set[int] = set()  # shards with checked structure: equal checksums mean they are unchanged

    def checked(self, name: str, length: int, crc: int, buffers: ShardBuffers | None = None, trailer: int = 0) -> np.ndarray:
        """The content of the file `name` ("a/b"), uint8, perhaps in `buffers`, in which `fault` found nothing.

        Raises CorruptError when it is missing, not a regular file, unreadable or another, NotFoundError without permission.
        """
        path = f"{self.path}/{name}"
        try:
            with opened_raw(path) as file:
                if (size := os.fstat(file.fileno()).st_size) != length:
                    raise damaged(path, f"is {size:,} bytes long, and should be {length:,}")
                content, done = (buffers or ShardBuffers()).array("raw", np.uint8, length), 0
                while done < length:
                    if not (more := file.readinto(content[done:].data)):
                        raise damaged(path, "became shorter while it was read")
                    done += more
        except (FileNotFoundError, NotADirectoryError):
            raise damaged(path, "missing") from None
        except PermissionError as error:
            raise NotFoundError(f"{path}: {error.strerror}; make it readable") from None
        except IrregularFileError as error:
            raise damaged(path, str(error.strerror)) from None
        except OSError as error:
            raise damaged(path, f"cannot be read ({error.strerror})") from error
        if (what := fault(content, length, crc, trailer)) is not None:
            raise damaged(path, what)
        return content

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: ShardBuffers) -> None:
        """Decode the arrays named in `out` into it (dtypes and sizes as in the manifest). Raises CorruptError naming the file."""
        for name, array in out.items():
            info, file = self.manifest.shards[shard].arrays[name], chunk_name(shard, name)
            if not info.size:
                continue  # Zarr stores no chunk for an empty array
            content = self.checked(file, chunk_length(info), info.stored_crc32c, buffers, TRAILER)
            try:
                decode(content[:-TRAILER], array)
            except ValueError as error:
                raise damaged(f"{self.path}/{file}", str(error)) from None

    def expect(self, *shards: int) -> None:
        """Let the system read the files of the first two shards into its cache while this thread computes, so that the disk stays
        busy while the first is decoded. Shards named in the last call are already being read. See Dataset.expect."""
        named, self._named = self._named, set(shards[:2])
        for name, length in (file for number in self._named - named for file in self.files(number)):
            with suppress(OSError):  # reading will raise it
                handle = open_regular(f"{self.path}/{name}")
                try:
                    for start in range(0, length, _AHEAD):
                        systems.fetch_ahead(handle, start, _AHEAD)
                finally:
                    os.close(handle)

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
            return Recipe.from_json(self.extra(RECIPE)) if RECIPE in self.manifest.extras else None
        except NewerRecipeError as error:
            raise NotFoundError(f"{self.path}/{RECIPE}: {error}") from None
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(f"{self.path}/{RECIPE}", f"is not a recipe ({error})") from None

    def extra(self, name: str) -> bytes:
        """The file `name` next to the shards, checked. Raises CorruptError."""
        return self.checked(name, *self.manifest.extras[name]).tobytes()

    def buffers(self) -> ShardBuffers:
        """Memory for one reading thread, `buffer_bytes` in all."""
        return ShardBuffers(largest(self.manifest))

    def read(self, shard: int, buffers: ShardBuffers | None = None) -> Chunk:
        """Shard number `shard`; see Dataset.read. Without `buffers` the arrays are new and belong to the caller."""
        if not 0 <= shard < len(self.manifest.shards):
            raise IndexError(f"shard {shard} of {len(self.manifest.shards)}")
        info = self.manifest.shards[shard]
        names = [name for name in info.arrays if not (info.ones and name == "data")]
        return self.read_arrays(shard, names, buffers or ShardBuffers())

    def read_arrays(self, shard: int, names: Iterable[str], buffers: ShardBuffers) -> Chunk:
        """The same with the arrays `names`; without "data" every value is 1."""
        infos, statistics = self.manifest.shards[shard].arrays, self.manifest.statistics
        arrays = {name: buffers.array(name, infos[name].dtype, infos[name].size) for name in names}
        self.fill(shard, arrays, buffers)
        arrays |= {name: buffers.widened(name, arrays[name]) for name in ("indptr", "y")}
        if shard not in self._sound:  # faults unsafe for kernels
            from streamcut.io.stores.structure import first_problem  # loads Numba, not needed to show a store

            limits = statistics.n_features, statistics.max_row_nnz, statistics.max_abs_value
            problem = first_problem(arrays["indptr"], arrays["indices"], arrays.get("data"), arrays, *limits)
            if problem is not None:
                raise damaged(f"{self.path}/{SHARDS}/{shard_name(shard)}/{problem[0]}", problem[1])
            self._sound.add(shard)
        if "weight" in arrays:
            arrays["weight"] = buffers.widened("weight", arrays["weight"])
        data, qid, weight = (arrays.get(name) for name in ("data", "qid", "weight"))
        return Chunk(arrays["indptr"], arrays["indices"], data, arrays["y"], qid, weight, self._first_rows[shard])
