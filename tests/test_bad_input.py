"""The list of what is accepted and what is refused, through the command line; the number of the row begins the test's id.

What only the parser decides is in test_svmlight.py as well, in more variants; here it is the exit code, and that the message
names file, line and column. No row here leaves anything behind, and none a traceback.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from reference.rows import read_rows

import streamcut
from streamcut.io.stores.manifest_file import manifest_bytes, read_manifest

OK, USAGE, BAD, MISSING, CORRUPT, MEMORY = 0, 2, 3, 4, 5, 7
GOOD = b"1 1:1 3:0.5\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"
LONG = b"." + b"7" * 400

TEXTS = [  # row, text, options of convert, exit code, words of the message (of the summary where it succeeds)
    ("1", b"+1 1:0.5\n-1\n1\n0\n2\n3.5\n", "", OK, "labels -1: 1, 0: 1, 1: 2, 2: 1, 3.5: 1"),
    ("2", b"1 1:1\n1 0:1\n", "", BAD, "in.svm:2:3: .*--index-base 0"),
    ("2-base-0", b"1 1:1\n1 0:1\n", "--index-base 0", OK, "2 features"),
    ("3", b"1 0:1 4:1\n", "--index-base 0 --n-features 4", BAD, "in.svm:1:7: .*--n-features 4"),
    ("4", b"1 -3:1\n", "", BAD, "in.svm:1:3: negative"),
    ("5", b"1 3:1 1:1\n", "", OK, "unsorted rows: 1"),
    ("6", b"1 1:1 2:1 1:2\n", "", BAD, "in.svm:1:11: .*--duplicates sum"),
    ("6-last", b"1 1:1 1:2\n", "--duplicates last", OK, "duplicates: 1"),
    ("7", b"1 1:1 3:0\n", "", OK, "1 entries, .*explicit zeros: 1"),
    ("7-keep", b"1 1:1 3:0\n", "--keep-zeros", OK, "2 entries"),
    ("8", b"1\n-1 1:1\n", "", OK, "2 rows"),
    ("9", b"\n \t\n# c\n  # d\n1 x:1\n", "", BAD, "in.svm:5:3: "),
    ("10", b"1 1:0.5#doc\n", "", OK, "1 rows|1 row,"),
    ("11", b" \t1\t 1:1  2:2 \t\n", "", OK, "2 entries"),
    ("11-vertical", b"1 1:1\x0b2:1\n", "", BAD, "in.svm:1:6: vertical tab"),
    ("11-form", b"1 1:1\x0c\n", "", BAD, "in.svm:1:6: form feed"),
    ("12", b"1 1:1\r\n-1 2:1\r\n", "", OK, "2 rows"),
    ("13", b"1 1:1\n-1 2:1", "", OK, "no final newline: 1"),
    ("14-colon", b"1 1:1 2:", "", BAD, "in.svm:1:7: .*cut off"),
    ("14-index", b"1 1:1 2", "", BAD, "in.svm:1:7: "),
    ("15", b"\xef\xbb\xbf1 1:1\n", "", OK, "labels 1: 1"),
    ("16", b"1 1:1\n1 \x001:1\n", "", BAD, "in.svm:2:3: NUL"),
    ("17-comment", "1 1:1 # é\n".encode(), "", OK, "1 entries"),
    ("17", "1 1:1 é\n".encode(), "", BAD, "in.svm:1:7: byte 0xc3"),
    *[(f"18-{label}", f"{label} 1:1\n".encode(), "", BAD, "in.svm:1:1: ") for label in ("nan", "inf", "-inf", "1e400")],
    ("19", b"ham 1:1\n", "", BAD, "in.svm:1:1: .*--label-map"),
    ("19-map", b"ham 1:1\nspam 1:1\n", "--label-map ham=-1,spam=1", OK, "labels ham: 1, spam: 1"),
    ("20", b"1:0.5 2:1\n", "", BAD, "in.svm:1:1: .*label is missing"),
    ("21", b"1,2 1:1\n", "", BAD, "in.svm:1:1: .*--multilabel"),
    ("21-multilabel", b"1,2 1:1\n3 1:1\n", "--multilabel 2", OK, "labels -1: 1, 1: 1"),
    ("22", b" 1:1\n2 1:1\n", "--multilabel 2", OK, "labels -1: 1, 1: 1"),
    ("23", b"1:2.5 1:1\n", "", BAD, "in.svm:1:1: .*--label-weights"),
    ("23-weights", b"1:2.5 1:1\n", "--label-weights", OK, "labels 1: 1"),
    *[(f"24-{value}", f"1 1:{value}\n".encode(), "", BAD, "in.svm:1:3: ") for value in ("nan", "inf", "1e400")],
    ("24-option", b"1 1:1\n", "--allow-nonfinite", USAGE, "No such option"),
    ("25", b"1 1:1e39\n", "", BAD, "in.svm:1:3: .*--dtype float64"),
    ("25-float64", b"1 1:1e39\n", "--dtype float64", OK, "1 entries"),
    ("26", b"1 1:1e-50\n", "", OK, "underflows: 1"),
    *[(f"27-{value}", f"1 1:1 2:{value}\n".encode(), "", BAD, "in.svm:1:7: ") for value in
      ("0x1p3", "1_000", "1,5", "1.5abc", ".", "+", "--1", "1e", "1e+")],
    ("28", b"1 1:.5 2:5. 3:+.5E-3 4:" + LONG + b"\n", "--dtype float64", OK, "4 entries"),
    ("29", b"1 1:2:3\n", "", BAD, "in.svm:1:3: .*libffm"),
    ("30-fraction", b"1 1.5:2\n", "", BAD, "in.svm:1:3: "),
    ("30-name", b"1 f1:2\n", "", BAD, "in.svm:1:3: .*--hash-bits"),
    ("31", b"1 2147483647:1\n-1 1:1\n", "", OK, "2,147,483,647 features"),
    ("32", b"1 qid:3 1:1\n2 qid:3 1:1\n1 qid:4 1:1\n", "", OK, "2 groups"),
    ("33", b"1 qid:3\n1 qid:4\n1 qid:3\n", "", BAD, "in.svm:3.*--group-by-qid"),
    ("33-group", b"1 qid:3\n1 qid:4\n1 qid:3\n", "--group-by-qid", OK, "2 groups"),
    ("34", b"1 qid:3 1:1\n1 1:1\n", "", BAD, "in.svm:2:3: .*qid"),
    *[(f"35-{qid}", f"1 {qid} 1:1\n".encode(), "", BAD, "in.svm:1:3: ") for qid in
      ("qid:-3", "qid:9223372036854775808", "qid:a")],
    ("35-end", b"1 1:1 qid:3\n", "", BAD, "in.svm:1:7: "),
    ("35-twice", b"1 qid:3 qid:3\n", "", BAD, "in.svm:1:9: "),
    ("36-cost", b"1 cost:2 1:1\n", "", BAD, "in.svm:1:3: cost"),
    ("36-sid", b"1 sid:2 1:1\n", "", BAD, "in.svm:1:3: sid"),
    ("37-xmlc", b"100 2000 30\n1,2 1:1\n", "", BAD, "in.svm:1:5: .*XMLC"),
    ("37-vw", b"1 |f a:1\n", "", BAD, "in.svm:1:3: .*Vowpal Wabbit"),
    ("37-csv", b"1,2.5,3\n", "", BAD, "in.svm:1:1: .*CSV"),
    ("37-json", b'{"y": 1}\n', "", BAD, "in.svm:1:1: .*JSON"),
    ("39-empty", b"", "", BAD, "in.svm: no rows"),
    ("39-comments", b"# a\n\n", "", BAD, "in.svm: no rows"),
    ("41", b"1 " + b" ".join(b"%d:1" % i for i in range(1, 200)) + b"\n", "--shard-nnz 10", OK, "199 entries"),
    ("43", b"1 0:1 2:1\n1 4:1\n", "--index-base auto --n-features 4", BAD, "in.svm.* 4.* 0"),
    ("48", GOOD, "--memory 1MB", MEMORY, "1.00 MB is not enough: at least [0-9]+ MB"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(folder) -> Path:
    (folder / "good.svm").write_bytes(GOOD)
    streamcut.convert("good.svm", "good.zarr")
    return folder / "good.zarr"


def refused(run, arguments: str, code: int, words: str) -> None:
    """The command line ends with `code` and one message, without a traceback and without leaving a file."""

    before = set(os.listdir())
    found, out, err = run(*arguments.split())
    assert (found, out) == (code, ""), err
    assert re.search(words, err), err
    assert "Traceback" not in err
    assert set(os.listdir()) == before


@pytest.mark.parametrize(("text", "options", "code", "words"), [case[1:] for case in TEXTS], ids=[f"{case[0]}" for case in TEXTS])
def test_text(run, folder, text, options, code, words):

    (folder / "in.svm").write_bytes(text)
    if code != OK:
        refused(run, f"convert in.svm out.zarr {options}", code, words)
        return
    found, out, err = run("convert", "in.svm", "out.zarr", *options.split())
    assert (found, out) == (OK, ""), err
    assert re.search(words, err, re.DOTALL), err
    assert run("check", "out.zarr", "--read-data")[0] == OK


def test_28_numbers_are_those_of_python(folder):
    words = [".5", "5.", "+.5E-3", "1" + LONG.decode()]
    (folder / "in.svm").write_text("1 " + " ".join(f"{k + 1}:{word}" for k, word in enumerate(words)) + "\n")
    streamcut.convert("in.svm", "out.zarr", dtype="float64")
    assert streamcut.open("out.zarr").read(0).data.tolist() == [float(word) for word in words]


def test_31_weights_beyond_the_memory(run, folder):
    (folder / "in.svm").write_bytes(b"1 2147483647:1\n-1 1:1\n")
    streamcut.convert("in.svm", "out.zarr")
    refused(run, "train out.zarr --model m.npz --memory 1GB", MEMORY, "needs at least [0-9.]+ ?[GM]B")


def test_38_compression_is_told_by_content(folder):
    for name, compress in {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.compress}.items():
        (folder / f"{name}.svm").write_bytes(compress(GOOD))
        streamcut.convert(f"{name}.svm", f"{name}.zarr")
    (folder / "plain.gz").write_bytes(GOOD)
    streamcut.convert("plain.gz", "plain.zarr")
    assert all(read_rows(folder / f"{name}.zarr") == read_rows(folder / "plain.zarr") for name in ("gz", "bz2", "xz", "zst"))


@pytest.mark.parametrize("text", [b"1 1:1\n", b"1 1:1\n1 2:1\n", b"1 1:1\n2 1:1\n3 1:1\n"], ids=["one row", "one class", "three"])
def test_40_classes_are_a_matter_of_training(run, folder, text):
    (folder / "in.svm").write_bytes(text)
    assert run("convert", "in.svm", "out.zarr")[0] == OK
    refused(run, "train out.zarr --model m.npz --task binary", BAD, "label")


def test_41_a_row_beyond_the_memory(run, folder, monkeypatch):
    """The limit is shrunk, not the row grown."""
    from streamcut.io.conversion.plan import ConvertPlan

    monkeypatch.setattr(ConvertPlan, "longest", 3)
    (folder / "in.svm").write_bytes(b"1 1:1\n1 1:1 2:1 3:1 4:1\n")
    refused(run, "convert in.svm out.zarr", MEMORY, r"row 1 .*4 entries.*raise --memory")


def test_42_places(run, folder, monkeypatch):
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
    for command in ("info fifo", "check fifo", "train fifo --model m.npz"):  # these would wait for a writer for ever
        refused(run, command, MISSING, "a pipe or a device, not a streamcut store")
    monkeypatch.setattr(os, "access", lambda *_: False)  # whoever runs the tests as root can read everything
    refused(run, "convert d/a.svm out.zarr", MISSING, "permission")


@pytest.fixture
def model(run, store) -> Path:
    assert run("train", "good.zarr", "--model", "m.npz", "--quiet")[0] == OK
    return store.with_name("m.npz")


def test_a_model_in_the_place_of_data(run, model):
    for command in (
        "check m.npz",
        "train m.npz --model n.npz",
        "verify m.npz m.npz",
        "evaluate m.npz m.npz",
        "tune m.npz --model n.npz --C 1,2 --folds 2",
    ):
        refused(run, command, MISSING, "a model, not data")
    np.savez("x.npz", a=np.arange(3))
    refused(run, "check x.npz", MISSING, "arrays of NumPy or SciPy.*convert")


def test_a_cost_that_float64_cannot_square(run, store):
    refused(run, "train good.zarr --model m.npz --C 1e308", USAGE, r"C: 1e\+308 is not a number above 0 and below 1e\+100")
    assert run("train", "good.zarr", "--model", "m.npz", "--C", "9e99")[0] == OK


@pytest.mark.parametrize("data", ["wide.svm", "wide.zarr"])
def test_44_features_that_the_model_lacks(run, folder, model, data):
    (folder / "wide.svm").write_bytes(b"1 1:1\n-1 2:1 4:1 9:1\n")
    streamcut.convert("wide.svm", "wide.zarr")
    for command in ("predict", "evaluate"):
        words = r"row 1 \(0-based\) has feature 3 \(0-based\).* 3 features.*--ignore-extra-features"
        code, out, err = run(command, "m.npz", data)
        assert code == BAD
        assert not (command == "evaluate" and out)

        assert re.search(words, err), err
        assert run(command, "m.npz", data, "--ignore-extra-features")[0] == OK


@pytest.mark.parametrize(
    "command", ["info good.zarr", "check good.zarr", "train good.zarr --model x.npz", "predict m.npz good.zarr"]
)
def test_45_a_newer_format(run, model, store, command, monkeypatch):
    from streamcut.io.stores import manifest_file

    manifest = replace(read_manifest(store / "manifest.json"), format_version=3)
    monkeypatch.setattr(manifest_file, "NEEDS", "9.9")
    (store / "manifest.json").write_bytes(manifest_bytes(manifest))
    refused(run, command, MISSING, "needs streamcut >= 9.9")


def test_46_other_containers(run, folder, store, model):
    import zarr

    with zipfile.ZipFile("good.zip", "w") as archive:
        for path in sorted(store.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(store))
    labels = run("predict", "m.npz", "good.zarr")[1]
    assert labels.split() == ["1", "-1", "1", "-1"]
    zarr.consolidate_metadata(zarr.storage.LocalStore(store))
    for path in ("good.zip", f"file://{store}"):
        assert run("predict", "m.npz", path)[:2] == (OK, labels), path
        assert run("check", path, "--read-data")[0] == OK, path


def test_47_paths_that_are_no_store(run, folder, store):
    import h5py
    import zarr

    zarr.create_group("other.zarr")
    h5py.File("other.h5", "w").close()
    Path("d").mkdir()
    for path in ("good.svm", "other.zarr", "other.h5", "d", "none"):
        for command in (f"info {path}", f"check {path}", f"train {path} --model m.npz"):
            refused(run, command, MISSING, path)


@pytest.mark.parametrize(
    "options",
    ["--C nan", "--C 0", "--C -1", "--max-passes 0", "--tol -1", "--tol nan", "--workers 0", "--memory 100", "--max-time 5"],
)
def test_49_options_out_of_range(run, store, options):
    refused(run, f"train good.zarr --model m.npz {options}", USAGE, options.split()[0].strip("-").replace("-", "[-_]"))


@pytest.mark.parametrize(
    "options",
    [
        "--threads 0", "--shard-nnz 0", "--split 1", "--split nan", "--hash-bits 32", "--shuffle -1", "--n-features 0",
        "--multilabel nan", "--label-map a=nan", "--index-base auto", "--labels x",
    ],
)  # fmt: skip
def test_49_options_of_convert(run, store, options):
    refused(run, f"convert good.svm out.zarr {options}", USAGE, options.split()[0] if "auto" not in options else "--n-features")


def test_50_outputs(run, folder, store, model):
    (folder / "d").mkdir()
    (folder / "d" / "a.svm").write_bytes(GOOD)
    refused(run, "convert good.svm good.zarr", USAGE, "exists")
    refused(run, "convert good.zarr good.zarr/x.zarr", USAGE, "lies inside the input")
    refused(run, "convert d d/x.zarr", USAGE, "lies inside the input")
    refused(run, "convert good.svm none/x.zarr", MISSING, "does not exist")
    for command in ("train good.zarr --model", "predict m.npz good.zarr -o", "export m.npz"):
        refused(run, f"{command} m.npz", USAGE, "exists|is what this command reads")
        refused(run, f"{command} none/x", MISSING, "none is not a folder")
        refused(run, f"{command} good.zarr/x", USAGE, "lies in the store")


def test_50_places_that_cannot_be_written(run, folder, store, model, monkeypatch):
    """Told before any work is done: a model must not be lost after hours of training."""
    long = "x" * 300
    outputs = ("train good.zarr --model", "predict m.npz good.zarr -o", "export m.npz", "convert good.svm")
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
def test_51_models(run, folder, model, what, command):
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


def test_52_resume_with_something_else(run, folder, store):
    options = ["train", "good.zarr", "--model", "m.npz", "--checkpoint", "run", "--tol", "0", "--tol-relative", "1e-12"]
    assert run(*options, "--max-passes", "2", "--checkpoint-iterations", "1")[0] == OK
    code, _, err = run(*options, "--max-passes", "9", "--resume", "--C", "7", "--force")
    assert code == USAGE, err
    assert "different run" in err
    assert "C" in err


def test_skipping_writes_the_refused_lines(run, folder):
    (folder / "in.svm").write_bytes(b"1 1:1\nbad\n-1 2:1\n1 0:1\n")
    refused(run, "convert in.svm out.zarr --on-error skip --max-errors 1", BAD, "more than 1 refused line.*in.svm:4:3")
    code, out, err = run("convert", "in.svm", "out.zarr", "--on-error", "skip", "--max-errors", "2", "--json")
    assert code == OK, err
    assert json.loads(out)["counters"]["skipped_lines"] == 2
    assert json.loads(out)["rejects"] == "out.zarr.rejects"
    assert b"bad\n" in (folder / "out.zarr.rejects").read_bytes()
    assert b"1 0:1\n" in (folder / "out.zarr.rejects").read_bytes()
