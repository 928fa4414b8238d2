"""Reading through zarr-python what the fast reader does not support: zip files, URLs, other codecs, Zarr v2.

Same manifest, same checks, same bits; slower, and each read allocates. The checksums of files do not apply, because other
software wrote them: the content of each array is compared instead.
"""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, ZipStore

from streamcut.errors import NotFoundError
from streamcut.foundation.opened import regular
from streamcut.io.stores.buffers import Buffers
from streamcut.io.stores.codec import MAX_BYTES, crc32c
from streamcut.io.stores.guarded import damaged, expect_files_only
from streamcut.io.stores.manifest_file import parse_manifest
from streamcut.io.stores.spec import MANIFEST, SHARDS, shard_name
from streamcut.io.stores.stored import StoredDataset
from streamcut.io.zarr_codecs import expect_plain


class ZarrPythonStore(StoredDataset):
    """A streamcut store behind any Zarr store that zarr-python opens."""

    def __init__(self, path: str) -> None:
        if os.path.isdir(path):
            expect_files_only(path)
        store = self._store = _zarr_store(path)
        found = sync(store.get(MANIFEST, default_buffer_prototype()))
        if found is None:
            raise NotFoundError(f"{path}: has no {MANIFEST}, so it is not a streamcut store; make one with `streamcut convert`")
        super().__init__(path, parse_manifest(found.to_bytes(), f"{path}/{MANIFEST}"))
        try:
            self._shards: Any = zarr.open_group(store, mode="r")[SHARDS]
        except Exception as error:  # zarr-python raises anything its layers raise
            raise damaged(path, f"is not a readable Zarr group ({error})") from error

    def extra(self, name: str) -> bytes:
        found = sync(self._store.get(name, default_buffer_prototype()))
        content = b"" if found is None else found.to_bytes()
        length, crc = self.manifest.extras[name]
        if len(content) != length or crc32c(content) != crc:
            raise damaged(f"{self.path}/{name}", "is not what the manifest states")
        return content

    def fill(self, shard: int, out: dict[str, np.ndarray], buffers: Buffers) -> None:
        for name, array in out.items():
            where = self.where(shard, name)
            try:
                stored = self._shards[f"{shard_name(shard)}/{name}"]
                expect_plain(stored, MAX_BYTES)
                dtype, shape = stored.dtype, stored.shape
                if shape == array.shape and dtype.newbyteorder("=") == array.dtype:
                    np.copyto(array, stored[...])
            except Exception as error:  # a codec may raise anything on damaged bytes
                raise damaged(where, f"cannot be read ({type(error).__name__}: {error})") from error
            if shape != array.shape or dtype.newbyteorder("=") != array.dtype:
                raise damaged(where, f"is {dtype} {shape}, not {array.dtype} {array.shape}")
            self.check_content(shard, name, array)


def _zarr_store(path: str) -> Store:
    try:
        if "://" in path:
            return FsspecStore.from_url(path, read_only=True)
        if not os.path.isdir(path) and zipfile.is_zipfile(regular(path)):
            return sync(ZipStore.open(path, mode="r"))
        return LocalStore(path, read_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise NotFoundError(f"{path}: cannot be opened ({error})") from error
