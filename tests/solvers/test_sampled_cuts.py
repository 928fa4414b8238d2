"""Sampled cuts: close to the optimum where the sample is not everything, and what they cost."""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from reference import sampled as slow
from reference import viterbi
from reference.kernels import matrix

import streamcut
from streamcut import train

SOLVERS = ("sampled-linear", "sampled-constant")
RBF = {"kernel": "rbf", "gamma": 0.5}


@cache
def rings(n=120, seed=0):
    """(X, y): two classes that no line parts."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    return X, np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n) > 0.8, 2.0, 1.0)


def coefficients_of(model, X):
    """The model's coefficients by row of X."""
    rows = {row.tobytes(): i for i, row in enumerate(X)}
    places = [rows[vector.tobytes()] for vector in model.support.toarray()]
    found = np.zeros((len(X), *model.coefficients.shape[1:]))
    found[places] = model.coefficients
    return found


def words(count=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, count)
    y = np.concatenate([(rng.integers(3) + np.arange(n)) % 3 for n in lengths])
    angle = 2 * np.pi * (y + 0.8 * rng.standard_normal(len(y))) / 6
    return sp.csr_array(np.stack([np.cos(2 * angle), np.sin(2 * angle)], 1)), y + 1.0, np.repeat(np.arange(count), lengths)


@pytest.mark.parametrize("solver", SOLVERS)
def test_samples_of_some_rows_come_close(solver):
    X, y = rings(600)
    Xt, yt = rings(2000, seed=1)
    exact = train(streamcut.rows(X, y), solver=solver, bias=0, samples=600, **RBF)
    some = train(streamcut.rows(X, y), solver=solver, bias=0, samples=150, **RBF)
    errors = [np.mean(model.predict(Xt) != yt) for model in (exact, some)]
    assert exact.converged
    assert (some.stop_reason, some.converged) == ("samples", False)
    assert errors[1] <= errors[0] + 0.02
    other = train(streamcut.rows(X, y), solver=solver, bias=0, samples=150, seed=1, **RBF)
    assert other.coefficients.tobytes() != some.coefficients.tobytes()


def test_kernel_values_are_counted():
    X, y = rings()
    n, r, common = len(y), 30, {"bias": 0, "tol": 1e-2, **RBF}
    linear = train(streamcut.rows(X, y), solver="sampled-linear", samples=r, **common)
    cuts = linear.facts["iterations"] - 1
    assert linear.facts["kernel_evaluations"] <= cuts * (n * r + r * r)  # O(T m r)
    assert linear.facts["kernel_evaluations"] > 0.9 * cuts * n * r
    counts = []
    for rows in (n, 5 * n):  # O(T² r²), whatever m is
        X, y = rings(rows)
        constant = train(streamcut.rows(X, y), solver="sampled-constant", samples=r, max_passes=2, **common).facts
        T = constant["iterations"]
        assert constant["kernel_evaluations"] <= r * r * (T * (T - 1) / 2 + T)
        counts.append(constant["kernel_evaluations"])
    assert max(counts) <= 3 * min(counts)


@pytest.mark.parametrize("solver", SOLVERS)
def test_sequences_with_a_linear_kernel_are_linear_sequences(solver):
    X, y, qid = words()
    data = streamcut.rows(X, y, qid=qid)
    linear = train(data, task="sequence", bias=0, C=0.5, tol=1e-4, tol_relative=None)
    kernel = train(data, task="sequence", bias=0, C=0.5, tol=1e-3, solver=solver, samples=1000)
    assert kernel.certificate.primal == pytest.approx(linear.certificate.primal, abs=1.2e-3 * 0.5 * len(y))
    assert kernel.certificate.lower_bound <= linear.certificate.primal
    assert linear.certificate.lower_bound <= kernel.certificate.primal
    assert kernel.converged
    weights = kernel.support.T @ kernel.coefficients
    w = np.concatenate((weights.ravel(), kernel.transitions.ravel()))
    starts = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(y)]))
    assert kernel.certificate.primal == pytest.approx(
        viterbi.primal(w, X.toarray(), (y - 1).astype(int), starts, 0.5, 3), rel=1e-10
    )


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("kernel", "bias"),
    [(RBF, 0.0), ({"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}, 0.0), ({"kernel": "linear"}, 1.0)],
)
def test_samples_of_all_rows_reach_the_kernel_machines_optimum(solver, kernel, bias):
    X, y = rings()
    model = train(streamcut.rows(X, y), solver=solver, C=0.7, bias=bias, samples=len(y), tol=1e-4, **kernel)
    K, sign = matrix(model.kernel, X, X) + bias**2, np.where(y == 2.0, 1.0, -1.0)
    F = slow.hinge_primal(K, sign, 0.7, coefficients_of(model, X))
    best = slow.hinge_optimum(K, sign, 0.7, 400)[1]
    assert model.converged
    assert model.certificate.primal - model.certificate.raised == pytest.approx(F, rel=1e-12)
    assert model.facts["primal_estimate"] == pytest.approx(F, rel=1e-5)
    assert model.certificate.lower_bound <= best * (1 + 1e-12)
    assert model.facts["bound_estimate"] <= best * (1 + 1e-6)  # exact cuts bound the optimum
    assert best * (1 - 1e-6) <= F <= best + 1.1e-4 * 0.7 * len(y)
