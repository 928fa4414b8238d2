"""What is accepted and what is refused beside malformed text (tests/doors/test_damage.py), through the command line.

Messages name file, line and column. Nothing here leaves anything behind, and nothing a traceback.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

import kit.bad_input
import numpy as np
import pytest
from kit.bad_input import CORRUPT, GOOD, MEMORY, MISSING, OK, USAGE, refused
from reference.rows import read_rows

import streamcut

folder = kit.bad_input.folder
store = kit.bad_input.store
model = kit.bad_input.model


pytestmark = pytest.mark.smoke


def test_weights_beyond_the_memory(run, folder):
    (folder / "in.svm").write_bytes(b"1 2147483647:1\n-1 1:1\n")
    streamcut.convert("in.svm", "out.zarr")
    refused(run, "train out.zarr -o m.npz --memory 1GB", MEMORY, "needs at least [0-9.]+ ?[GM]B")


def test_folders_globs_pipes_and_what_may_not_be_read(run, folder, monkeypatch):
    (folder / "d" / "e").mkdir(parents=True)
    (folder / "d" / "a.svm").write_bytes(GOOD)
    (folder / "d" / "e" / "b.svm").write_bytes(GOOD)
    assert run("convert", "d", "d.zarr")[0] == OK
    assert streamcut.open("d.zarr").manifest.statistics.n_rows == 8
    refused(run, "convert *.none out.zarr", MISSING, r"\*\.none")
    os.mkfifo("fifo")
    writer = threading.Thread(target=lambda: Path("fifo").write_bytes(GOOD))
    writer.start()
    assert run("convert", "fifo", "fifo.zarr")[0] == OK
    writer.join()
    read, write = os.pipe()
    os.write(write, GOOD)
    os.close(write)
    with os.fdopen(read) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        assert run("convert", "-", "stdin.zarr")[0] == OK
    assert read_rows(folder / "stdin.zarr") == read_rows(folder / "fifo.zarr")
    for command in ("info fifo", "info fifo --check", "train fifo -o m.npz"):  # these would wait for a writer for ever
        refused(run, command, MISSING, "a pipe or a device, not a streamcut store")
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests as root can read everything
    refused(run, "convert d/a.svm out.zarr", MISSING, "permission")


def test_a_model_in_the_place_of_data(run, model):
    for command in (
        "info m.npz --check",
        "train m.npz -o n.npz",
        "verify m.npz m.npz",
        "evaluate m.npz m.npz",
        "train m.npz -o n.npz --C 1,2 --folds 2",
    ):
        refused(run, command, MISSING, "a model, not data")
    np.savez("x.npz", a=np.arange(3))
    refused(run, "info x.npz --check", MISSING, "arrays of NumPy or SciPy.*convert")


def test_paths_that_are_no_store(run, folder, store):
    import h5py
    import zarr

    zarr.create_group("other.zarr")
    h5py.File("other.h5", "w").close()
    Path("d").mkdir()
    for path in ("good.svm", "other.zarr", "other.h5", "d", "none"):
        for command in (f"info {path}", f"info {path} --check", f"train {path} -o m.npz"):
            if command != "train good.svm -o m.npz":  # texts of rows are converted on the way
                refused(run, command, MISSING, path)


@pytest.mark.parametrize(
    "options",
    [
        "--workers 0", "--shard-nnz 0", "--split 1", "--split nan", "--hash-bits 32", "--shuffle -1", "--n-features 0",
        "--set multilabel=nan", "--label-map a=nan", "--index-base auto", "--label x",
    ],
)  # fmt: skip
def test_options_of_convert(run, store, options):
    refused(run, f"convert good.svm out.zarr {options}", USAGE, options.split()[0] if "auto" not in options else "--n-features")


def test_outputs_that_exist_or_cannot_be(run, folder, store, model):
    (folder / "d").mkdir()
    (folder / "d" / "a.svm").write_bytes(GOOD)
    refused(run, "convert good.svm good.zarr", USAGE, "exists")
    refused(run, "convert good.zarr good.zarr/x.zarr", USAGE, "lies inside the input")
    refused(run, "convert d d/x.zarr", USAGE, "lies inside the input")
    refused(run, "convert good.svm none/x.zarr", MISSING, "does not exist")
    for command in ("train good.zarr -o", "predict m.npz good.zarr -o", "export m.npz"):
        refused(run, f"{command} m.npz", USAGE, "exists|is an input of this command")
        refused(run, f"{command} none/x", MISSING, "none is not a folder")
        refused(run, f"{command} good.zarr/x", USAGE, "lies in the store")


def test_places_that_cannot_be_written(run, folder, store, model, monkeypatch):
    """Told before any work is done: a model must not be lost after hours of training."""
    long = "x" * 300
    outputs = ("train good.zarr -o", "predict m.npz good.zarr -o", "export m.npz", "convert good.svm")
    for command in outputs:
        refused(run, f"{command} {long}", MISSING, "too long")
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.open:1:EROFS")
    found = run("convert", "good.svm", "out.zarr")
    assert (found[0], "Read-only file system" in found[2]) == (MISSING, True)
    monkeypatch.setattr(os, "access", lambda *_: False)
    for command in outputs[:3]:
        refused(run, f"{command} y", MISSING, "cannot be written to")


@pytest.mark.parametrize("what", ["pickle", "truncated", "flipped", "store", "empty", "text"])
@pytest.mark.parametrize("command", ["predict {} good.svm", "evaluate {} good.svm", "verify {} good.zarr", "export {} x.txt"])
def test_files_that_are_no_whole_model(run, folder, model, what, command):
    import pickle

    whole = model.read_bytes()
    contents = {
        "pickle": pickle.dumps({"weights": np.ones(3)}),
        "truncated": whole[:-100],
        "flipped": whole[:600] + bytes([whole[600] ^ 1]) + whole[601:],
        "empty": b"",
        "text": b"1 1:1\n",
    }
    if what in contents:
        (folder / "bad.npz").write_bytes(contents[what])
    code = CORRUPT if what in ("truncated", "flipped", "empty") else MISSING
    refused(run, command.format("good.zarr" if what == "store" else "bad.npz"), code, "model|directory")
