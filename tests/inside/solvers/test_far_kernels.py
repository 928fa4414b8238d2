"""Kernel certificates in exact arithmetic, near the origin and far from it: lower bound ≤ optimum ≤ F(model) ≤ primal."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.far_kernels import RBF, rows

import streamcut
from streamcut import train, verify
from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.centre import Centre
from streamcut.kernels.kernel import Kernel

OFFSETS = [0.0, 1e7]
POLY = {"kernel": "poly", "gamma": 0.05, "degree": 2, "coef0": 1.0}
SAMPLED = {"samples": 30, "tol": 1e-2}
DIGITS = 80


def exact_values(kernel: Kernel, X, Z) -> list[list[Decimal]]:
    """k to 80 digits, of the float64 numbers that the rows and parameters are."""
    gamma, coef0 = Decimal(kernel.gamma), Decimal(kernel.coef0)
    X, Z = ([[Decimal(float(v)) for v in row] for row in each] for each in (X, Z))
    if kernel.name == "rbf":
        return [[(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True))).exp() for z in Z] for x in X]
    return [[(gamma * sum(a * b for a, b in zip(x, z, strict=True)) + coef0) ** kernel.degree for z in Z] for x in X]


def exact_objective(model, X, y) -> Decimal:
    """F of the model: hinge loss of two classes, or Crammer and Singer's; the constant of sampled cuts is in the kernel."""
    with localcontext() as context:
        context.prec = DIGITS
        S = model.support.toarray()
        constant = Decimal(model.parameters["bias"]) ** 2 if model.solver.startswith("sampled") else Decimal(0)
        c = [[Decimal(float(v)) for v in row] for row in model.coefficients.reshape(len(S), -1)]
        free = [Decimal(0)] * len(c[0]) if constant else [Decimal(float(v)) for v in np.atleast_1d(model.intercept)]
        columns = range(len(c[0]))

        def scores(rows):
            values = exact_values(model.kernel, rows, S)
            return [[sum((k + constant) * own[j] for k, own in zip(row, c, strict=True)) for j in columns] for row in values]

        square = sum(own[j] * f[j] for own, f in zip(c, scores(S), strict=True) for j in columns)
        loss = Decimal(0)
        for f, label in zip(scores(X), y.tolist(), strict=True):
            if len(columns) == 1:
                sign = 1 if label == model.labels[1] else -1
                loss += max(Decimal(0), 1 - sign * (f[0] + free[0]))
            else:
                own = model.labels.index(label)
                loss += max(f[j] + (j != own) for j in columns) - f[own]
        return square / 2 + Decimal(model.C) * loss


CASES = {
    "smo rbf": ({"solver": "smo", "C": 10.0, **RBF}, 2),
    "smo rbf without a bias": ({"solver": "smo", "C": 10.0, "bias": 0.0, **RBF}, 2),
    "smo poly": ({"solver": "smo", "C": 1.0, **POLY}, 2),
    "sampled rbf": ({"solver": "sampled-linear", "C": 10.0, "bias": 0.5, **RBF, **SAMPLED}, 2),
    "sampled poly": ({"solver": "sampled-linear", "C": 1.0, "bias": 0.0, **POLY, **SAMPLED}, 2),
    "sampled rbf of three classes": ({"solver": "sampled-constant", "C": 3.0, "task": "multiclass", **RBF, **SAMPLED}, 3),
}


@cache
def optimum_above(case) -> Decimal:
    """F of a model near the optimum: no lower bound may be above it, wherever the rows are shifted to."""
    options, classes = CASES[case]
    X, y = rows(0.0, classes=classes)
    tight = {"tol": 1e-6} if "sampled" in options["solver"] else {"tol_relative": 1e-10, "tol": None}
    return exact_objective(train((X, y), **{**options, **tight}), X, y)


@pytest.mark.parametrize(("case", "offset"), list(product(CASES, OFFSETS)))
def test_kernel_certificates_are_true_far_from_the_origin(case, offset):
    options, classes = CASES[case]
    X, y = rows(offset, classes=classes)
    if options["kernel"] == "poly" and offset:
        with pytest.raises(BadInputError, match="subtract the means"):
            train((X, y), **options)
        return
    model = train((X, y), **options)
    found, F = model.certificate, exact_objective(model, X, y)
    assert found.converged
    assert F <= Decimal(found.primal) <= F * (1 + Decimal("1e-8"))
    assert Decimal(found.lower_bound) <= optimum_above(case)
    assert found.lower_bound >= 0.98 * float(optimum_above(case))
    checked = verify(model, (X, y))
    assert checked.consistent
    assert checked.error <= 1e-7 * checked.primal


@pytest.mark.parametrize("offset", [3.0, 12.0])
def test_certificates_of_a_polynomial_count_what_rounding_does(offset):
    X, y = rows(offset)
    model = train((X, y), solver="smo", C=1.0, max_time=20.0, **POLY)
    found, F = model.certificate, exact_objective(model, X, y)
    assert Decimal(found.primal) >= F
    assert found.raised > 0.0
    assert verify(model, (X, y)).consistent


def test_a_centre_is_subtracted_exactly_and_what_is_then_0_is_left_out():
    X = np.array([[1e9, 0.0, 3.0], [1e9 + 2.0, 5.0, 0.0], [0.0, 0.0, 0.0]])
    data = streamcut.rows(sp.csr_array(X), np.ones(3)).read(0)
    moved = Centre(np.array([0, 1]), np.array([1e9, 4.0])).moved(data)
    assert moved.indptr.tolist() == [0, 2, 4, 6]
    assert moved.indices.tolist() == [1, 2, 0, 1, 0, 1]
    assert moved.data.tolist() == [-4.0, 3.0, 2.0, 1.0, -1e9, -4.0]
    ones = Chunk(data.indptr, data.indices, None, data.y)
    assert Centre(np.array([0]), np.array([1.0])).moved(ones).indptr.tolist() == [0, 1, 2, 3]
