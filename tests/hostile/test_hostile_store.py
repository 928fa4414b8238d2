"""Stores that somebody made to do harm, with checksums to match: refused with a sentence, at once, with nothing outside opened.

Faults 37 and 38 (parts moved or edited), 42 (no files where files should be) and 48 (numbers and types out of range).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr
from kit.forging import PICKLED, external_link, external_storage, forge, pickled_array, virtual
from kit.hostile_store import manifest_of, sealed
from kit.mutations import mutated

import streamcut
from streamcut.errors import CorruptError, NotFoundError, StreamcutError
from streamcut.io.stores.codec import crc32c
from streamcut.io.stores.manifest_file import parse_manifest

CORRUPT = 5
ROWS = "1:0.5 qid:1 1:1 3:0.5\n-1 qid:1 2:1\n1 qid:2 1:2\n-1:2 qid:2 2:2 3:-1\n"
PLAIN = "1 qid:1 1:1 3:0.5\n-1 qid:1 2:1\n1 qid:2 1:2\n-1 qid:2 2:2 3:-1\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """z.zarr and h.store of two shards, m.npz, and secret.txt."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.svm").write_text(ROWS)
    options = {"label_weights": True, "shard_nnz": 4}
    streamcut.convert(folder / "a.svm", folder / "z.zarr", **options)
    streamcut.convert(folder / "a.svm", folder / "h.store", backend="hdf5", **options)
    (folder / "b.svm").write_text(PLAIN)
    streamcut.convert(folder / "b.svm", folder / "plain.zarr", shard_nnz=4)
    streamcut.save_model(streamcut.train(str(folder / "z.zarr"), task="binary", solver="ocas", max_passes=3), folder / "m.npz")
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(shutil.copytree(made, tmp_path / "in"))
    return tmp_path / "in"


@pytest.fixture(autouse=True)
def alarm():
    """Whatever hangs is ended with a traceback."""

    def ring(*_) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


COMMANDS = [
    "info {}",
    "check {} --read-data",
    "train {} --model x.npz --task binary --solver ocas --max-passes 2 --force",
    "predict m.npz {}",
]


def refused(run, store: str, *, but: tuple[str, ...] = (), code: int = CORRUPT) -> None:
    """By every command, with a sentence."""
    for command in COMMANDS:
        found, _, err = run(*command.format(store).split())
        assert "Traceback" not in err, command
        assert found == code or (found == 0 and command.split()[0] in but), (command, found, err)


# --- no file where a file should be (F42) ---


def pipe(path: Path) -> None:
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    socket.socket(socket.AF_UNIX).bind(path.name)
    os.chdir(here)


def directory(path: Path) -> None:
    path.mkdir()


def link_out(path: Path) -> None:
    """To a copy of the very file, so that its content would do."""
    path.symlink_to(path.with_name("moved"))


def link_to_nothing(path: Path) -> None:
    path.symlink_to("/nonexistent")


