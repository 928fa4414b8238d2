"""Stores that somebody made to do harm, with checksums to match: refused with a sentence, with nothing outside opened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import kit.shared.hostile_store
import numpy as np
import pytest
from kit.shared.hostile_store import CORRUPT, refused

import streamcut
from streamcut.errors import CorruptError
from streamcut.io.manifest import fingerprint, manifest_bytes, read_manifest
from streamcut.io.stores.zarr_layout import crc32c, encode, trailer

made = kit.shared.hostile_store.made
folder = kit.shared.hostile_store.folder
alarm = kit.shared.hostile_store.alarm


def seal(store: Path, shard: int, **changed) -> None:
    """Write the manifest anew, with what is `changed` of a shard, and a fingerprint and a checksum to match."""
    manifest = read_manifest(store / "manifest.json")
    shards = list(manifest.shards)
    shards[shard] = replace(shards[shard], **changed)
    manifest = replace(manifest, shards=tuple(shards), fingerprint=fingerprint(manifest.statistics.n_features, shards))
    (store / "manifest.json").write_bytes(manifest_bytes(manifest))


def forge(store: Path, shard: int, arrays: dict[str, np.ndarray]) -> None:
    """Replace arrays of a native store's shard."""
    info = read_manifest(store / "manifest.json").shards[shard]
    forged = dict(info.arrays)
    for name, array in arrays.items():
        payload = encode(array)
        (store / f"shards/{shard:06d}/{name}/c.0").write_bytes(payload + trailer(crc32c(payload)))
        sums = {"content_crc32c": crc32c(array), "stored_crc32c": crc32c(payload)}
        forged[name] = replace(forged[name], stored_bytes=len(payload), dtype=array.dtype.name, **sums)
    seal(store, shard, arrays=forged)


@pytest.mark.parametrize(
    ("array", "place", "value"),
    [("indices", 1, 2**31 - 1), ("indices", 1, 0), ("indptr", 1, 10**9), ("data", 0, np.nan), ("y", 0, np.inf)],
)
def test_sound_checksums_over_wrong_content_do_not_help(run, folder, array, place, value):
    store = folder / "plain.zarr"
    values = getattr(streamcut.open(store).read(0), array)
    values = values.astype({"indptr": np.int32, "y": float, "data": float}.get(array, values.dtype))
    values[place] = value
    forge(store, 0, {array: values})
    with pytest.raises(CorruptError, match=f"000000/{array}: "):
        streamcut.open(store).read(0)
    code, out, err = run("info", store, "--check", "--read-data")
    assert (code, f"000000/{array}" in out + err) == (CORRUPT, True)


@pytest.mark.parametrize(("name", "value", "array"), [("max_row_nnz", 2, "indptr"), ("max_abs_value", 1.5, "data")])
def test_numbers_that_the_rows_exceed(run, folder, name, value, array):
    """Buffers are as large as the manifest says: rows are held against it."""
    store = folder / "plain.zarr"
    if name == "max_row_nnz":  # all three entries of shard 0 in its first row
        forge(store, 0, {"indptr": np.array([0, 3, 3], np.int32), "indices": np.array([0, 1, 2], np.int32)})
    manifest = read_manifest(store / "manifest.json")
    manifest = replace(manifest, statistics=replace(manifest.statistics, **{name: value}))
    (store / "manifest.json").write_bytes(manifest_bytes(manifest))
    for command in ("train {} --task ranking -o x.npz", "train {} --task binary -o x.npz", "predict m.npz {}"):
        code, _, err = run(*command.format("plain.zarr").split())
        assert (code, f"/{array}: " in err, "manifest" in err) == (CORRUPT, True, True), err


def virtual_layout() -> h5py.VirtualLayout:
    layout = h5py.VirtualLayout((2,), np.int8)
    layout[:] = h5py.VirtualSource("/etc/passwd", "y", (2,))
    return layout


INSTEAD = {  # of the labels
    "external link": lambda file: file.__setitem__("y", h5py.ExternalLink("/etc/passwd", "/y")),
    "soft link": lambda file: file.__setitem__("y", h5py.SoftLink("/nothing")),
    "external storage": lambda file: file.create_dataset("y", (2,), np.int8, external=[("/etc/passwd", 0, 2)]),
    "virtual": lambda file: file.create_virtual_dataset("y", virtual_layout()),
    "objects": lambda file: file.create_dataset("y", data=np.array(["a", "b"], object), dtype=h5py.string_dtype()),
}


@pytest.mark.parametrize("what", INSTEAD)
def test_hdf5_that_leads_elsewhere(run, folder, what):
    path = folder / "h.store/shards/000001.h5"
    with h5py.File(path, "r+") as file:
        del file["y"]
        INSTEAD[what](file)
    content = path.read_bytes()
    seal(folder / "h.store", 1, files={path.name: (len(content), crc32c(content))})
    refused(run, "h.store", but=("info",))
