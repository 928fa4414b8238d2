"""HDF5 shards in parts: the library reads only a part's chunks, from a file with a checksum for each block.

On first use the whole file is read and compared with the manifest's checksum before the library sees any of it. The checksums
of its 64 KiB blocks are kept, and each block is compared with its own whenever the library reads it.
"""

from __future__ import annotations

import io
import os
from typing import cast

import google_crc32c
import h5py
import numpy as np

from streamcut.io.manifest import ShardInfo
from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.guarded import damaged, read_exactly
from streamcut.io.stores.hdf5_store import HDF5Store, file_name, plain
from streamcut.io.stores.parts import PART, Parts
from streamcut.io.stores.spec import HDF5_CHUNK_BYTES, SHARDS

_BLOCK = 1 << 16
_DECODING = 4 * HDF5_CHUNK_BYTES  # a chunk stored, unpacked and unshuffled, and the library's own buffers


class HDF5Parts(Parts):
    """Parts of a store of HDF5 files on a local disk."""

    def __init__(self, store: HDF5Store, entries: int = PART) -> None:
        self._checksums = dict[int, tuple[int, ...]]()  # of the blocks of each verified file
        super().__init__(store, entries)

    def indptr(self, shard: int) -> np.ndarray:
        info = self._store.manifest.shards[shard]
        out = np.empty(info.rows + 1, info.arrays["indptr"].dtype)
        self.read_range(shard, "indptr", 0, out, Buffers([]))
        return out

    def room(self, info: ShardInfo, sizes: dict[str, int]) -> int:
        return _DECODING

    def read_range(self, shard: int, name: str, first: int, out: np.ndarray, buffers: Buffers) -> None:
        where, info = f"{self._store.path}/{SHARDS}/{file_name(shard)}", self._store.manifest.shards[shard]
        blocks = _Blocks(str(self._store.path), shard, info, self._examined(shard))
        try:
            with h5py.File(cast(io.BufferedIOBase, blocks), "r", rdcc_nbytes=0) as file:
                dataset = plain(file, name)
                if dataset.dtype != out.dtype or dataset.shape != (info.arrays[name].size,):
                    raise damaged(where, f"array {name} is {dataset.dtype} {dataset.shape}")
                dataset.read_direct(out, np.s_[first : first + len(out)])
        except (OSError, KeyError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            if blocks.changed:
                raise damaged(where, "changed while it was in use") from None
            raise damaged(where, f"does not follow the format ({error})") from error

    def _examined(self, shard: int) -> tuple[int, ...]:
        """The checksums of a file's blocks. Raises CorruptError unless the whole file matches the manifest."""
        if (known := self._checksums.get(shard)) is None:
            name, info = file_name(shard), self._store.manifest.shards[shard]
            (length, expected), crc, sums = info.files[name], 0, []
            room = np.empty(_BLOCK, np.uint8)
            for start in range(0, length, _BLOCK):
                piece = room[: length - start]
                content = read_exactly(str(self._store.path), f"{SHARDS}/{name}", length, piece, start)
                sums.append(google_crc32c.value(content))
                crc = google_crc32c.extend(crc, content)
            if crc != expected:
                raise damaged(f"{self._store.path}/{SHARDS}/{name}", "does not have the checksum that the manifest states")
            known = self._checksums[shard] = tuple(sums)
        return known


class _Blocks(io.RawIOBase):
    """A shard's file, one block at a time in memory. `changed`: a block did not match its checksum."""

    def __init__(self, root: str, shard: int, info: ShardInfo, checksums: tuple[int, ...]) -> None:
        self._root, self._name, self._checksums = root, f"{SHARDS}/{file_name(shard)}", checksums
        self._length, self._at, self._held = info.files[file_name(shard)][0], 0, -1
        self._room, self.changed = np.empty(_BLOCK, np.uint8), False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._length}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, target) -> int:
        out = np.frombuffer(memoryview(target).cast("B"), np.uint8)
        done, wanted = 0, max(0, min(len(out), self._length - self._at))
        while done < wanted:
            number, inside = divmod(self._at, _BLOCK)
            piece = self._block(number)[inside : inside + wanted - done]
            out[done : done + len(piece)] = piece
            done += len(piece)
            self._at += len(piece)
        return done

    def _block(self, number: int) -> np.ndarray:
        held = self._room[: self._length - number * _BLOCK]
        if number != self._held:
            read_exactly(self._root, self._name, self._length, held, number * _BLOCK)
            if google_crc32c.value(held) != self._checksums[number]:
                self.changed, self._held = True, -1
                raise OSError("a block changed")
            self._held = number
        return held
