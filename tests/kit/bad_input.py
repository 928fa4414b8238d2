"""Texts that are refused or not, what the tests of bad input start from, and how a refusal looks."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import streamcut

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
    ("21", b"1,2 1:1\n", "", BAD, "in.svm:1:1: .*--set multilabel=LABEL"),
    ("21-multilabel", b"1,2 1:1\n3 1:1\n", "--set multilabel=2", OK, "labels -1: 1, 1: 1"),
    ("22", b" 1:1\n2 1:1\n", "--set multilabel=2", OK, "labels -1: 1, 1: 1"),
    ("23", b"1:2.5 1:1\n", "", BAD, "in.svm:1:1: .*--set label-weights=yes"),
    ("23-weights", b"1:2.5 1:1\n", "--set label-weights=yes", OK, "labels 1: 1"),
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
    ("48", GOOD, "--memory 1MB", MEMORY, "1.00 MB is not enough: at least [0-9.]+ [MG]B"),
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


def refused(run, arguments: str, code: int, words: str) -> str:
    """The message of a command line that ends with `code`, without a traceback and without leaving a file."""

    before = set(os.listdir())
    found, out, err = run(*arguments.split())
    assert (found, out) == (code, ""), err
    assert re.search(words, err), err
    assert "Traceback" not in err
    assert set(os.listdir()) == before
    return err


@pytest.fixture
def model(run, store) -> Path:
    assert run("train", "good.zarr", "--output", "m.npz", "--quiet")[0] == OK
    return store.with_name("m.npz")
