"""`open_dataset`: from a path to a data set, or to an error that says what the path is instead; `recipe_from`: to a recipe."""

from __future__ import annotations

import io
import os
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from streamcut.errors import BadInputError, CorruptError, IncompleteError, NotFoundError
from streamcut.foundation.opened import opened_file, read_file, readable, regular
from streamcut.io.manifest import Manifest, damaged, read_manifest
from streamcut.io.places.remote import is_url, read_object, size_of
from streamcut.io.recipe.recipe import NewerRecipeError, Recipe
from streamcut.io.stores.files import is_store
from streamcut.io.stores.spec import JOURNAL, MANIFEST, METADATA, SHARDS, shard_name
from streamcut.io.stores.store import Store, read_guarded

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
    place = Path(name)
    if place.is_dir():
        return _open_directory(place)
    if place.exists():
        return _open_file(place)
    raise NotFoundError(f"{place}: no such file or directory")


def store_of(path: str, manifest: Manifest) -> Store:
    """The shards at `path`, a folder or a URL, that `manifest` describes."""
    if "://" in path:
        from streamcut.io.stores.remote_store import RemoteStore

        return RemoteStore(path, manifest=manifest)
    if manifest.backend == "hdf5":
        from streamcut.io.stores.hdf5_store import HDF5Store

        return HDF5Store(path, manifest)
    return Store(path, manifest)


def _open_directory(path: Path) -> Store:
    if not os.path.lexists(path / MANIFEST):
        if (path / JOURNAL).is_dir():
            what = "its conversion was never finished; run the same `streamcut convert` with --resume"
            raise IncompleteError(f"{path}: {what}")
        if _was_a_store(path):
            raise damaged(path / MANIFEST, "missing")
        _refuse_anndata(path, {name for name in ("X", "obs") if (path / name).is_dir()})
        what = "a Zarr group" if any((path / name).exists() for name in (METADATA, ".zgroup", ".zarray")) else "a directory"
        raise NotFoundError(f"{path}: {what}, but not a streamcut store; give the data to `streamcut convert`")
    manifest = read_manifest(path / MANIFEST)
    for file, guard in manifest.files.items():
        read_guarded(path, file, guard)
    return store_of(str(path), manifest)


def _open_file(path: Path) -> Store:
    if not path.is_file():
        raise NotFoundError(f"{path}: a pipe or a device, not a streamcut store; {_CONVERT}")
    try:
        with opened_file(path) as file:
            start = file.read(len(_HDF5_MAGIC))
    except OSError as error:
        raise NotFoundError(f"{path}: {error.strerror}") from None
    if zipfile.is_zipfile(regular(path)):
        raise _of_zip(path)
    if start == _HDF5_MAGIC:
        _refuse_anndata(path, _hdf5_members(path))
        raise NotFoundError(f"{path}: an HDF5 file, but not a streamcut store (those are directories); {_CONVERT}")
    raise NotFoundError(f"{path}: a file, not a streamcut store; {_CONVERT}")


def _hdf5_members(path: Path) -> set[str]:
    import h5py

    try:
        with h5py.File(regular(path), "r") as file:
            return set(file)
    except (OSError, RuntimeError, ValueError):
        return set()


def _refuse_anndata(path: Path, members: set[str]) -> None:
    """Raise BadInputError, with the command to type, for a directory with the parts of an AnnData file."""
    if {"X", "obs"} <= members:
        line = shlex.join(["streamcut", "convert", str(path), f"{path.stem}-store.zarr", "--label"])
        raise BadInputError(f"{path}: an AnnData file, not a streamcut store; convert it first: {line} COLUMN")


def _of_zip(path: Path) -> NotFoundError:
    """The error for a zip file: arrays of NumPy (.npz: model or matrix), or anything else."""
    with readable(path, CorruptError, "is not a readable zip file", _RESTORE), zipfile.ZipFile(regular(path)) as file:
        names = file.namelist()
    if _MODEL in names:
        return NotFoundError(f"{path}: a model, not data; `streamcut info` shows it, and commands take it before their data")
    if names and all(name.endswith(".npy") for name in names):
        return NotFoundError(f"{path}: arrays of NumPy or SciPy, not a streamcut store; {_CONVERT}")
    return NotFoundError(f"{path}: a zip file, not a streamcut store; unpack it if it holds one")


def _was_a_store(path: Path) -> bool:
    """Whether a directory without manifest has our mark, so that the manifest must have been lost."""
    try:
        marked = b'"streamcut"' in read_file(path / METADATA, _METADATA_BYTES)
    except OSError:
        marked = False
    return marked or (path / SHARDS / f"{shard_name(0)}.h5").exists()


def recipe_from(given: Any) -> Recipe | None:
    """`given` if it is a Recipe (or None), else the recipe in the model, store or JSON file of that path.

    Raises NotFoundError if there is none, BadInputError for a damaged one.
    """
    if given is None or isinstance(given, Recipe):
        return given
    path = os.fspath(given)
    if (size_of(path) is None or is_store(path)) if is_url(path) else os.path.isdir(path):
        found = open_dataset(path).recipe
        if found is None:
            raise NotFoundError(f"{path}: the store has no recipe: it is not recorded how its features were made")
        return found
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