def zero_device(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes device nodes")
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("no device nodes may be made here")


VICTIMS = {
    "z.zarr": ["manifest.json", "zarr.json", "shards/zarr.json", "shards/000001/zarr.json", "shards/000001/y/c.0"],
    "h.store": ["manifest.json", "shards/000001.h5"],
}


@pytest.mark.parametrize("instead", [pipe, unix_socket, directory, link_out, link_to_nothing, zero_device])
@pytest.mark.parametrize(("store", "name"), [(store, name) for store, names in VICTIMS.items() for name in names])
def test_42_no_file_where_a_file_should_be(run, folder, store, name, instead):
    victim = folder / store / name
    if instead is link_out:
        shutil.copy(victim, victim.with_name("moved"))
    victim.unlink()
    instead(victim)
    elsewhere = () if name in ("manifest.json", "zarr.json", "shards/zarr.json") else ("info",)
    if name == "shards/000001/zarr.json":  # metadata for others, which only check compares
        elsewhere = ("info", "train", "predict")
    refused(run, store, but=elsewhere)


@pytest.mark.parametrize("name", ["shards", "shards/000001", "shards/000001/y"])
def test_42_a_folder_of_a_store_that_is_a_link(run, folder, name):
    place = folder / "z.zarr" / name
    place.rename(folder / "elsewhere")
    place.symlink_to(folder / "elsewhere")
    refused(run, "z.zarr", but=() if name == "shards" else ("info",))


def test_42_a_store_that_others_wrote_has_no_links_either(run, folder):
    group = zarr.open_group("z.zarr", mode="r")
    shutil.copytree("z.zarr", "v2.zarr", ignore=lambda _, names: [name for name in names if name == "zarr.json"])
    for shard in ("000000", "000001"):
        copy = zarr.open_group(f"v2.zarr/shards/{shard}", mode="a", zarr_format=2)
        for name, array in group[f"shards/{shard}"].arrays():
            shutil.rmtree(f"v2.zarr/shards/{shard}/{name}")
            copy.create_array(name, data=array[...])
    zarr.open_group("v2.zarr/shards", mode="a", zarr_format=2)
    zarr.open_group("v2.zarr", mode="a", zarr_format=2)
    assert run("predict", "m.npz", "v2.zarr")[0] == 0
    chunk = folder / "v2.zarr/shards/000001/y/0"
    for instead in (pipe, link_to_nothing, unix_socket):
        chunk.unlink()
        instead(chunk)
        refused(run, "v2.zarr")


def test_42_the_root_of_a_store_may_be_a_link(run, folder):
    os.symlink("z.zarr", "link")
    assert run("check", "link", "--read-data")[0] == 0


# --- parts in other places, metadata that was edited (37, 38) ---


@pytest.mark.parametrize(
    "names", [("z.zarr/shards/000000", "z.zarr/shards/000001"), ("h.store/shards/000000.h5", "h.store/shards/000001.h5")]
)
def test_37_shards_that_changed_places(run, folder, names):
    first, second = (folder / name for name in names)
    first.rename(folder / "aside")
    second.rename(first)
    (folder / "aside").rename(second)
    refused(run, names[0].split("/")[0], but=("info",))
    if "z.zarr" in names[0]:  # whose chunks end with their sums; of HDF5 files the plain check sees lengths alone
        assert run("check", "z.zarr")[0] == CORRUPT


def test_37_a_shard_of_another_store_with_right_checksums(run, folder):
    for name in ("indptr", "indices", "data", "y"):
        shutil.copy(folder / f"plain.zarr/shards/000000/{name}/c.0", folder / f"z.zarr/shards/000001/{name}/c.0")
    refused(run, "z.zarr", but=("info",))


@pytest.mark.parametrize("name", ["zarr.json", "shards/zarr.json", "shards/000001/zarr.json", "shards/000001/y/zarr.json"])
def test_38_metadata_that_was_edited(run, folder, name):
    """The manifest rules: what other programs would be told is compared by check, what we open by at all."""
    file = folder / "z.zarr" / name
    record = json.loads(file.read_text())
    for key, value in (("shape", [1]), ("data_type", "float64"), ("codecs", []), ("attributes", {"a": 1}), ("node_type", "x")):
        if record.get(key) == value or (key not in record and key != "attributes"):
            continue
        file.write_text(json.dumps({**record, key: value}))
        refused(run, "z.zarr", but=() if name in ("zarr.json", "shards/zarr.json") else ("info", "train", "predict"))
        assert run("check", "z.zarr")[0] == CORRUPT


# --- forged manifests (48) ---


@pytest.mark.parametrize("store", ["z.zarr", "h.store"])
def test_48_every_number_and_type_of_a_manifest(run, made, folder, store):
    accepted, refusals = [], []
    for what, record in mutated(manifest_of(made / store)):
        content = sealed(record)
        try:
            parse_manifest(content, "here")
            accepted.append((what, content))
        except (CorruptError, NotFoundError) as error:
            refusals.append(str(error))
    assert all(10 < len(words) < 500 and "\x1b" not in words for words in refusals)
    assert len(refusals) > 1000
    assert sum(not what.startswith("source/") for what, _ in accepted) < 300  # the source is told, not used
    trained = 0
    for number, (what, content) in enumerate(accepted):
        (folder / store / "manifest.json").write_bytes(content)
        training = what.startswith(("statistics", "shards/1/ones", "shards/1/arrays/y"))
        if store == "h.store" or (not training and number % 8):
            continue
        for command in COMMANDS if training else COMMANDS[:2]:
            code, out, err = run(*command.format(store).split())
            assert code in (0, 3, 4, 5, 7), (what, command, code, err)
            assert "Traceback" not in err, (what, command, err)
            assert "\x1b" not in out + err, (what, command)
        trained += training
    assert trained > 20 or store == "h.store"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("n_features", 1.5, "n_features is 1.5, not a whole number"),
        ("n_rows", 2**62, "its shards do not add up to its rows"),
        ("max_row_nnz", "2", "max_row_nnz is '2', not a whole number"),
        ("labels", [], "its labels do not add up to its rows"),
        ("groups", None, "groups is None, which does not go with the arrays"),
        ("max_abs_value", -1, "max_abs_value is -1, not a finite number from 0"),
    ],
)
def test_48_the_sentence_names_the_field(run, folder, name, value, words):
    record = manifest_of(folder / "z.zarr")
    record["statistics"][name] = value
    (folder / "z.zarr/manifest.json").write_bytes(sealed(record))
    code, _, err = run("train", "z.zarr", "--task", "binary", "--model", "x.npz")
    assert (code, words in err) == (CORRUPT, True), err


