"""Kernels against their definitions, and as JSON."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from streamcut.errors import UsageError
from streamcut.kernels.kernel import Kernel

KERNELS = {
    Kernel("linear"): linear_kernel,
    Kernel("rbf", gamma=0.3): lambda X, Z: rbf_kernel(X, Z, gamma=0.3),
    Kernel("poly", gamma=0.5, degree=3, coef0=1.5): lambda X, Z: polynomial_kernel(X, Z, gamma=0.5, degree=3, coef0=1.5),
}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_values_are_those_of_scikit_learn(kernel):
    generator = np.random.default_rng(1)
    X = sp.random_array((7, 5), density=0.6, rng=generator, format="csr")
    Z = generator.normal(size=(4, 5))
    expected = KERNELS[kernel](X.toarray(), Z)
    X = X.toarray()
    squares, others = np.square(X).sum(axis=1), np.square(Z).sum(axis=1)
    np.testing.assert_allclose(kernel.values(X @ Z.T, squares[:, None], others[None, :]), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(squares), KERNELS[kernel](X, X).diagonal(), rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=4), st.floats(1e-6, 1e6))
def test_a_gaussian_value_is_never_above_one_and_is_one_at_itself(x, gamma):
    kernel = Kernel("rbf", gamma=gamma)
    square = np.square([x]).sum(axis=1)
    assert kernel.diagonal(square) == 1.0
    assert np.all(kernel.values(square * (1 + 1e-15), square, square) <= 1.0)


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({"name": "sigmoid"}, "kernel: 'sigmoid' is unknown; use one of linear, rbf, poly"),
        ({"name": "rbf", "gamma": 0.0}, "gamma"),
        ({"name": "rbf", "gamma": float("nan")}, "gamma"),
        ({"name": "poly", "degree": 0}, "degree"),
        ({"name": "poly", "degree": 2.5}, "degree"),
        ({"name": "poly", "coef0": -1.0}, "coef0"),
    ],
)
def test_bad_parameters_are_refused(parameters, complaint):
    with pytest.raises(UsageError, match=complaint):
        Kernel(**parameters)
