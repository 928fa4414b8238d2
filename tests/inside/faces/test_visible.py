"""Nothing from file names, labels, feature names or forged files steers a terminal, or is markup in a report (BAD_INPUT 60)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.hostile_store import manifest_of
from kit.visible import NAMES, is_harmless

import streamcut
from inside.kit.hostile_store import sealed
from inside.kit.visible import load_words
from streamcut.foundation.shown import html, visible

ROWS = "1 1:0.5 3:1\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"


def test_60_what_is_shown_is_printable_and_what_is_printable_stays():
    assert visible("naïve 日本 a b") == "naïve 日本 a b"
    shown = {name: visible(text) for name, text in NAMES.items()}
    assert all(text.isprintable() for text in shown.values())
    assert shown["newline"] == "a\\x0astreamcut: all is well"
    assert shown["no UTF-8"] == "caf\\xe9\\x80"
    assert shown["direction"] == "a\\u202etxt.exe\\u200b"
    assert html(NAMES["markup"]).startswith("&lt;script&gt;")


@pytest.mark.thirds
@pytest.mark.parametrize("kind", NAMES)
def test_60_names_of_files(run, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    name = NAMES[kind].replace("/", "_")
    data, store, model, page = Path(f"{name}.svm"), Path(f"{name}.zarr"), Path(f"{name}.npz"), Path(f"{name}.html")
    data.write_text(ROWS)
    commands = [
        ("convert", data, store),
        ("info", store),
        ("info", store, "--check"),
        ("train", store, "--output", model, "--solver", "ocas", "--max-passes", "3"),
        ("info", model),
        ("verify", model),
        ("predict", model, data),
        ("report", model, "-o", page),
        ("convert", f"{name}.nothing", "x.zarr"),
        ("train", store, "--output", model),
        ("info", data),
        ("predict", model, store, f"--{name}"),
    ]
    for command in commands:
        code, out, err = run(*command)
        assert (code in (0, 2, 4), "Traceback" in err) == (True, False), (command, err)
        assert is_harmless(out + err), (command, out, err)
        assert "\nstreamcut: all is well" not in err
    assert load_words(page, name)


def test_60_a_forged_store_and_model(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.svm").write_text(ROWS)
    streamcut.convert("a.svm", "a.zarr")
    model = streamcut.train("a.zarr", solver="ocas", max_passes=3)
    for text in NAMES.values():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        record = manifest_of(Path("a.zarr"))
        record["streamcut_version"] = text
        record["source"] = {"made_from": {"inputs": [[text, 5]], "shuffle": text}, "counters": {text: 3}}
        Path("a.zarr/manifest.json").write_bytes(sealed(record))
        told = {"parameters": {**model.parameters, "data": text}, "resources": {**model.resources, "plan": [[text, 5]]}}
        streamcut.save_model(replace(model, fingerprint=text, history=[], **told), "f.npz")
        for command in (
            "info a.zarr",
            "info a.zarr --check",
            "info f.npz",
            "report f.npz -o f.html --force",
            "verify f.npz a.zarr",
        ):
            code, out, err = run(*command.split())
            assert (code in (0, 2, 4), "Traceback" in err) == (True, False), (command, err)
            assert is_harmless(out + err), (command, out, err)
        load_words(Path("f.html"), text)


def test_60_labels_and_features_of_a_table(run, tmp_path, monkeypatch):
    """A word for a label is one line of what predict prints, whatever is in it."""
    monkeypatch.chdir(tmp_path)
    words = [NAMES["escape"], NAMES["newline"], NAMES["markup"]]
    frame = {"label": words * 6, NAMES["direction"]: [0.1, 5.0, -3.0] * 6, NAMES["dollar"]: [NAMES["escape"], "x", "y"] * 6}
    Path("a.jsonl").write_text("".join(json.dumps(dict(zip(frame, row, strict=True))) + "\n" for row in zip(*frame.values())))  # noqa: B905
    for command in (
        "convert a.jsonl a.zarr --label label",
        "convert a.jsonl b.zarr --label label --dry-run",
        "info a.zarr",
        "train a.zarr --task multiclass -o m.npz --max-passes 5",
        "info m.npz",
        "report m.npz -o m.html",
        "evaluate m.npz a.jsonl",
        "predict m.npz a.jsonl",
    ):
        code, out, err = run(*command.split())
        assert code == 0, (command, err)
        assert is_harmless(out + err), (command, out, err)
    assert len(out.splitlines()) == 18
    assert set(out.splitlines()) <= {visible(word) for word in words}
    load_words(Path("m.html"), "m")
