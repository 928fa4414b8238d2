"""Every command, told to work on hostile names, labels and features, steers no terminal and writes no markup (BAD_INPUT 60)."""

from __future__ import annotations

import subprocess
import sys

import pytest
from kit.shared.visible_commands import FILE, MODEL, STORE, TABLE, WORDS, fill
from kit.visible import NAMES, is_harmless, on_terminal

import streamcut

pytestmark = pytest.mark.process


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
def test_60_columns_that_are_passed_on_are_escaped_on_terminals_only(folder, line):
    command = [sys.executable, "-P", "-m", "streamcut", *line]
    if line[0] == "predict":
        assert WORDS[0].encode() in subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
    code, shown = on_terminal(command, folder)
    assert code in (0, 9), shown
    assert b"\\x1b" in shown
    assert not [code for code in (b"\x1b[31m", b"\x1b]0;", "\u202e".encode()) if code in shown], shown


def test_60_what_python_shows(folder, monkeypatch):
    monkeypatch.chdir(folder)
    model = streamcut.train(TABLE, label="label", task="multiclass", max_passes=3)
    found = streamcut.cross_validate(STORE, folds=2, task="multiclass", max_passes=3)
    shown = [model, streamcut.evaluate(model, TABLE), found, streamcut.open(STORE).recipe]
    for each in shown:
        assert is_harmless(repr(each)), repr(each)
        page = getattr(each, "_repr_html_", str)()
        assert is_harmless(page), page
        assert "<script" not in page
