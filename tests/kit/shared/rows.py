"""What tests/models/test_rows.py and tests/inside/models/test_rows.py share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import streamcut

N = 400


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "age": rng.normal(40.0, 10.0, n).round(2),
            "size": rng.normal(10.0, 8.0, n),
            "count": rng.integers(-2, 5, n),
            "flag": rng.random(n) < 0.5,
            "site": rng.choice(["a*b", "a", "x=y", "back\\slash", "NA", "ä"], n),
        }
    )
    rows["bought"] = np.where(rows.age / 20 + rows.flag + (rows.site == "a") + rng.normal(size=n) > 2.8, "yes", "no")
    for name in ("age", "size", "site"):
        rows[name] = rows[name].mask(rng.random(n) < 0.1)
    return rows


def trained(**convert: Any) -> Any:
    roles = {"categorical": "count,flag,site", "numeric": "age,size:bin4", "cross": "site*flag"}
    return streamcut.train(frame(), label="bought", loss="logistic", convert={**roles, **convert})
