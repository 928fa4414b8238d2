"""Nothing from file names, labels, feature names or forged files steers a terminal, or is markup in a report (BAD_INPUT 60)."""

from __future__ import annotations

import sys

from kit.visible import NAMES, on_terminal

ROWS = "1 1:0.5 3:1\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n"


def test_60_a_terminal_gets_no_escapes(tmp_path):
    """Of ours there may be some on a live line, of others none."""
    name = f"{NAMES['escape']}.svm"
    (tmp_path / name).write_text(ROWS)
    command = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()", "convert", name, "x/y.zarr"]
    _, shown = on_terminal(command, tmp_path)
    assert b"x" in shown
    assert b"\x1b[31m" not in shown
    assert b"\x1b]0;" not in shown
