"""Stores that somebody made to do harm, with checksums to match: refused with a sentence, at once, with nothing outside opened.

Faults 37 and 38 (parts moved or edited), 42 (no files where files should be) and 48 (numbers and types out of range).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import kit.shared.hostile_store
import numpy as np
import pytest
from kit.forging import external_link, external_storage, virtual
from kit.hostile_store import manifest_of
from kit.mutations import mutated
from kit.shared.hostile_store import COMMANDS, CORRUPT, refused

from inside.kit.forging import forge
from inside.kit.hostile_store import sealed
from streamcut.errors import CorruptError, NotFoundError
from streamcut.io.stores.codec import crc32c
from streamcut.io.stores.manifest_file import parse_manifest

made = kit.shared.hostile_store.made
folder = kit.shared.hostile_store.folder
alarm = kit.shared.hostile_store.alarm


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
    code, _, err = run("train", "z.zarr", "--task", "binary", "--output", "x.npz")
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
        "train {} --task ranking -o x.npz --force",
        "train {} --task binary -o x.npz --force",
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
        code, _, err = run("train", "z.zarr", "--task", "binary", "--output", "x.npz", "--solver", "ocas")
        assert (code, "Traceback" in err) == (CORRUPT, False), (content, err)
