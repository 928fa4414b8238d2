"""What is not ours is never removed, with --force neither, but refused by name (FAULTS 43); links to stores stay (46)."""

from __future__ import annotations

import os
import shutil
import signal

import kit.shared.foreign_files
import pytest
from kit.shared.foreign_files import ROWS, USAGE, tree

import streamcut

folder = kit.shared.foreign_files.folder


PARTIALS = {
    "a file": lambda partial: (partial.mkdir(), (partial / "precious.txt").write_text("x")),
    "a folder": lambda partial: (partial / "photos").mkdir(parents=True),
    "deep": lambda partial: ((partial / "store" / "shards").mkdir(parents=True), (partial / "store/shards/thesis").touch()),
    "a lock with text": lambda partial: (partial.mkdir(), (partial / "lock").write_text("combination 1234")),
    "a journal of another kind": lambda partial: (partial.mkdir(), (partial / "journal.jsonl").write_text("dear diary")),
    "a link": lambda partial: (partial.mkdir(), (partial / "store").symlink_to("/etc")),
    "itself a link": lambda partial: partial.symlink_to("elsewhere"),
    "itself a file": lambda partial: partial.write_text("x"),
    "a pipe": lambda partial: (partial.mkdir(), os.mkfifo(partial / "journal.jsonl")),
}


@pytest.mark.parametrize("options", [[], ["--resume"], ["--force"], ["--shuffle", "1"]])
@pytest.mark.parametrize("what", PARTIALS)
def test_43_a_partial_of_somebody_else(run, folder, what, options):
    PARTIALS[what](folder / "o.zarr.partial")
    before = tree(folder)
    code, out, err = run("convert", "a.svm", "o.zarr", *options)
    assert (code, out) == (USAGE, ""), err
    assert "o.zarr.partial" in err
    assert tree(folder) == before


def test_43_the_second_output_of_a_split_is_looked_at_before_anything_is_made(run, folder):
    PARTIALS["a file"](folder / "o-test.zarr.partial")
    before = tree(folder)
    code, _, err = run("convert", "a.svm", "o.zarr", "--split", "0.5")
    assert (code, "o-test.zarr.partial holds files not written by streamcut (precious.txt)" in err) == (USAGE, True)
    assert tree(folder) == before


def test_43_a_replaced_of_somebody_else(run, folder):
    (folder / "o.zarr.replaced").mkdir()
    (folder / "o.zarr.replaced" / "precious.txt").write_text("x")
    assert run("convert", "a.svm", "o.zarr")[0] == 0  # it is in nobody's way
    before = tree(folder)
    code, _, err = run("convert", "a.svm", "o.zarr", "--force", "--shuffle", 1)
    assert (code, "o.zarr.replaced is in the way" in err) == (USAGE, True)
    assert tree(folder) == before


def test_43_a_backup_of_a_store_under_that_name_stays(run, folder):
    """It has the layout of a store, and even the content of the one that is replaced."""
    assert run("convert", "a.svm", "o.zarr", "--memory", "4GB")[0] == 0
    shutil.copytree("o.zarr", "o.zarr.replaced")
    before = tree(folder)
    for options in (["--force"], ["--force", "--shuffle", "1"]):
        code, _, err = run("convert", "a.svm", "o.zarr", *options)
        assert (code, "o.zarr.replaced is in the way" in err) == (USAGE, True)
        assert tree(folder) == before
    shutil.rmtree("o.zarr")
    assert run("convert", "a.svm", "o.zarr", "--memory", "4GB")[0] == 0
    assert tree(folder) == before


@pytest.mark.parametrize("place", ["notes.txt", "shards/notes.txt", "shards/000000/mine/x", "shards/000000/y/notes", "link"])
@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_43_files_of_others_inside_a_store_that_is_to_be_replaced(run, folder, place, backend):
    assert run("convert", "a.svm", "o.zarr", "--backend", backend)[0] == 0
    target = folder / "o.zarr" / place
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(folder / "a.svm") if place == "link" else target.write_text("mine")
    before = tree(folder)
    code, _, err = run("convert", "a.svm", "o.zarr", "--force")
    assert (code, "o.zarr holds files not written by streamcut (" in err) == (USAGE, True)
    assert tree(folder) == before
    target.unlink()
    if place.endswith("/x") or (place.count("/") == 3 and backend == "hdf5"):
        shutil.rmtree(target.parents[0] if backend == "zarr" else target.parents[1])
    assert run("convert", "a.svm", "o.zarr", "--force")[0] == 0


@pytest.mark.parametrize("visit", [1, 2, 3])
@pytest.mark.parametrize("then", [["--resume"], ["--force"], []])
def test_43_a_replacement_that_was_killed_ends_with_one_of_the_two(run, folder, visit, then):
    streamcut.convert("a.svm", "o.zarr")
    (folder / "b.svm").write_text(ROWS)
    child = os.fork()
    if child == 0:
        os.environ["STREAMCUT_FAILPOINT"] = f"convert.rename:{visit}:kill"
        streamcut.convert("b.svm", "o.zarr", force=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    code, _, err = run("convert", "b.svm", "o.zarr", *then)
    old_is_back = then == [] or (then == ["--resume"] and visit == 1)  # which is not what these options would have made
    assert code == (USAGE if old_is_back else 0), err
    rows = streamcut.open("o.zarr").manifest.statistics.n_rows
    assert rows == (80 if old_is_back and visit < 3 else 4)
    if not old_is_back:
        assert sorted(os.listdir()) == ["a.svm", "b.svm", "o.zarr"]


def test_43_a_lock_with_content_in_a_folder_of_checkpoints_stays(run, folder):
    streamcut.convert("a.svm", "a.zarr")
    (folder / "run").mkdir()
    (folder / "run" / "lock").write_text("mine")
    assert run("train", "a.zarr", "--model", "m.npz", "--checkpoint", "run", "--quiet")[0] == 0
    assert (folder / "run" / "lock").read_text() == "mine"


@pytest.mark.parametrize("there", [True, False])
def test_46_a_link_to_a_store_stays_one(run, folder, there):
    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to("elsewhere/o.zarr")
    if there:
        assert run("convert", "a.svm", "elsewhere/o.zarr")[0] == 0
        code, _, err = run("convert", "a.svm", "link")
        assert (code, "exists" in err) == (USAGE, True)
    code, _, err = run("convert", "a.svm", "link", "--force", "--shuffle", 3)
    assert code == 0, err
    assert os.readlink("link") == "elsewhere/o.zarr"
    assert os.listdir("elsewhere") == ["o.zarr"]
    assert sorted(os.listdir()) == ["a.svm", "elsewhere", "link"]
    assert streamcut.open("link").manifest.source["made_from"]["shuffle"] == 3
    assert run("convert", "a.svm", "link", "--resume", "--shuffle", 3)[0] == 0


def test_46_an_unfinished_store_behind_a_link_is_named_as_such(run, folder):
    (folder / "elsewhere").mkdir()
    (folder / "link").symlink_to("elsewhere/o.zarr")
    child = os.fork()
    if child == 0:
        os.environ["STREAMCUT_FAILPOINT"] = "convert.manifest:1:kill"
        streamcut.convert("a.svm", "link")
    os.waitpid(child, 0)
    code, _, err = run("info", "link")
    assert (code, "--resume" in err) == (6, True)
    assert run("convert", "a.svm", "link", "--resume")[0] == 0
    assert os.readlink("link") == "elsewhere/o.zarr"
