"""What tests/faces/test_visible_commands.py and tests/inside/faces/test_visible_commands.py share."""

from __future__ import annotations

import json
import os

import numpy as np
from kit.visible import NAMES

FILE = "a\x1b[31m\x1b]0;t\x07<b>&'\"\u202e$\\frac{$\n%s" + os.fsdecode(b"\xe9\x80")
WORDS = [NAMES["escape"], NAMES["newline"], NAMES["markup"], NAMES["dollar"], NAMES["direction"]]
MODEL, TWO, LINEAR = f"{FILE}.npz", f"{FILE}2.npz", f"{FILE}l.npz"
STORE, TABLE, TEXT = f"{FILE}.zarr", f"{FILE}.jsonl", f"{FILE}.svm"


def fill(folder):
    rng = np.random.default_rng(0)
    with open(folder / TABLE, "w") as file:
        for k in range(90):
            cells = {"label": WORDS[k % 3], NAMES["direction"]: rng.random(), NAMES["dollar"]: WORDS[rng.integers(5)]}
            file.write(json.dumps(cells) + "\n")
    (folder / TEXT).write_text("1 1:0.5 3:1\n-1 2:1\n1 1:2\n-1 2:2 3:-1\n")
