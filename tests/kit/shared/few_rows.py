"""What tests/models/test_few_rows.py and tests/inside/models/test_few_rows.py share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut


@pytest.fixture(scope="module", params=[2, 5], ids=["two-classes", "five-classes"])
def model(request):
    rng = np.random.default_rng(request.param)
    X = sp.random(300, 60, 0.2, format="csr", random_state=1, data_rvs=lambda n: rng.standard_normal(n))
    y = rng.integers(request.param, size=300).astype(float)
    return streamcut.train(streamcut.rows(X, y), C=3.0)
