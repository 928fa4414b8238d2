"""Names that would steer a terminal or become markup."""

from __future__ import annotations

import os
import subprocess
from html.parser import HTMLParser
from pathlib import Path

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