@pytest.mark.parametrize(
    ("name", "value", "array"),
    [("max_row_nnz", 2, "indptr"), ("max_abs_value", 1.5, "data"), ("groups", 1, "qid"), ("groups", 3, "qid")],
)
def test_48_numbers_that_the_rows_exceed(run, folder, name, value, array):
    """Buffers are as large as the manifest says: rows are held against it."""
    store = folder / "plain.zarr"
    if name == "max_row_nnz":  # all three entries of shard 0 in its first row
        forge(store, 0, {"indptr": np.array([0, 3, 3], np.int32), "indices": np.array([0, 1, 2], np.int32)})
    record = manifest_of(store)
    record["statistics"][name] = value
    (store / "manifest.json").write_bytes(sealed(record))
    for command in (
        "train {} --task ranking --model x.npz --force",
        "train {} --task binary --model x.npz --force",
        "predict m.npz {}",
    ):
        code, _, err = run(*command.format("plain.zarr").split())
        assert (code, f"/{array}: " in err, "manifest" in err) == (CORRUPT, True, True), err


def test_48_names_of_files_do_not_lead_out(folder, made):
    record = manifest_of(folder / "z.zarr")
    for holder in (record["files"], record["extras"], record["shards"][0]["files"]):
        name = next(iter(holder))
        for odd in ("../../secret.txt", "/etc/passwd", "a/../../b"):
            changed = json.loads(json.dumps(record))
            where = {0: changed["files"], 1: changed["extras"], 2: changed["shards"][0]["files"]}[
                [record["files"], record["extras"], record["shards"][0]["files"]].index(holder)
            ]
            where[odd] = where.pop(name)
            with pytest.raises(CorruptError, match="files"):
                parse_manifest(sealed(changed), "here")


def test_48_a_manifest_without_end(run, folder):
    for content in (b"[" * 10**6, b'{"a":' * 10**5, b"9" * 10**6, b"\xff\xfe", b"", b"null", b"[]", b'{"sha256":1}'):
        (folder / "z.zarr/manifest.json").write_bytes(content)
        refused(run, "z.zarr")
    with open(folder / "z.zarr/manifest.json", "wb") as file:
        file.truncate(1 << 40)  # of zeros, which take no room on the disk
    refused(run, "z.zarr")


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


def huge_chunk(file: h5py.File) -> None:
    del file["y"]
    file.create_dataset("y", (2,), np.int8, chunks=(2**31,), maxshape=(None,), compression="gzip")


def a_group(file: h5py.File) -> None:
    del file["y"]
    file.create_group("y")


def objects(file: h5py.File) -> None:
    del file["y"]
    file.create_dataset("y", data=np.array(["a", "b"], object), dtype=h5py.string_dtype())


@pytest.mark.parametrize("change", [external_link, soft_link, external_storage, virtual, huge_chunk, a_group, objects])
def test_48_hdf5_that_leads_elsewhere(run, folder, change):
    hdf5_forged(folder / "h.store", change)
    refused(run, "h.store", but=("info",))


@pytest.mark.parametrize("forged", PICKLED)
def test_48_no_codec_unpickles_a_store(run, folder, forged):
    for name in ("data", "indices", "indptr", "y", "qid", "weight"):
        for shard in ("000000", "000001"):
            pickled_array(folder / f"z.zarr/shards/{shard}/{name}", 2, forged)
            (folder / f"z.zarr/shards/{shard}/.zgroup").write_text('{"zarr_format": 2}')
    for place in ("z.zarr", "z.zarr/shards"):
        (folder / place / ".zgroup").write_text('{"zarr_format": 2}')
        (folder / place / "zarr.json").unlink()
    refused(run, "z.zarr", but=("info",))
    assert not (folder / "harm").exists()


def test_48_zip_files_that_are_none_or_hold_too_much(run, folder, monkeypatch):
    with zipfile.ZipFile("z.zip", "w") as archive:
        for path in sorted((folder / "z.zarr").rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder / "z.zarr"))
    whole = (folder / "z.zip").read_bytes()
    assert run("predict", "m.npz", "z.zip")[0] == 0
    (folder / "z.zip").write_bytes(whole.replace(b"PK\x01\x02", b"PK\x01\x09"))
    for command in COMMANDS:
        code, _, err = run(*command.format("z.zip").split())
        assert (code in (3, CORRUPT), "Traceback" in err) == (True, False), err
    monkeypatch.setattr("streamcut.io.opening.MAX_BYTES", 10)
    monkeypatch.setattr("streamcut.io.opening.MAX_MANIFEST", 10)
    (folder / "z.zip").write_bytes(whole)
    refused(run, "z.zip")


def test_48_a_recipe_of_another_kind(run, folder):
    """What a model is to remember of its features comes from the store."""
    for content in (b"[]", b"null", b'{"version":1,"form":7}', b"\xff", b"[" * 10**5):
        (folder / "z.zarr/recipe.json").write_bytes(content)
        record = manifest_of(folder / "z.zarr")
        record["extras"]["recipe.json"] = [len(content), crc32c(content)]
        (folder / "z.zarr/manifest.json").write_bytes(sealed(record))
        code, _, err = run("train", "z.zarr", "--task", "binary", "--model", "x.npz", "--solver", "ocas")
        assert (code, "Traceback" in err) == (CORRUPT, False), (content, err)


def test_errors_of_hostile_stores_are_ours(folder):
    with pytest.raises(StreamcutError):
        streamcut.open("m.npz")
