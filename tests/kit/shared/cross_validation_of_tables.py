"""What tests/solvers/test_cross_validation_of_tables.py and tests/inside/solvers/test_cross_validation_of_tables.py share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

N = 240


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=N), "site": rng.choice(["a", "b"], N), "patient": rng.integers(0, 12, N)})
    frame["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.permutation(N) // 2, unit="D")
    frame["ill"] = np.where(frame.x + (frame.site == "a") + rng.normal(size=N) > 0.5, "yes", "no")
    return frame
