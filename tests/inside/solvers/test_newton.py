"""Newton's method: slow versions of its parts, and when it is chosen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from streamcut.bundle import two_cuts
from streamcut.compiled import second_order

# --- its parts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("ones", [False, True])
def test_products_of_features_are_those_of_numpy(dense, bias, ones):
    rng = np.random.default_rng(0)
    X, h = sp.random_array((37, 9), density=0.6, format="csr", rng=rng), rng.uniform(0.2, 3.0, 37)
    X.sort_indices()
    X.data = np.ones_like(X.data) if ones else X.data
    A = np.hstack([X.toarray(), np.full((37, 1), bias)]) if bias else X.toarray()
    H, rows = np.zeros((A.shape[1],) * 2), (X.indptr, X.indices, None if ones else X.data)
    if dense:
        second_order.add_dense(*rows, h, bias, np.empty((second_order.TOGETHER, len(H))), H)
    else:
        second_order.add_sparse(*rows, h, bias, H)
    np.testing.assert_allclose(np.tril(H), np.tril((A.T * h) @ A), atol=1e-12)


# --- when it is chosen --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steep", [1.0, 1e3, 1e6])
def test_a_line_search_ends_near_the_minimum_however_steep_powers_of_e_are(steep):
    """Poisson's loss of many counts of 10⁶ along a line."""

    def slopes(k):
        return k + 1e-3 * steep * (np.exp(np.minimum(steep * k, 700.0)) - 1e6)

    (k,) = two_cuts.minimise(slopes, 1)
    assert k * steep == pytest.approx(np.log(1e6), rel=0.02)
