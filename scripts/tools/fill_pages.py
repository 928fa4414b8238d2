"""fill_pages.py PAGE …: run the commands of pages in docs/tutorials, and put what they print below them.

A page's blocks of `sh` and `python` run in order, in an empty folder in which `scripts` leads here. A block of `text` below one
holds what it prints to standard output; what differs from run to run (seconds) is written as …, which stands for anything. What
is right already stays.
tests/system/test_pages.py compares.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
VOLATILE = re.compile(r"\b\d[\d.,]* (?:s|ms|µs|min|kB/s|MB/s)\b")
LAST_DIGITS = re.compile(r"(\.\d{10})\d+")


def run(language: str, code: str, folder: Path) -> str:
    """What a block prints. Raises RuntimeError when it fails."""
    command = ["bash", "-euo", "pipefail", "-c", code] if language == "sh" else [sys.executable, "-P", "-W", "ignore", "-c", code]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path, "COLUMNS": "100"}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{code}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n"


def outputs(page: Path, folder: Path) -> Iterator[tuple[re.Match[str], str]]:
    """(block, what it prints), in order."""
    (folder / "scripts").symlink_to(ROOT / "scripts")
    for block in BLOCK.finditer(page.read_text("utf-8")):
        yield block, run(block[1], block[2], folder)


def same(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; … stands for anything, and decimals past the tenth vary with the processor."""
    shown, printed = (LAST_DIGITS.sub(r"\1", text) for text in (shown, printed))
    return re.fullmatch(".*".join(map(re.escape, shown.split("…"))), printed, re.DOTALL) is not None


def filled(page: Path) -> str:
    """The page with what its blocks print."""
    text, at, pieces = page.read_text("utf-8"), 0, []
    with tempfile.TemporaryDirectory() as folder:
        for block, printed in outputs(page, Path(folder)):
            if block[3] is not None and not same(block[3], printed):
                pieces += [text[at : block.start(3)], VOLATILE.sub("…", printed)]
                at = block.end(3)
    return "".join([*pieces, text[at:]])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    for name in parser.parse_args().pages:
        page = Path(name)
        page.write_text(filled(page), "utf-8")
