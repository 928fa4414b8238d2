"""Every command on hostile names, labels and features, steers no terminal and writes no markup."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import streamcut
from streamcut.cli import COMMANDS

pytestmark = pytest.mark.process

NAMES = {
    "escape": "a\x1b[31mred\x1b]0;title\x07",
    "newline": "a\nstreamcut: all is well",
    "markup": "<script>alert(1)</script>&'\"",
    "no UTF-8": os.fsdecode(b"caf\xe9\x80"),
    "direction": "a\u202etxt.exe\u200b",
    "dollar": "$\\frac{$ %s {}",
}


def is_harmless(text: str) -> bool:
    return all(c.isprintable() or c == "\n" for c in text)


def expect_no_markup(page: Path) -> None:
    """The page is well-formed, and has no script but its numbers."""
    tags: list[tuple[str, dict]] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, given: tags.append((tag, dict(given)))
    parser.feed(text := page.read_bytes().decode())
    assert [given.get("type") for tag, given in tags if tag == "script"] == ["application/json"]
    assert is_harmless(text)


def on_terminal(command: list[str], folder: Path) -> tuple[int, bytes]:
    """(exit code, what a terminal is given) of `command`, run in `folder`."""
    read, write = os.openpty()
    with subprocess.Popen(command, cwd=folder, stdout=write, stderr=write) as process:
        os.close(write)
        shown = b""
        try:
            while piece := os.read(read, 4096):
                shown += piece
        except OSError:  # its end
            pass
    os.close(read)
    return process.returncode, shown


FILE = "a\x1b[31m\x1b]0;t\x07<b>&'\"\u202e$\\frac{$\n%s" + os.fsdecode(b"\xe9\x80")
WORDS = [NAMES["escape"], NAMES["newline"], NAMES["markup"], NAMES["dollar"], NAMES["direction"]]
MODEL, TWO, LINEAR = f"{FILE}.npz", f"{FILE}2.npz", f"{FILE}l.npz"
STORE, TABLE, TEXT = f"{FILE}.zarr", f"{FILE}.jsonl", f"{FILE}.svm"
LINES = [
    ("example", "clicks", f"{FILE}.made.csv"),
    ("convert", TABLE, STORE, "--label", "label"),
    ("convert", TABLE, "x.zarr", "--label", "label", "--dry-run"),
    ("convert", TABLE, f"{STORE}t", "--label", f"{NAMES['dollar']}=={NAMES['escape']}"),
    ("train", f"{STORE}t", "--output", "u.npz", "--scheduler", f"tcp://127.0.0.1:1/{NAMES['escape']}"),
    ("convert", TEXT, f"{STORE}s"),
    ("fit", TABLE, "--label", "label", "-o", f"{FILE}9.npz", "--C", "1", "--max-time", "5s"),
    ("fit", TABLE, "--label", NAMES["escape"], "-o", f"{FILE}10.npz"),
    ("info", STORE),
    ("info", STORE, "--json"),
    ("info", STORE, "--check"),
    ("train", STORE, "--task", "multiclass", "--output", MODEL, "--max-passes", "5"),
    ("train", STORE, "--task", "multiclass", "--output", "n.npz", "--max-passes", "5", "--json"),
    ("train", STORE, "--task", "multiclass", "--output", "o.npz", "--dry-run"),
    ("train", STORE, "--task", "multiclass", "--output", TWO, "--loss", "softmax", "--max-passes", "5"),
    ("train", f"{STORE}t", "--output", LINEAR, "--max-passes", "5", "--checkpoint", f"{FILE}run"),
    ("train", f"{STORE}t", "--output", "p.npz", "--positive-label", NAMES["escape"]),
    ("train", f"{STORE}t", "--output", f"{FILE}3.npz", "--C", "0.1,1", "--folds", "2", "--max-passes", "5"),
    ("train", f"{STORE}t", "--output", "t.npz", "--validation", f"{STORE}t", "--loss", f"{NAMES['escape']},hinge"),
    ("train", f"{STORE}t", "--output", "t.npz", "--folds", "2", "--set", f"{NAMES['escape']}=1,2"),
    ("train", f"{STORE}t", "--output", "t.npz", "--folds", "2", "--measure", NAMES["escape"]),
    ("info", MODEL),
    ("predict", MODEL, TABLE),
    ("predict", TWO, TABLE, "--answer", "probabilities"),
    ("predict", MODEL, TABLE, "--keep", NAMES["dollar"], "-o", f"{FILE}.csv"),
    ("predict", MODEL, TEXT),
    ("evaluate", MODEL, TABLE),
    ("evaluate", MODEL, STORE, "--json"),
    ("evaluate", LINEAR, TABLE),
    ("calibrate", LINEAR, f"{STORE}t", "-o", f"{FILE}4.npz"),
    ("calibrate", MODEL, STORE, "-o", f"{FILE}5.npz"),
    ("explain", MODEL, TABLE),
    ("explain", LINEAR, TABLE, "--top", "2", "--json"),
    ("explain", MODEL, TABLE, "--label", NAMES["escape"] + "?"),
    ("explain", MODEL, TABLE, "--against", f"{STORE}t"),
    ("explain", MODEL),
    ("explain", LINEAR, "--top", "5"),
    ("explain", MODEL, "--json"),
    ("explain", MODEL, "--label", NAMES["escape"] + "?"),
    ("report", MODEL, "-o", f"{FILE}6.html", "--data", STORE),
    ("report", MODEL, TWO, "-o", f"{FILE}7.html", "--data", TABLE),
    ("report", LINEAR, "-o", f"{FILE}8.html", "--data", TABLE, "--plots", f"{FILE}plots"),
    ("verify", MODEL),
    ("verify", LINEAR, f"{STORE}t"),
    ("verify", LINEAR, f"{STORE}t", "--output", f"{FILE}11.npz"),
    ("verify", LINEAR, f"{STORE}t", "--json"),
    ("verify", MODEL, STORE),
    ("export", MODEL, f"{FILE}.json"),
    ("export", MODEL, f"{FILE}.liblinear"),
    ("export", LINEAR, f"{FILE}2.liblinear"),
    ("export", MODEL, f"{FILE}.joblib"),
]


def fill(folder):
    rng = np.random.default_rng(0)
    with open(folder / TABLE, "w") as file:
        for k in range(90):
            cells = {"label": WORDS[k % 3], NAMES["direction"]: rng.random(), NAMES["dollar"]: WORDS[rng.integers(5)]}
            file.write(json.dumps(cells) + "\n")
    (folder / TEXT).write_text("1 1:0.5 3:1\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n")


def test_every_command_escapes_what_it_shows(run, tmp_path, monkeypatch):
    """Its output is printable, one message is one line, and whatever goes wrong has a sentence."""
    folder = tmp_path
    fill(folder)
    monkeypatch.chdir(folder)
    assert {line[0] for line in LINES} == set(COMMANDS)
    done = set()
    for line in LINES:
        code, out, err = run(*line)
        assert (code in (0, 2, 3, 4, 9, 11), "Traceback" in err) == (True, False), (line, code, err)
        assert is_harmless(out), (line, out)
        assert is_harmless(err), (line, err)
        assert "\nstreamcut: all is well" not in out + err, (line, out, err)
        done |= {line[0]} if code == 0 else set()
    assert done == set(COMMANDS)
    for page in folder.glob("*.html"):
        expect_no_markup(page)
        assert "<script>alert" not in page.read_text()
    for drawing in folder.rglob("*.svg"):
        assert "<script" not in drawing.read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table, its store and its model."""
    folder = tmp_path_factory.mktemp("hostile")
    fill(folder)
    streamcut.convert(str(folder / TABLE), str(folder / STORE), labels="label")
    streamcut.save_model(streamcut.train(str(folder / STORE), task="multiclass", max_passes=3), folder / MODEL)
    return folder


