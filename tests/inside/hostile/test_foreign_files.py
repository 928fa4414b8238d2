"""What is not ours is never removed, with --force neither, but refused by name (FAULTS 43); links to stores stay (46)."""

from __future__ import annotations

import os

import kit.shared.foreign_files
import pytest
from kit.shared.foreign_files import USAGE, tree

import streamcut
from streamcut.io.stores.leftovers import PARTIAL_LAYOUT, RUNS, STORE, expect_ours, remove
from streamcut.io.stores.writer import StoreWriter

folder = kit.shared.foreign_files.folder


def test_43_a_file_that_comes_while_the_new_store_is_made(folder):
    streamcut.convert("a.svm", "o.zarr")
    chunk = streamcut.open("o.zarr").read(0)
    before = tree(folder / "o.zarr")
    with StoreWriter(folder / "o.zarr", options={}, force=True) as writer:
        writer.append(chunk, {})
        (folder / "o.zarr" / "notes.txt").write_text("mine")
        with pytest.raises(streamcut.errors.UsageError, match=r"notes\.txt"):
            writer.finish({})
    assert tree(folder / "o.zarr") == {**before, "notes.txt": b"mine"}


def test_43_a_store_that_appears_meanwhile_is_not_replaced(folder):
    streamcut.convert("a.svm", "b.zarr")
    chunk = streamcut.open("b.zarr").read(0)
    with StoreWriter(folder / "o.zarr", options={}) as writer:
        writer.append(chunk, {})
        os.rename("b.zarr", "o.zarr")
        with pytest.raises(streamcut.errors.UsageError, match="exists"):
            writer.finish({})
    assert streamcut.open("o.zarr").manifest.statistics.n_rows == 80


def test_43_files_in_the_scratch_folder_stay(run, folder):
    from streamcut.io.conversion.options import ConvertOptions
    from streamcut.io.conversion.work import _scratch

    (folder / "tmp").mkdir()
    place = _scratch("o.zarr", ConvertOptions(scratch="tmp"))
    place.mkdir()
    (place / "notes").write_text("mine")
    code, _, err = run("convert", "a.svm", "o.zarr", "--shuffle", 1, "--scratch", "tmp")
    assert (code, "notes" in err) == (USAGE, True)
    assert (place / "notes").read_text() == "mine"


def test_43_what_comes_between_the_look_and_the_removal_stays(folder):
    streamcut.convert("a.svm", "o.zarr")
    (folder / "o.zarr" / "notes").write_text("mine")
    with pytest.raises(streamcut.errors.UsageError):
        remove(folder / "o.zarr", STORE)
    assert len(tree(folder / "o.zarr")) > 10


def test_every_file_that_is_made_has_a_known_name(folder, monkeypatch):
    """Or else a conversion that was killed could never be cleaned up."""
    for backend in ("zarr", "hdf5"):
        streamcut.convert("a.svm", f"{backend}.store", backend=backend, shard_nnz=10)
        expect_ours(folder / f"{backend}.store", STORE)
    child = os.fork()
    if child == 0:
        os.environ["STREAMCUT_FAILPOINT"] = "convert.chunk_rename:2:kill"
        streamcut.convert("a.svm", "o.zarr", shard_nnz=10)
    os.waitpid(child, 0)
    expect_ours(folder / "o.zarr.partial", PARTIAL_LAYOUT)
    assert any(".tmp" in name for name in tree(folder / "o.zarr.partial"))
    (folder / "runs" / "000000").mkdir(parents=True)
    for name in ("key", "length", "indices", "data", "y", "qid", "weight"):
        (folder / "runs" / "000000" / name).touch()
    remove(folder / "runs", RUNS)
    assert not (folder / "runs").exists()
