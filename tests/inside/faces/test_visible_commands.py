"""Every command, told to work on hostile names, labels and features, steers no terminal and writes no markup (BAD_INPUT 60)."""

from __future__ import annotations

import pytest
from kit.shared.visible_commands import FILE, LINEAR, MODEL, STORE, TABLE, TEXT, TWO, fill
from kit.visible import NAMES, is_harmless

from inside.kit.visible import load_words
from streamcut.cli import COMMANDS

pytestmark = pytest.mark.process
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


def test_60_every_command(run, tmp_path, monkeypatch):
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
        load_words(page, "")
        assert "<script>alert" not in page.read_text()
    for drawing in folder.rglob("*.svg"):
        assert "<script" not in drawing.read_text()
