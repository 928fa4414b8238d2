"""More of the list of what is refused: line ends, wide indices, damage, long lines, AnnData, the first error, no memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import subprocess
import sys

import kit.bad_input
import numpy as np
import pytest
import zstandard
from kit.bad_input import BAD, MEMORY, OK, USAGE, refused

import streamcut

folder = kit.bad_input.folder
store = kit.bad_input.store
model = kit.bad_input.model


# --- old Mac line ends ---


@pytest.mark.parametrize("rows", [3, 1_500_000])
@pytest.mark.parametrize("command", ["convert in.svm out.zarr", "predict {model} in.svm"])
def test_carriage_returns_alone(run, folder, model, rows, command):
    (folder / "in.svm").write_bytes(b"1 1:1\r" * rows)
    refused(run, command.format(model=model), BAD, r"in.svm:1.*old Mac line ends.*tr ")


def test_one_at_the_end_of_a_windows_file_is_cut_off(run, folder):
    (folder / "in.svm").write_bytes(b"1 1:1\r\n-1 2:1\r")
    code, _, err = run("convert", "in.svm", "out.zarr")
    assert (code, "no final newline: 1" in err) == (OK, True), err


# --- indices beyond int32 ---


def test_wide_indices(run, folder):
    for index in (2**31, 2**40, 2**63 - 1):
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
    streamcut_ = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]

    def convert(memory: str) -> subprocess.CompletedProcess:
        command = [*streamcut_, "convert", "in.svm", "out.zarr", "--workers", "1", "--memory", memory]
        return subprocess.run(command, capture_output=True, text=True)

    small = next(found for size in (220, 240, 260, 280, 300) if "is not enough" not in (found := convert(f"{size}MB")).stderr)
    assert small.returncode == MEMORY, small.stderr
    assert re.search(r"in.svm:1: the line has [\d,]+ bytes, and --memory leaves [\d,]+ for one; raise --memory", small.stderr)
    enough = convert("600MB")
    assert enough.returncode == OK, enough.stderr
    scored = subprocess.run([*streamcut_, "predict", model, "in.svm", "--ignore-extra-features"], capture_output=True, text=True)
    assert (scored.returncode, len(scored.stdout.split())) == (OK, 2), scored.stderr


# --- AnnData where a store is expected ---


@pytest.mark.parametrize("name", ["a.h5ad", "a.anndata"])
def test_anndata_is_converted_by_the_line_that_is_named(run, folder, model, name):
    import anndata
    import pandas as pd

    data = anndata.AnnData(X=np.eye(4, 3, dtype=np.float32), obs=pd.DataFrame({"y": [1.0, -1.0, 1.0, -1.0]}, index=list("abcd")))
    (data.write_h5ad if name.endswith("h5ad") else data.write_zarr)(name)
    if name.endswith("h5ad"):
        refused(run, f"train {name} -o x.npz", USAGE, "--label is needed for anndata input")
    else:
        err = refused(run, f"train {name} -o x.npz", BAD, "AnnData")
        line = re.search(r"convert it first: streamcut (convert .* --label) COLUMN", err)[1]
        assert run(*line.split(), "y")[0] == OK
    assert run("train", name, "--label", "y", "--output", "y.npz")[0] == OK
    assert len(run("predict", model, name)[1].split()) == 4
    refused(run, f"evaluate {model} {name}", USAGE, "it is unknown where the labels are; .*convert --label")


# --- the first error of a file is the one that is told ---


@pytest.mark.parametrize("threads", ["1", "2"])
def test_the_first_error(run, folder, threads):
    comes_back = "1 qid:1 1:1\n1 qid:2 1:1\n# a\n1 qid:1 1:1\n"
    (folder / "in.svm").write_text(comes_back + "x qid:3 1:1\n")
    refused(run, f"convert in.svm out.zarr --workers {threads}", BAD, r"in.svm:4: qid 1 comes back")
    (folder / "in.svm").write_text("1 qid:5 1:1\nx qid:5 1:1\n" + comes_back)
    refused(run, f"convert in.svm out.zarr --workers {threads}", BAD, r"in.svm:2:1: ")
    (folder / "in.svm").write_text(comes_back + "x qid:3 1:1\n")
    refused(run, f"convert in.svm out.zarr --workers {threads} --group-by-qid", BAD, r"in.svm:5:1: ")


# --- no memory at all ---
