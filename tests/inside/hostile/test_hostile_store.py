"""Stores that somebody made to do harm, with checksums to match: refused with a sentence, at once, with nothing outside opened.

Parts moved or edited, no files where files should be, numbers and types out of range.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import h5py
import kit.shared.hostile_store
import numpy as np
import pytest
from kit.forging import external_link, external_storage, virtual
from kit.hostile_store import manifest_of
from kit.shared.hostile_store import CORRUPT, refused

from inside.kit.forging import forge
from inside.kit.hostile_store import sealed
from streamcut.io.stores.zarr_layout import crc32c

made = kit.shared.hostile_store.made
folder = kit.shared.hostile_store.folder
alarm = kit.shared.hostile_store.alarm


# --- forged manifests ---


@pytest.mark.parametrize(
    ("name", "value", "array"),
    [("max_row_nnz", 2, "indptr"), ("max_abs_value", 1.5, "data")],
)
def test_numbers_that_the_rows_exceed(run, folder, name, value, array):
    """Buffers are as large as the manifest says: rows are held against it."""
    store = folder / "plain.zarr"
    if name == "max_row_nnz":  # all three entries of shard 0 in its first row
        forge(store, 0, {"indptr": np.array([0, 3, 3], np.int32), "indices": np.array([0, 1, 2], np.int32)})
    record = manifest_of(store)
    record["statistics"][name] = value
    (store / "manifest.json").write_bytes(sealed(record))
    for command in (
        "train {} --task ranking -o x.npz --force",
        "train {} --task binary -o x.npz --force",
        "predict m.npz {}",
    ):
        code, _, err = run(*command.format("plain.zarr").split())
        assert (code, f"/{array}: " in err, "manifest" in err) == (CORRUPT, True, True), err


# --- forged containers ---


def hdf5_forged(store: Path, change: Callable[[h5py.File], None]) -> None:
    """Shard 1 changed, with checksums to match."""
    path = store / "shards/000001.h5"
    with h5py.File(path, "r+") as file:
        change(file)
    record, content = manifest_of(store), path.read_bytes()
    record["shards"][1]["files"] = {path.name: [len(content), crc32c(content)]}
    (store / "manifest.json").write_bytes(sealed(record))


def soft_link(file: h5py.File) -> None:
    del file["y"]
    file["y"] = h5py.SoftLink("/nothing")


def a_group(file: h5py.File) -> None:
    del file["y"]
    file.create_group("y")


def objects(file: h5py.File) -> None:
    del file["y"]
    file.create_dataset("y", data=np.array(["a", "b"], object), dtype=h5py.string_dtype())


@pytest.mark.parametrize("change", [external_link, soft_link, external_storage, virtual, a_group, objects])
def test_hdf5_that_leads_elsewhere(run, folder, change):
    hdf5_forged(folder / "h.store", change)
    refused(run, "h.store", but=("info",))


def test_a_recipe_of_another_kind(run, folder):
    """What a model is to remember of its features comes from the store."""
    for content in (b"[]", b"null", b'{"version":1,"form":7}', b"\xff", b"[" * 10**5):
        (folder / "z.zarr/recipe.json").write_bytes(content)
        record = manifest_of(folder / "z.zarr")
        record["extras"]["recipe.json"] = [len(content), crc32c(content)]
        (folder / "z.zarr/manifest.json").write_bytes(sealed(record))
        code, _, err = run("train", "z.zarr", "--task", "binary", "--output", "x.npz", "--solver", "ocas")
        assert (code, "Traceback" in err) == (CORRUPT, False), (content, err)
