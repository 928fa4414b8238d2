"""Inputs that change while `convert` reads them: exit 3 with their name, and nothing under a final name."""

from __future__ import annotations

import os
from pathlib import Path

import kit.shared.changed_input
import pytest
from kit.shared.changed_input import KINDS

import streamcut
from streamcut.io.conversion import convert

inputs = kit.shared.changed_input.inputs
folder = kit.shared.changed_input.folder


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def grown(path: Path) -> None:
    with open(path, "ab") as file:
        file.write(b"1 1:1\n")


def rewritten(path: Path) -> None:
    """As many bytes in place."""
    content = path.read_bytes()
    with open(path, "r+b") as file:
        file.write(content[::-1])
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1))


def removed(path: Path) -> None:
    path.unlink()


def meanwhile(monkeypatch, change) -> None:
    """Do `change` when the first rows have been read."""
    left, tell = [change], convert.Work._tell

    def told(self, *arguments) -> None:
        if left:
            left.pop()()
        tell(self, *arguments)

    monkeypatch.setattr(convert.Work, "_tell", told)


CHANGES = [truncated, grown, rewritten, removed]
WAYS = {
    "threads": ["--workers", "3", "--shard-nnz", "900"],
    "one-thread": ["--workers", "1", "--shard-nnz", "900"],
    "shuffled": ["--shuffle", "1"],
    "split": ["--split", "0.5", "--shard-nnz", "900"],
    "skip": ["--on-error", "skip", "--shard-nnz", "900"],
}


def refused(run, folder: Path, name: str, victim: Path, options: list[str]) -> None:
    before = {path.name for path in folder.iterdir()}
    code, out, err = run("convert", name, "out.zarr", *KINDS[name], *options)
    assert (code, out) == (3, ""), err
    assert f"{victim.relative_to(folder)}: " in err
    assert "while it was read" in err
    assert "Traceback" not in err
    assert {path.name for path in folder.iterdir()} <= before


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [name for name in KINDS if name != "a.anndata"])
def test_every_change_of_every_kind_of_input(run, folder, monkeypatch, name, change):
    meanwhile(monkeypatch, lambda: change(folder / name))
    refused(run, folder, name, folder / name, ["--shard-nnz", "900"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
def test_every_way_to_convert_text(run, folder, monkeypatch, name, way):
    meanwhile(monkeypatch, lambda: grown(folder / name))
    refused(run, folder, name, folder / name, WAYS[way])


@pytest.mark.parametrize("command", ["predict", "evaluate"])
@pytest.mark.parametrize("change", [truncated, grown])
def test_text_that_is_scored(run, folder, monkeypatch, command, change):
    from streamcut import prediction

    streamcut.convert("a.svm", "out.zarr")
    assert run("train", "out.zarr", "--output", "m.npz", "--quiet")[0] == 0
    score, left = prediction._within, [change]

    def within(*arguments):
        if left:
            left.pop()(folder / "a.svm")
        return score(*arguments)

    monkeypatch.setattr(prediction, "_within", within)
    code, out, err = run(command, "m.npz", "a.svm", *(["-o", "labels.txt"] if command == "predict" else []))
    assert (code, out) == (3, ""), err
    assert "a.svm: " in err
    assert "while it was read" in err
    assert not Path("labels.txt").exists()
