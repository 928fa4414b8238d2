"""SMO and its parts against plain steps on a dense matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import smo as reference
from reference.kernels import matrix

import streamcut
from streamcut.kernels.kernel import Kernel
from streamcut.solvers import smo

KERNELS = [Kernel("rbf", gamma=0.5), Kernel("linear"), Kernel("poly", gamma=0.5, degree=2, coef0=1.0)]


def solver(X, signs, upper, kernel, *, bias, cache_bytes=1 << 20, workers=1):
    chunk = streamcut.rows(X, signs).read(0)
    upper = np.broadcast_to(np.asarray(upper, np.float64), (len(signs),)).copy()
    return smo.SMO(
        chunk,
        kernel,
        np.asarray(signs, np.int8),
        upper,
        dimension=X.shape[1],
        bias=bias,
        cache_bytes=cache_bytes,
        workers=workers,
    )


def problem(seed, n=60, d=5):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.6, rng=generator, format="csr", data_sampler=generator.normal)
    signs = np.where(X.toarray()[:, 0] + 0.7 * generator.normal(size=n) > 0, 1.0, -1.0)
    signs[:2] = 1.0, -1.0
    return X, signs


@pytest.mark.thirds
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("bias", [True, False])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 1.0, 20.0]), slots=st.sampled_from([2, 7, 60]))
def test_the_dual_is_that_of_plain_steps(kernel, bias, seed, C, slots):
    X, signs = problem(seed)
    upper = C * np.random.default_rng(seed).choice([0.5, 1.0, 2.0], len(signs))
    K = matrix(kernel, X, X)
    ours = solver(X, signs, upper, kernel, bias=bias, cache_bytes=4 * 60 * slots)
    assert ours.solve(1e-5)
    value = ours.certify()
    expected = reference.objective(K, signs, reference.solve(K, signs, upper, bias=bias, tolerance=1e-6))
    assert value.dual == pytest.approx(reference.objective(K, signs, ours.alpha), rel=1e-9)
    assert value.dual >= expected * (1 - 1e-6)  # plain steps may end before they are there
    assert value.primal == pytest.approx(reference.primal(K, signs, upper, ours.alpha, value.intercept), rel=1e-9)
    assert expected <= value.primal * (1 + 1e-12)
    assert np.all((ours.alpha >= 0) & (ours.alpha <= upper))


@pytest.mark.parametrize("bias", [True, False])
def test_rows_that_are_left_out_come_back(bias):
    """Many steps, so that rows are left out several times; a cache of few columns, so that columns come and go."""
    X, signs = problem(3, n=400, d=8)
    kernel = Kernel("rbf", gamma=0.2)
    K = matrix(kernel, X, X)
    ours = solver(X, signs, 3.0, kernel, bias=bias, cache_bytes=4 * 400 * 20)
    assert ours.solve(1e-6)
    assert ours.steps > 400
    exact = ours.certify()
    gradient = signs * (K @ (ours.alpha * signs)) - 1.0
    np.testing.assert_allclose(ours.gradient, gradient, atol=1e-9)
    assert exact.gap <= 1e-4 * exact.dual
