"""What is not ours is never removed, with --force neither, but refused by name; links to stores stay."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from kit.store_crash import forked

import streamcut

ROWS = "1 1:1 3:0.5\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"
USAGE = 2


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "a.svm").write_text(ROWS * 20)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
    return found


UNFINISHED = {
    "a file": lambda store: (store / "precious.txt").write_text("x"),
    "a folder": lambda store: ((store / "photos").mkdir(), (store / "photos/1.jpg").touch()),
    "a link": lambda store: (store / "link").symlink_to("/etc/hostname"),
}
OTHERS = {
    "a folder with a file": lambda place: (place.mkdir(), (place / "precious.txt").write_text("x")),
    "a folder with a diary": lambda place: ((place / "journal").mkdir(parents=True), (place / "journal/1").write_text("x")),
    "a folder with shards": lambda place: ((place / "shards").mkdir(parents=True), (place / "shards/thesis").touch()),
    "a link": lambda place: (place.parent / "mine").mkdir() or ((place.parent / "mine/x").touch(), place.symlink_to("mine")),
    "a file": lambda place: place.write_text("x"),
}


@pytest.mark.parametrize("options", [[], ["--resume"], ["--force"], ["--shuffle", "1"]])
@pytest.mark.parametrize("what", OTHERS)
def test_what_is_at_the_place_of_the_output_and_somebody_elses(run, folder, what, options):
    OTHERS[what](folder / "o.zarr")
    before = tree(folder)
    code, out, err = run("convert", "a.svm", "o.zarr", *options)
    assert (code, out, "choose another name" in err or "remove it yourself" in err) == (USAGE, "", True), err
    assert tree(folder) == before


@pytest.mark.parametrize("options", [[], ["--resume"], ["--force"]])
@pytest.mark.parametrize("what", UNFINISHED)
def test_files_of_others_in_an_unfinished_store(run, folder, what, options):
    assert forked(lambda: streamcut.convert("a.svm", "o.zarr"), "convert.manifest:1:kill") == -signal.SIGKILL
    UNFINISHED[what](folder / "o.zarr")
    before = tree(folder)
    code, out, err = run("convert", "a.svm", "o.zarr", *options)
    assert (code, out, "o.zarr holds files not written by streamcut (" in err) == (USAGE, "", True), err
    assert tree(folder) == before


@pytest.mark.parametrize("place", ["notes.txt", "shards/notes.txt", "shards/000000/mine/x", "shards/000000/y/notes", "link"])
@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_files_of_others_inside_a_store_that_is_to_be_replaced(run, folder, place, backend):
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


def test_a_lock_with_content_in_a_folder_of_checkpoints_stays(run, folder):
    streamcut.convert("a.svm", "a.zarr")
    (folder / "run").mkdir()
    (folder / "run" / "lock").write_text("mine")
    assert run("train", "a.zarr", "--output", "m.npz", "--checkpoint", "run", "--quiet")[0] == 0
    assert (folder / "run" / "lock").read_text() == "mine"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_to_a_store_stays_one(run, folder, there):
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
