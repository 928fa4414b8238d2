"""Kernel Pegasos, SDCA and the Perceptron against what they are said to compute."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference import smo as exact
from reference.kernels import matrix

import streamcut
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.kernels.kernel import Kernel
from streamcut.oracles.kernel_columns import Responses
from streamcut.papers.rivals import KernelPegasos, KernelPerceptron, KernelSDCA

RBF = Kernel("rbf", gamma=0.4)


def problem(seed=2, n=100, noise=0.6):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, 5), density=0.7, rng=generator, format="csr", data_sampler=generator.normal)
    return X, np.where(X.toarray()[:, 0] + noise * generator.normal(size=n) > 0, 1.0, -1.0)


def responses(X, y):
    data = streamcut.rows(X, y)
    return Responses(Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics)), RBF, 1.0)


def scores_of(solver, X, signs):
    alpha, intercept = solver.predictor()
    own = np.zeros(len(signs))
    own[solver.responses.numbers] = alpha * signs[solver.responses.numbers]
    return matrix(RBF, X, X) @ own + intercept


def random(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("batch", [1, 5])
def test_pegasos_step_by_step(batch):
    X, signs = problem()
    m, C, draws = len(signs), 2.0, random()
    Q = matrix(RBF, X, X) * signs * signs[:, None]
    lam, w = 1.0 / (C * m), np.zeros(m)  # w = Σ w_i y_i φ(x_i)
    ours = KernelPegasos(responses(X, signs), C=C, batch=batch, random=random())
    evaluations = 0
    for t in range(1, 60):
        rows = draws.integers(m, size=1) if batch == 1 else draws.choice(m, batch, replace=False)
        losing = rows[(Q @ w)[rows] < 1.0]
        w *= 1.0 - 1.0 / t
        w[losing] += 1.0 / (lam * t * batch)
        evaluations += len(losing) * m
        ours.iterate()
    np.testing.assert_allclose(scores_of(ours, X, signs), signs * (Q @ w), rtol=1e-9, atol=1e-12)
    assert ours.responses.evaluations == evaluations
    assert ours.rows_seen == 59 * batch


@pytest.mark.parametrize("batch", [1, 4])
def test_sdca_climbs_to_the_optimum(batch):
    X, signs = problem()
    m, C = len(signs), 1.0
    K = matrix(RBF, X, X)
    best = exact.objective(K, signs, exact.solve(K, signs, np.full(m, C), bias=False))
    ours = KernelSDCA(responses(X, signs), C=C, batch=batch, random=random())
    values = [0.0]
    for _ in range(60 * m):
        ours.iterate()
        if ours.rows_seen % m == 0:
            values.append(ours.figures()["dual"])
    assert np.all(np.diff(values) >= -1e-9)
    assert values[-1] == pytest.approx(best, rel=1e-3)
    assert np.all((ours.responses.alpha >= 0.0) & (ours.responses.alpha <= C))


def test_the_perceptron_ends_when_rows_are_separated():
    X, signs = problem(noise=0.0)
    ours = KernelPerceptron(responses(X, signs), random=random())
    mistakes = -1
    while ours.responses.evaluations != mistakes:
        mistakes = ours.responses.evaluations
        for _ in range(len(signs)):
            ours.iterate()
    assert np.all(signs * scores_of(ours, X, signs) > 0.0)
    assert ours.rows_seen > len(signs)
