"""What tests/faces/test_manners.py and tests/inside/faces/test_manners.py share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(scope="module")
def rows() -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 20), density=0.4, rng=rng, format="csr", data_sampler=rng.normal)
    return sp.csr_matrix(X), np.where(X @ rng.normal(size=20) > 0, 1.0, -1.0)
