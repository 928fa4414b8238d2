"""Sampled cuts: exact when the sample is everything, close when it is not, and the same bits whoever computes."""

from functools import cache

import numpy as np
import pytest
from kit.shared.sampled_cuts import SOLVERS, coefficients_of, rings
from reference import sampled as slow
from reference.kernels import matrix

import streamcut
from streamcut import train
from streamcut.kernels.kernel import Kernel


@cache
def optimum(kernel, bias):
    X, y = rings()
    sign = np.where(y == 2.0, 1.0, -1.0)
    return slow.hinge_optimum(matrix(kernel, X, X) + bias**2, sign, 0.7, 400)[1]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("kernel", "bias"), [(Kernel("rbf", 0.5), 0.0), (Kernel("poly", 0.5, 2, 1.0), 0.0), (Kernel("linear"), 1.0)]
)
def test_samples_of_all_rows_reach_the_kernel_machines_optimum(solver, kernel, bias):
    X, y = rings()
    own = {} if kernel.name == "linear" else {"gamma": kernel.gamma}
    own |= {"degree": 2, "coef0": 1.0} if kernel.name == "poly" else {}
    model = train(streamcut.rows(X, y), solver=solver, kernel=kernel.name, C=0.7, bias=bias, samples=len(y), tol=1e-4, **own)
    K, sign = matrix(kernel, X, X) + bias**2, np.where(y == 2.0, 1.0, -1.0)
    F = slow.hinge_primal(K, sign, 0.7, coefficients_of(model, X))
    best = optimum(kernel, bias)
    assert model.converged
    assert model.certificate.primal - model.certificate.raised == pytest.approx(F, rel=1e-12)
    assert model.facts["primal_estimate"] == pytest.approx(F, rel=1e-5)
    assert model.certificate.lower_bound <= best * (1 + 1e-12)
    assert model.facts["bound_estimate"] <= best * (1 + 1e-6)  # exact cuts bound the optimum
    assert best * (1 - 1e-6) <= F <= best + 1.1e-4 * 0.7 * len(y)
