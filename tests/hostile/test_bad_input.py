"""What is accepted and what is refused besides malformed text (tests/doors/test_damage.py), through the command line.

Messages name file, line and column. Nothing here leaves anything behind, and nothing a traceback.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import anndata
import kit.bad_input
import numpy as np
import pandas as pd
import pytest
import zstandard
from kit.bad_input import BAD, CORRUPT, GOOD, MEMORY, MISSING, OK, USAGE, refused
from reference.rows import read_rows

import streamcut

folder = kit.bad_input.folder
store = kit.bad_input.store
model = kit.bad_input.model


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


def test_paths_that_cannot_be_written(run, folder, store, model, monkeypatch):
    """Refused before any work is done: a model must not be lost after hours of training."""
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


@pytest.mark.parametrize("what", ["pickle", "empty", "text", "good.zarr"])
@pytest.mark.parametrize("command", ["predict {} good.svm", "evaluate {} good.svm", "verify {} good.zarr", "export {} x.txt"])
def test_files_that_are_no_model(run, folder, model, what, command):
    """Those that are damaged: tests/doors/test_model_files.py."""
    contents = {"pickle": pickle.dumps({"weights": np.ones(3)}), "empty": b"", "text": b"1 1:1\n"}
    if what in contents:
        (folder / "bad.npz").write_bytes(contents[what])
    code = CORRUPT if what == "empty" else MISSING
    refused(run, command.format("bad.npz" if what in contents else what), code, "model|directory")


@pytest.mark.parametrize("rows", [3, 1_500_000])
@pytest.mark.parametrize("command", ["convert in.svm out.zarr", "predict {model} in.svm"])
def test_old_mac_line_ends(run, folder, model, rows, command):
    (folder / "in.svm").write_bytes(b"1 1:1\r" * rows)
    refused(run, command.format(model=model), BAD, r"in.svm:1.*old Mac line ends.*tr ")
    (folder / "in.svm").write_bytes(b"1 1:1\r\n-1 2:1\r")  # at the end of a Windows file one is cut off
    code, _, err = run("convert", "in.svm", "out.zarr")
    assert (code, "no final newline: 1" in err) == (OK, True), err


# --- indices beyond int32 ---


def test_wide_indices(run, folder):
    for index in (2**31, 2**63 - 1):
        (folder / "in.svm").write_text(f"1 1:1\n-1 {index}:1\n")
        refused(run, "convert in.svm out.zarr", BAD, r"in.svm:2:4: feature index too large: .*--set wide-index=yes")
        assert run("convert", "in.svm", "out.zarr", "--set", "wide-index=yes", "--force")[0] == OK
        assert streamcut.open("out.zarr").manifest.statistics.n_features == index
        shutil.rmtree("out.zarr")
    (folder / "in.svm").write_text(f"1 {2**63}:1\n")
    refused(run, "convert in.svm out.zarr --set wide-index=yes", BAD, r"in.svm:1:3: feature index too large")
    (folder / "in.svm").write_text(f"1 {2**33}:1\n-1 1:1\n")
    assert run("convert", "in.svm", "out.zarr", "--n-features", str(2**34))[0] == OK


# --- damaged compression ---

PACKED = {
    "gz": lambda text: gzip.compress(text, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda text: zstandard.ZstdCompressor(write_checksum=True).compress(text),
}


@pytest.mark.parametrize("kind", PACKED)
def test_damaged_compression(run, folder, model, kind):
    lines = [f"{1 - 2 * (k % 2)} 1:{x:.6f} 3:1\n" for k, x in enumerate(np.random.default_rng(0).random(4000))]
    whole = PACKED[kind]("".join(lines).encode())
    middle = len(whole) // 2
    damaged = {
        "cut": whole[:-3],
        "flip": whole[:middle] + bytes([whole[middle] ^ 16]) + whole[middle + 1 :],
        "garbage": whole + b"more",
    }
    if kind in ("bz2", "xz"):  # what follows the end is left out, as by their programs
        del damaged["garbage"]
    for what, content in damaged.items():
        (folder / f"in.{kind}").write_bytes(content)
        for command in (f"convert in.{kind} out.zarr", f"evaluate {model} in.{kind}"):
            err = refused(run, command, BAD, rf"in.{kind}: the \w+ data is damaged.* byte [\d,]+")
            if what != "flip":
                assert int(re.search(r" byte ([\d,]+)", err)[1].replace(",", "")) == len(content)


# --- long lines ---


def test_a_line_longer_than_any_row(run, folder, model):
    with open("in.svm", "wb") as file:
        file.write(b"1 1:1\n1 2:")
        file.truncate(1 << 30)  # of zeros, which take no room on the disk
    refused(run, "convert in.svm out.zarr", BAD, r"in.svm:2: the line is longer than 268,435,456 bytes .*--set max-line-bytes")
    refused(run, "convert in.svm out.zarr --set max-line-bytes=10MB", BAD, r"in.svm:2: the line is longer than 10,000,000 bytes")


def test_a_legal_row_beyond_the_memory_is_read_with_more(folder, model):
    """In a process of its own, whose memory is not that of these tests."""
    count = 200_000
    (folder / "in.svm").write_text("1 " + " ".join(f"{k}:{k % 9}.25" for k in range(1, count)) + "\n-1 1:1\n")

    def command(*line: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, "-P", "-m", "streamcut", *line], capture_output=True, text=True)

    def convert(memory: str) -> subprocess.CompletedProcess:
        return command("convert", "in.svm", "out.zarr", "--workers", "1", "--memory", memory)

    small = next(found for size in (220, 240, 260, 280, 300) if "is not enough" not in (found := convert(f"{size}MB")).stderr)
    assert small.returncode == MEMORY, small.stderr
    assert re.search(r"in.svm:1: the line has [\d,]+ bytes, and --memory leaves [\d,]+ for one; raise --memory", small.stderr)
    enough = convert("600MB")
    assert enough.returncode == OK, enough.stderr
    scored = command("predict", str(model), "in.svm", "--ignore-extra-features")
    assert (scored.returncode, len(scored.stdout.split())) == (OK, 2), scored.stderr


# --- AnnData where a store is expected ---


def test_anndata_is_converted_by_the_line_that_is_named(run, folder, model):
    data = anndata.AnnData(X=np.eye(4, 3, dtype=np.float32), obs=pd.DataFrame({"y": [1.0, -1.0, 1.0, -1.0]}, index=list("abcd")))
    data.write_h5ad("a.h5ad")
    data.write_zarr("a.anndata")
    refused(run, "train a.h5ad -o x.npz", USAGE, "--label is needed for anndata input")
    err = refused(run, "train a.anndata -o x.npz", BAD, "AnnData")
    line = re.search(r"convert it first: streamcut (convert .* --label) COLUMN", err)[1]
    assert run(*line.split(), "y")[0] == OK
    for name in ("a.h5ad", "a.anndata"):
        assert run("train", name, "--label", "y", "--output", f"{name}.npz")[0] == OK
        assert len(run("predict", model, name)[1].split()) == 4
        refused(run, f"evaluate {model} {name}", USAGE, "it is unknown where the labels are; .*convert --label")


# --- the first error of a file is the one that is reported ---


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_first_error(run, folder, threads):
    comes_back = "1 qid:1 1:1\n1 qid:2 1:1\n# a\n1 qid:1 1:1\n"
    (folder / "in.svm").write_text(comes_back + "x qid:3 1:1\n")
    refused(run, f"convert in.svm out.zarr --workers {threads}", BAD, r"in.svm:4: qid 1 comes back")
    (folder / "in.svm").write_text("1 qid:5 1:1\nx qid:5 1:1\n" + comes_back)
    refused(run, f"convert in.svm out.zarr --workers {threads}", BAD, r"in.svm:2:1: ")
    (folder / "in.svm").write_text(comes_back + "x qid:3 1:1\n")
    refused(run, f"convert in.svm out.zarr --workers {threads} --group-by-qid", BAD, r"in.svm:5:1: ")