@pytest.mark.parametrize(
    "line",
    [
        ("predict", MODEL, TABLE, "--keep", f"{NAMES['dollar']},label", "--answer", "scores"),
        ("train", STORE, "--task", "multiclass", "--output", f"{FILE}9.npz", "--max-passes", "3"),
    ],
    ids=lambda line: line[0],
)
def test_columns_that_are_passed_on_are_escaped_on_terminals_only(folder, line):
    command = [sys.executable, "-P", "-m", "streamcut", *line]
    if line[0] == "predict":
        assert WORDS[0].encode() in subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    code, shown = on_terminal(command, folder)
    assert code in (0, 9), shown
    assert b"\\x1b" in shown
    assert not [code for code in (b"\x1b[31m", b"\x1b]0;", "\u202e".encode()) if code in shown], shown


def test_what_python_shows(folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = streamcut.train(TABLE, label="label", task="multiclass", max_passes=3)
    found = streamcut.cross_validate(STORE, folds=2, task="multiclass", max_passes=3)
    shown = [model, streamcut.evaluate(model, TABLE), found, streamcut.open(STORE).recipe]
    for each in shown:
        assert is_harmless(repr(each)), repr(each)
        page = getattr(each, "_repr_html_", str)()
        assert is_harmless(page), page
        assert "<script" not in page
