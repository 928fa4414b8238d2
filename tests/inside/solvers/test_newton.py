"""Newton's method: slow versions of its parts, and when it is chosen."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.newton import problem

import streamcut
from streamcut.bundle import two_cuts
from streamcut.compiled import second_order
from streamcut.config import TrainOptions
from streamcut.oracles.second_order import _sparse_minimum
from streamcut.strategy import choose

# --- its parts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("bias", [0.0, 2.0])
@pytest.mark.parametrize("ones", [False, True])
def test_products_of_features_are_those_of_numpy(dense, bias, ones):
    X, _, h = problem(37, 9, density=0.6)
    X.sort_indices()
    X.data = np.ones_like(X.data) if ones else X.data
    A = np.hstack([X.toarray(), np.full((37, 1), bias)]) if bias else X.toarray()
    H, rows = np.zeros((A.shape[1],) * 2), (X.indptr, X.indices, None if ones else X.data)
    if dense:
        second_order.add_dense(*rows, h, bias, np.empty((second_order.TOGETHER, len(H))), H)
    else:
        second_order.add_sparse(*rows, h, bias, H)
    np.testing.assert_allclose(np.tril(H), np.tril((A.T * h) @ A), atol=1e-12)


@pytest.mark.thirds
@pytest.mark.parametrize("seed", range(6))
def test_models_with_a_price_on_weights_are_minimised(seed):
    rng = np.random.default_rng(seed)
    d = 15
    B = rng.standard_normal((d, d - 4))
    Q, q, l1 = np.eye(d) + B @ B.T, 10.0 * rng.standard_normal(d), 4.0
    slow = np.zeros(d)
    for _ in range(20_000):  # proximal gradient descent
        v = slow - (Q @ slow - q) / np.linalg.norm(Q, 2)
        slow = np.sign(v) * np.maximum(np.abs(v) - l1 / np.linalg.norm(Q, 2), 0.0)
    fast = _sparse_minimum(Q, q, np.full(d, l1), rng.standard_normal(d), 1e-18)
    np.testing.assert_allclose(fast, slow, atol=1e-7)
    assert np.array_equal(fast == 0.0, np.abs(slow) < 1e-9)


# --- when it is chosen --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "features", "chosen"),
    [
        ({"loss": "logistic"}, 12, True),
        ({"loss": "hinge"}, 8, True),
        ({"loss": "hinge", "scale": "max-abs"}, 8, False),
        ({"loss": "hinge"}, 12, False),
        ({"loss": "hinge", "tol": 1e-5}, 8, False),
        ({"loss": "logistic"}, 4000, False),
        ({"loss": "logistic", "row_cache": "0"}, 12, True),
        ({"loss": "logistic", "row_cache": "1MB"}, 12, False),
        ({"loss": "logistic", "solver": "bundle-dca"}, 12, False),
        ({"task": "regression", "loss": "squared"}, 12, True),
        ({"task": "regression", "loss": "quantile"}, 8, True),
    ],
)
def test_few_features_choose_it(options, features, chosen):
    rng = np.random.default_rng(0)
    X = sp.random_array((500, features), density=5 / features, format="csr", rng=rng)
    found = choose(
        TrainOptions(**{"task": "binary", **options}), streamcut.rows(100.0 * X, np.arange(500.0) % 2).manifest.statistics
    )
    assert (found.chosen_solver == "newton") == chosen


def test_matrices_that_memory_does_not_hold_leave_it_out():
    X = sp.random_array((500, 600), density=0.01, format="csr", rng=np.random.default_rng(0))
    statistics = streamcut.rows(X, np.arange(500.0) % 2).manifest.statistics
    options = TrainOptions(task="regression", loss="squared", memory="40MB")
    assert choose(options, statistics).chosen_solver == "bundle-dca"


@pytest.mark.parametrize("steep", [1.0, 1e3, 1e6])
def test_a_line_search_ends_near_the_minimum_however_steep_powers_of_e_are(steep):
    """Poisson's loss of many counts of 10⁶ along a line."""

    def slopes(k):
        return k + 1e-3 * steep * (np.exp(np.minimum(steep * k, 700.0)) - 1e6)

    (k,) = two_cuts.minimise(slopes, 1)
    assert k * steep == pytest.approx(np.log(1e6), rel=0.02)
