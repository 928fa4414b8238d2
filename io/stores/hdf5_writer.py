"""Writing the shards of an HDF5 store: each is built in memory and appears whole, because a partial file cannot be opened."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np

from streamcut.foundation.files import disk_full, failpoint, write_durably
from streamcut.foundation.opened import read_file
from streamcut.io.manifest import ShardInfo
from streamcut.io.stores.codec import crc32c
from streamcut.io.stores.hdf5_store import file_name
from streamcut.io.stores.spec import CSR_ATTRIBUTES, HDF5_CHUNK_BYTES, SHARDS
from streamcut.io.stores.zarr_writer import remove_temporaries

# gzip, because h5py's LZF reads uninitialised memory and gives different bytes every time
_FILTERS = {"compression": "gzip", "compression_opts": 1, "shuffle": True}


class HDF5Writer:
    """Shards below the directory `root`; calls for different shards may run at the same time."""

    def __init__(self, root: Path, n_features: int | None) -> None:
        self.root = root
        self._n_features = -1 if n_features is None else n_features

    def write_shard(self, shard: int, arrays: Iterable[tuple[str, np.ndarray]], rows: int) -> dict[str, tuple[int, int]]:
        """Write the arrays; the number of features is -1 while unknown. Failpoints: convert.chunk_{tmp,fsync,rename}."""
        with disk_full(self.root):
            (self.root / SHARDS).mkdir(parents=True, exist_ok=True)
        found = dict(arrays)
        write_durably(self._path(shard), _image(found, rows, self._n_features), prefix="convert.chunk")
        return dict.fromkeys(found, (0, 0))  # the file is guarded as a whole

    def finish_shard(self, shard: int, info: ShardInfo, n_features: int) -> ShardInfo:
        """Set the number of features; the file is rewritten if it was unknown. Failpoint: convert.shard_meta."""
        failpoint("convert.shard_meta")
        path = self._path(shard)
        before = read_file(path)
        image = _with_features(before, n_features)
        if image != before:
            write_durably(path, image, prefix="convert.shard_meta")
        return replace(info, files={path.name: (len(image), crc32c(image))})

    def files(self) -> dict[str, tuple[int, int]]:
        return {}

    def finish(self) -> None:
        """Does nothing: the manifest is the root."""

    def is_whole(self, shard: int, info: ShardInfo) -> bool:
        """Whether the file of a journalled shard exists."""
        return self._path(shard).is_file()

    def keep(self, shards: int) -> None:
        """Remove all but the first `shards` shards, and temporary files of dead writers among those."""
        kept = {file_name(shard) for shard in range(shards)}
        for path in (self.root / SHARDS).glob("*.h5"):
            if path.name not in kept:
                path.unlink()
        remove_temporaries(self.root)

    def _path(self, shard: int) -> Path:
        return self.root / SHARDS / file_name(shard)


def _image(arrays: dict[str, np.ndarray], rows: int, n_features: int) -> bytes:
    """The content of a shard's HDF5 file. The same arrays always give the same bytes."""
    with h5py.File.in_memory(block_size=HDF5_CHUNK_BYTES) as file:
        file.attrs.update(CSR_ATTRIBUTES)
        file.attrs.create("shape", np.array([rows, n_features], np.int64))
        for name, array in arrays.items():
            chunks = (min(len(array), HDF5_CHUNK_BYTES // array.itemsize),)
            file.create_dataset(name, data=array, **({"chunks": chunks, **_FILTERS} if len(array) else {}))
        file.flush()
        return file.id.get_file_image()


def _with_features(image: bytes, n_features: int) -> bytes:
    """`image` with `n_features` in its shape, otherwise unchanged."""
    with h5py.File.in_memory(image) as file:
        shape = file.attrs["shape"]
        if shape[1] == n_features:
            return image
        file.attrs.get_id("shape").write(np.array([shape[0], n_features], np.int64))
        file.flush()
        return file.id.get_file_image()
