"""HDF5 stores: one file per shard, `NAME/shards/000000.h5`, with the arrays and the manifest of the native store.

A file is read and its checksum compared before the HDF5 library sees any of it: that library can crash on damaged files. Only
arrays of the form written here are read, so no file can refer to another one. The library decodes under one global lock, so lanes
wait for each other: the native store is faster.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace

import h5py
import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.io.manifest import ShardInfo, damaged
from streamcut.io.stores.buffers import ShardBuffers
from streamcut.io.stores.files import Files
from streamcut.io.stores.spec import CSR_ATTRIBUTES, HDF5_CHUNK_BYTES, SHARDS, shard_name
from streamcut.io.stores.store import Store
from streamcut.io.stores.zarr_layout import crc32c, described

# gzip, because h5py's LZF reads uninitialised memory and gives different bytes every time
_FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


class HDF5Store(Store):
    """A directory of HDF5 files written by StoreWriter. Opened by `open_dataset`, which has checked the manifest."""

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: ShardBuffers) -> None:
        ((name, guard),) = self.manifest.shards[shard].files.items()
        image = self.checked(f"{SHARDS}/{name}", *guard, buffers)
        try:
            with h5py.File(io.BytesIO(image.data), "r") as file:
                for array_name, array in out.items():
                    if array.size:
                        _plain(file, array_name, array).read_direct(array)
        except (OSError, KeyError, AttributeError, TypeError, ValueError, RuntimeError) as error:
            raise damaged(f"{self.path}/{SHARDS}/{name}", f"does not follow the format ({error})") from error


def _plain(file: h5py.File, name: str, like: np.ndarray) -> h5py.Dataset:
    """Array `name`, if it lies in this file, with the type and shape of `like`. Raises ValueError."""
    dataset = file[name] if type(file.get(name, getlink=True)) is h5py.HardLink else None
    if not isinstance(dataset, h5py.Dataset) or dataset.is_virtual or dataset.external is not None:
        raise ValueError(f"{name} lies elsewhere")
    if dataset.dtype != like.dtype or dataset.shape != like.shape:
        raise ValueError(f"{name} is {dataset.dtype} {dataset.shape}, not {like.dtype} {like.shape}")
    return dataset


def write(files: Files, shard: int, rows: Chunk, n_features: int) -> ShardInfo:
    """As in zarr_layout: the one file of a shard. The same arrays always give the same bytes."""
    from streamcut.io.stores.structure import narrowed  # Numba, not needed to show a store

    arrays = {}
    with h5py.File.in_memory(block_size=HDF5_CHUNK_BYTES) as file:
        file.attrs.update(CSR_ATTRIBUTES)
        file.attrs.create("shape", np.array([rows.n_rows, n_features], np.int64))
        for name, array in narrowed(rows):
            arrays[name] = described(array)
            chunks = (min(len(array), HDF5_CHUNK_BYTES // array.itemsize),)
            file.create_dataset(name, data=array, **({"chunks": chunks, **_FILTERS} if len(array) else {}))
        file.flush()
        image = file.id.get_file_image()
    name = f"{shard_name(shard)}.h5"
    files.put([(f"{SHARDS}/{name}", (image,))])
    return ShardInfo(rows.n_rows, rows.nnz, bool(np.all(rows.data == 1)), arrays, {name: (len(image), crc32c(image))})


def finish(files: Files, shards: Sequence[ShardInfo], n_features: int) -> tuple[tuple[ShardInfo, ...], dict[str, bytes]]:
    """As in zarr_layout: files are written again if they were written without the number of features."""
    finished = []
    for info in shards:
        ((name, _),) = info.files.items()
        image = files.get(f"{SHARDS}/{name}") or b""
        with h5py.File.in_memory(image) as file:
            if file.attrs["shape"][1] != n_features:
                file.attrs.get_id("shape").write(np.array([info.rows, n_features], np.int64))
                file.flush()
                image = file.id.get_file_image()
                files.put([(f"{SHARDS}/{name}", (image,))])
        finished.append(replace(info, files={name: (len(image), crc32c(image))}))
    return tuple(finished), {}
