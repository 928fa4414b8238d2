"""SMO against plain steps on a dense matrix, against LIBSVM, and its certificate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import train
from streamcut.sklearn import KernelSVM


@pytest.mark.parametrize("kernel_cache", ["auto", "40KB"])
def test_classes_that_share_kernel_columns_have_the_bits_of_classes_that_do_not(kernel_cache):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 4))
    y = X[:, :3].argmax(axis=1).astype(float)
    machine = KernelSVM(gamma=0.3, C=10.0, kernel_cache=kernel_cache).fit(X, y)
    options = {"kernel": "rbf", "gamma": 0.3, "C": 10.0, "solver": "smo", "task": "binary", "kernel_cache": kernel_cache}
    apart = [train(streamcut.rows(X, y), positive_label=label, **options) for label in (0.0, 1.0, 2.0)]
    for k, model in enumerate(apart):
        (own,) = np.nonzero(machine.dual_coef_[k])
        found = np.column_stack([machine.support_vectors_[own].toarray(), machine.dual_coef_[k, own]])
        expected = np.column_stack([model.support.toarray(), model.coefficients])
        np.testing.assert_array_equal(found[np.argsort(found[:, 0])], expected[np.argsort(expected[:, 0])])
        assert machine.lower_bound_[k] == model.certificate.lower_bound
    alone = sum(model.facts["evaluations"] for model in apart)
    if kernel_cache == "auto":  # a column that several classes want is computed once
        assert machine.model_.facts["evaluations"] < alone


@pytest.mark.parametrize(("far", "digits"), [(0.0, 1e-12), (1e8, 1e-9)])
def test_gamma_auto_is_that_of_scikit_learn(far, digits):
    X = sp.random_array((60, 5), density=0.6, format="csr", rng=np.random.default_rng(0))
    X = sp.csr_array(X.toarray() + far)
    model = streamcut.train(streamcut.rows(X, np.arange(60) % 2.0), solver="smo", kernel="rbf")
    assert model.kernel.gamma == pytest.approx(1.0 / (X.shape[1] * X.toarray().var()), rel=digits)
