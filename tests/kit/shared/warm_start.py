"""What tests/solvers/test_warm_start.py and tests/inside/solvers/test_warm_start.py share."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import save_model, train

ROWS, OLD_ROWS, FEATURES = 660, 600, 30


@cache
def rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, FEATURES), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    score = X @ np.random.default_rng(7).standard_normal(FEATURES)
    return sp.csr_array(X), np.where(score + 0.5 * rng.standard_normal(ROWS) > 0.1, 1.0, -1.0), rng.uniform(0.2, 3.0, ROWS)


@cache
def data(n: int = ROWS, features: int = FEATURES, weighted: bool = False) -> Any:
    X, y, u = rows()
    return streamcut.rows(X[:n, :features], y[:n], weight=u[:n] if weighted else None)


@pytest.fixture
def saved(tmp_path):
    """`saved(data, **options)` → the path of a model trained so."""

    def saved(dataset: Any, **options) -> str:
        path = str(tmp_path / "start.npz")
        save_model(train(dataset, **options), path)
        return path

    return saved


def passes(model) -> int:
    return model.history[-1]["passes"]
