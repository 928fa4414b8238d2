"""Nothing from file names, labels, feature names or forged files steers a terminal, or is markup in a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kit.hostile_store import manifest_of
from kit.visible import NAMES, expect_no_markup, is_harmless

import streamcut
from inside.kit.hostile_store import sealed
from streamcut.foundation.shown import html, visible

ROWS = "1 1:0.5 3:1\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"


def test_what_is_shown_is_printable_and_what_is_printable_stays():
    assert visible("naïve 日本 a b") == "naïve 日本 a b"
    shown = {name: visible(text) for name, text in NAMES.items()}
    assert all(text.isprintable() for text in shown.values())
    assert shown["newline"] == "a\\x0astreamcut: all is well"
    assert shown["no UTF-8"] == "caf\\xe9\\x80"
    assert shown["direction"] == "a\\u202etxt.exe\\u200b"
    assert html(NAMES["markup"]).startswith("&lt;script&gt;")


def test_a_forged_store_and_model(run, tmp_path, monkeypatch):
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
        expect_no_markup(Path("f.html"))
