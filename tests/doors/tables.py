"""A table to convert and train on."""

from __future__ import annotations

import numpy as np
import pandas as pd


def table(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Categories with blanks and quotes, numbers, words, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    site, age = rng.choice(["a", "b", "c d", 'e"f'], n), np.round(rng.normal(40, 9, n), 1)
    words = [" ".join(rng.choice(["red", "green", "Big", "été", "Ärger", "größer", "東京"], 4)) for _ in range(n)]
    click = np.where((site == "a") * 1.5 + (age - 40) / 9 + rng.standard_normal(n) > 0.7, "yes", "no")
    return pd.DataFrame({"site": site, "age": age, "words": words, "click": click})
