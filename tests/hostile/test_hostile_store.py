"""Stores that somebody made to do harm, with checksums to match: refused with a sentence, at once, with nothing outside opened.

Parts moved or edited, no files where files should be, numbers and types out of range.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from pathlib import Path

import kit.shared.hostile_store
import pytest
from kit.shared.hostile_store import CORRUPT, refused

import streamcut
from streamcut.errors import StreamcutError

made = kit.shared.hostile_store.made
folder = kit.shared.hostile_store.folder
alarm = kit.shared.hostile_store.alarm


# --- no file where a file should be ---


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    socket.socket(socket.AF_UNIX).bind(path.name)
    os.chdir(here)


def zero_device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes device nodes")
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no device nodes may be made here")


INSTEAD = {"pipe": os.mkfifo, "socket": unix_socket, "folder": os.mkdir, "device": zero_device}
INSTEAD["link to nothing"] = lambda path: path.symlink_to("/nonexistent")
VICTIMS = {
    "z.zarr": ["manifest.json", "zarr.json", "shards/zarr.json", "shards/000001/zarr.json", "shards/000001/y/c.0"],
    "h.store": ["manifest.json", "shards/000001.h5"],
}


@pytest.mark.parametrize("instead", INSTEAD)
@pytest.mark.parametrize(("store", "name"), [(store, name) for store, names in VICTIMS.items() for name in names])
def test_no_file_where_a_file_should_be(run, folder, store, name, instead):
    victim = folder / store / name
    victim.unlink()
    INSTEAD[instead](victim)
    elsewhere = () if name in ("manifest.json", "zarr.json", "shards/zarr.json") else ("info",)
    if name == "shards/000001/zarr.json":  # metadata for others, which only check compares
        elsewhere = ("info", "train", "predict")
    refused(run, store, but=elsewhere)


def test_a_store_and_its_shards_may_be_links(run, folder):
    os.rename("z.zarr/shards/000001", "elsewhere")
    os.symlink(folder / "elsewhere", "z.zarr/shards/000001")
    os.symlink("z.zarr", "link")
    assert run("info", "link", "--check", "--read-data")[0] == 0


# --- parts elsewhere, metadata that was edited ---


@pytest.mark.parametrize(
    "names", [("z.zarr/shards/000000", "z.zarr/shards/000001"), ("h.store/shards/000000.h5", "h.store/shards/000001.h5")]
)
def test_shards_that_were_exchanged(run, folder, names):
    first, second = (folder / name for name in names)
    first.rename(folder / "third")
    second.rename(first)
    (folder / "third").rename(second)
    refused(run, names[0].split("/")[0], but=("info",))
    if "z.zarr" in names[0]:  # whose chunks end with their sums; of HDF5 files the plain check sees lengths alone
        assert run("info", "z.zarr", "--check")[0] == CORRUPT


def test_a_shard_of_another_store_with_right_checksums(run, folder):
    for name in ("indptr", "indices", "data", "y"):
        shutil.copy(folder / f"plain.zarr/shards/000000/{name}/c.0", folder / f"z.zarr/shards/000001/{name}/c.0")
    refused(run, "z.zarr", but=("info",))


@pytest.mark.parametrize("name", ["zarr.json", "shards/zarr.json", "shards/000001/zarr.json", "shards/000001/y/zarr.json"])
def test_metadata_that_was_edited(run, folder, name):
    """The manifest rules: what other programs would read is compared by check, what we open by at all."""
    file = folder / "z.zarr" / name
    record = json.loads(file.read_text())
    for key, value in (("shape", [1]), ("data_type", "float64"), ("codecs", []), ("attributes", {"a": 1}), ("node_type", "x")):
        if record.get(key) == value or (key not in record and key != "attributes"):
            continue
        file.write_text(json.dumps({**record, key: value}))
        refused(run, "z.zarr", but=() if name in ("zarr.json", "shards/zarr.json") else ("info", "train", "predict"))
        assert run("info", "z.zarr", "--check")[0] == CORRUPT


def test_a_manifest_without_end(run, folder):
    for content in (b"[" * 10**6, b'{"a":' * 10**5, b"9" * 10**6, b"\xff\xfe", b"", b"null", b"[]", b'{"sha256":1}'):
        (folder / "z.zarr/manifest.json").write_bytes(content)
        refused(run, "z.zarr")
    with open(folder / "z.zarr/manifest.json", "wb") as file:
        file.truncate(1 << 40)  # of zeros, which take no room on the disk
    refused(run, "z.zarr")


def test_errors_of_hostile_stores_are_ours(folder):
    with pytest.raises(StreamcutError):
        streamcut.open("m.npz")
