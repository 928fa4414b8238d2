"""What tests/io/test_texts.py and tests/inside/io/test_texts.py share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

N = 300
COMMON, RARE = ["alpha", "beta", "gamma", "the", "and"], [f"word{k}" for k in range(200)]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    r = np.random.default_rng(3)
    texts = [" ".join([*r.choice(COMMON, 5), *r.choice(RARE, r.integers(1, 4))]) for _ in range(N)]
    return pd.DataFrame({"text": texts, "city": r.choice(["Rome", "Oslo"], N), "y": r.integers(0, 2, N)})
