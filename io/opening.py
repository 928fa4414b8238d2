"""`open_dataset`: from a path to a data set, or to an error that says what the path is instead; `recipe_from`: to a recipe."""

from __future__ import annotations

import errno
import io
import os
import shlex
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, CorruptError, IncompleteError, NotFoundError, StreamcutError
from streamcut.foundation.opened import opened_file, read_file, readable
from streamcut.io.manifest import Manifest, damaged, read_manifest
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.io.remote import is_url, read_object, size_of
from streamcut.io.stores.files import is_store
from streamcut.io.stores.spec import JOURNAL, MANIFEST, METADATA, SHARDS, shard_name
from streamcut.io.stores.store import Store

_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_MODEL = "meta.json.npy"  # what every model file of streamcut.models.files holds
_RECIPE = "recipe"  # the array of a model file that holds its recipe, if it has one
_METADATA_BYTES = 1 << 20
_RESTORE = "; restore it from a copy, or convert the data again"
_CONVERT = "make a store of it with `streamcut convert`"


def open_dataset(path: str | os.PathLike, *, cached: bool = True) -> Store:
    """The store at `path`: a directory (Zarr or HDF5), or a URL.

    cached   data read earlier from a URL may come from the local cache (STREAMCUT_CACHE_DIR)

    Raises NotFoundError when there is no store that this version reads, IncompleteError when its conversion never finished,
    CorruptError when it is damaged.

    >>> streamcut.open("rows.zarr").manifest.statistics.labels  # made in the example of `convert`
    {-1.0: 2, 1.0: 2}
    """
    name = os.fspath(path)
    if "://" in name:
        from streamcut.io.stores.remote_store import open_remote

        return open_remote(name, cached)
    folder = Path(name)
    if not folder.exists():
        raise NotFoundError(f"{folder}: no such file or directory")
    if not os.path.lexists(folder / MANIFEST):
        raise _no_store(folder)
    manifest = read_manifest(folder / MANIFEST)
    store = store_of(str(folder), manifest)
    for file, guard in manifest.files.items():
        store.checked(file, *guard)
    return store


def store_of(path: str, manifest: Manifest) -> Store:
    """The shards at `path`, a folder or a URL, that `manifest` describes."""
    if "://" in path:
        from streamcut.io.stores.remote_store import RemoteStore

        return RemoteStore(path, manifest)
    if manifest.backend == "hdf5":
        from streamcut.io.stores.hdf5_store import HDF5Store

        return HDF5Store(path, manifest)
    return Store(path, manifest)


def _no_store(path: Path) -> StreamcutError:
    """What `path` is instead of a store, and what to do with it."""
    parts: set[str] = set()
    if path.is_dir():
        if (path / JOURNAL).is_dir():
            return IncompleteError(f"{path}: its conversion was never finished; run the same `streamcut convert` with --resume")
        with suppress(OSError):
            if b'"streamcut"' in read_file(path / METADATA, _METADATA_BYTES):
                return damaged(path / MANIFEST, "missing")
        if (path / SHARDS / f"{shard_name(0)}.h5").exists():
            return damaged(path / MANIFEST, "missing")
        parts = {name for name in ("X", "obs") if (path / name).is_dir()}
        group = any((path / name).exists() for name in (METADATA, ".zgroup", ".zarray"))
        what = f"{'a Zarr group' if group else 'a directory'}, but not a streamcut store; give the data to `streamcut convert`"
    elif not path.is_file():
        what = f"a pipe or a device, not a streamcut store; {_CONVERT}"
    elif not os.access(path, os.R_OK):
        what = f"{os.strerror(errno.EACCES)}; make it readable"
    elif zipfile.is_zipfile(path):
        with readable(path, CorruptError, "is not a readable zip file", _RESTORE), zipfile.ZipFile(path) as file:
            names = file.namelist()
        what = "a zip file, not a streamcut store; unpack it if it holds one"
        if names and all(name.endswith(".npy") for name in names):
            what = f"arrays of NumPy or SciPy, not a streamcut store; {_CONVERT}"
        if _MODEL in names:
            what = "a model, not data; `streamcut info` shows it, and commands take it before their data"
    else:
        what = f"a file, not a streamcut store; {_CONVERT}"
        with suppress(OSError, RuntimeError, ValueError), opened_file(path) as start:
            if start.read(len(_HDF5_MAGIC)) == _HDF5_MAGIC:
                import h5py

                what = f"an HDF5 file, but not a streamcut store (those are directories); {_CONVERT}"
                with h5py.File(path, "r") as group:
                    parts = set(group)
    if {"X", "obs"} <= parts:
        line = shlex.join(["streamcut", "convert", str(path), f"{path.stem}-store.zarr", "--label"])
        return BadInputError(f"{path}: an AnnData file, not a streamcut store; convert it first: {line} COLUMN")
    return NotFoundError(f"{path}: {what}")


def recipe_from(source: Any) -> Recipe | None:
    """`source` if it is a Recipe (or None), else the recipe in the model, store or JSON file of that path.

    Raises NotFoundError if there is none, BadInputError for a damaged one.
    """
    if source is None or isinstance(source, Recipe):
        return source
    path = os.fspath(source)
    if (size_of(path) is None or is_store(path)) if is_url(path) else os.path.isdir(path):
        if (stored := open_dataset(path).recipe) is None:
            raise NotFoundError(f"{path}: the store has no recipe: it is not recorded how its features were made")
        return stored
    with readable(path, NotFoundError, "no recipe can be read there"):
        content = read_object(path) if is_url(path) else read_file(path)
        if content.startswith(b"PK\x03\x04"):
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                if _RECIPE not in archive:
                    raise ValueError("a model without a recipe, or no model")
                content = archive[_RECIPE].tobytes()
    with readable(path, BadInputError, "not a recipe"):
        try:
            return Recipe.from_json(content)
        except NewerRecipeError as error:
            raise NotFoundError(f"{path}: {error}") from None
