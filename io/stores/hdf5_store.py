"""HDF5 stores: one file per shard, `NAME/shards/000000.h5`, with the arrays and the manifest of the native store.

A file is read and its checksum compared before the HDF5 library sees any of it: that library can crash on damaged files. It then
opens the bytes in memory, and only arrays of the form that we write, so that no file can refer to another one. It decodes under
one global lock, so lanes wait for each other: the native store is faster.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import cast

import h5py
import numpy as np

from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.guarded import damaged, read_guarded
from streamcut.io.stores.spec import HDF5_CHUNK_BYTES, SHARDS, shard_name
from streamcut.io.stores.stored import StoredDataset

_FILTERS = {h5py.h5z.FILTER_DEFLATE, h5py.h5z.FILTER_SHUFFLE}


def file_name(shard: int) -> str:
    return f"{shard_name(shard)}.h5"


class HDF5Store(StoredDataset):
    """A directory of HDF5 files written by StoreWriter. Opened by `open_dataset`, which has checked the manifest."""

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        name = file_name(shard)
        image = read_guarded(str(self.path), f"{SHARDS}/{name}", self.manifest.shards[shard].files[name], buffers.raw)
        where = f"{self.path}/{SHARDS}/{name}"
        try:
            with h5py.File(cast(io.BufferedIOBase, _Image(image)), "r") as file:
                for array_name, array in out.items():
                    dataset = plain(file, array_name)
                    if dataset.dtype != array.dtype or dataset.shape != array.shape:
                        raise damaged(where, f"array {array_name} is {dataset.dtype} {dataset.shape}")
                    if array.size:
                        dataset.read_direct(array)
        except (OSError, KeyError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise damaged(where, f"does not follow the format ({error})") from error
        for array_name, array in out.items():
            self.check_content(shard, array_name, array)

    def files(self, shard: int) -> Iterator[tuple[str, int]]:
        name = file_name(shard)
        length, _ = self.manifest.shards[shard].files[name]
        yield f"{SHARDS}/{name}", length


def plain(file: h5py.File, name: str) -> h5py.Dataset:
    """Array `name`, if stored in this file, in chunks no larger than ours, with our filters. Raises ValueError."""
    if type(file.get(name, getlink=True)) is not h5py.HardLink:
        raise ValueError(f"{name} lies elsewhere")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual or dataset.external is not None:
        raise ValueError(f"{name} lies elsewhere")
    properties = dataset.id.get_create_plist()
    filters = {properties.get_filter(k)[0] for k in range(properties.get_nfilters())}
    chunk = dataset.dtype.itemsize * float(np.prod(dataset.chunks or (0,), dtype=np.float64))
    if not filters <= _FILTERS or chunk > HDF5_CHUNK_BYTES:
        raise ValueError(f"{name} is stored in another way")
    return dataset


class _Image(io.RawIOBase):
    """The bytes `content` (uint8) as a file, without a copy."""

    def __init__(self, content: np.ndarray) -> None:
        self._content, self._at = content, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: len(self._content)}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, target) -> int:
        piece = self._content[self._at : self._at + len(target)]
        memoryview(target).cast("B")[: len(piece)] = piece.data
        self._at += len(piece)
        return len(piece)
