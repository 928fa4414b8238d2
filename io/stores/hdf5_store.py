"""HDF5 stores: one file a shard, `NAME/shards/000000.h5`, the same arrays and the same manifest as the native store.

A file is read and its checksum compared before the HDF5 library sees a byte of it: that library can crash on damaged files.
It decodes under one global lock, so lanes wait for each other: the native store is the fast one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np

from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.guarded import damaged, read_guarded
from streamcut.io.stores.spec import SHARDS, shard_name
from streamcut.io.stores.stored import StoredDataset


def file_name(shard: int) -> str:
    return f"{shard_name(shard)}.h5"


class HDF5Store(StoredDataset):
    """A directory of HDF5 files written by StoreWriter. Opened by `open_dataset`, which has checked the manifest."""

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        path = Path(str(self.path), SHARDS, file_name(shard))
        read_guarded(path, self.manifest.shards[shard].files[path.name], buffers.raw)
        try:
            with h5py.File(path, "r", locking=False) as file:
                for name, array in out.items():
                    dataset = file[name]
                    if dataset.dtype != array.dtype or dataset.shape != array.shape:
                        raise damaged(path, f"array {name} is {dataset.dtype} {dataset.shape}")
                    if array.size:
                        dataset.read_direct(array)
        except (OSError, KeyError, AttributeError, TypeError) as error:
            raise damaged(path, f"is not as the format says ({error})") from error
        for name, array in out.items():
            self.check_content(shard, name, array)

    def files(self, shard: int) -> Iterator[tuple[str, int]]:
        name = file_name(shard)
        length, _ = self.manifest.shards[shard].files[name]
        yield str(Path(str(self.path), SHARDS, name)), length
