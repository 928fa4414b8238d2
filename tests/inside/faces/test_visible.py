"""Nothing from file names, labels, feature names or forged files steers a terminal, or is markup in a report."""

from __future__ import annotations

from kit.visible import NAMES

from streamcut.foundation.shown import html, visible


def test_what_is_shown_is_printable_and_what_is_printable_stays():
    assert visible("naïve 日本 a b") == "naïve 日本 a b"
    shown = {name: visible(text) for name, text in NAMES.items()}
    assert all(text.isprintable() for text in shown.values())
    assert shown["newline"] == "a\\x0astreamcut: all is well"
    assert shown["no UTF-8"] == "caf\\xe9\\x80"
    assert shown["direction"] == "a\\u202etxt.exe\\u200b"
    assert html(NAMES["markup"]).startswith("&lt;script&gt;")
