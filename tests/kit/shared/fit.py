"""What tests/faces/test_fit.py and tests/inside/faces/test_fit.py share."""

from __future__ import annotations

import numpy as np
import pandas as pd

ROWS = 1200


def table(seed=0):
    r = np.random.default_rng(seed)
    words = [f"{c}word" for c in "abcdefgh"]
    frame = pd.DataFrame({
        "row": np.arange(ROWS),
        "year": 2000.0 + r.integers(0, 5, ROWS),
        "flag": r.random(ROWS) < 0.5,
        "city": r.choice(["New York", "Rome"], ROWS),
        "note": [" ".join(r.choice(words, 6)) for _ in range(ROWS)],
        "same": 3,
        "user": r.integers(0, 60, ROWS),
        "day": pd.date_range("2024-01-01", periods=ROWS, freq="h").astype(str),
    })  # fmt: skip
    frame.loc[::7, "year"] = np.nan
    odds = 2.0 * frame.flag - 1.0 + frame.note.str.contains("aword") + (frame.year.fillna(2002) - 2002)
    frame["y"] = np.where(r.random(ROWS) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return frame
