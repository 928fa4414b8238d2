"""The papers' kernel solvers: steps as on a dense matrix, and the optima that they come to."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference import sbp as reference
from reference import smo as exact
from reference.kernels import matrix

import streamcut
from streamcut.kernels.kernel import Kernel
from streamcut.papers.rivals import KernelPegasos, KernelPerceptron, KernelSDCA
from streamcut.papers.rounds import Responses
from streamcut.papers.sbp import StochasticBatchPerceptron, WaterLevel


def problem(seed=1, n=120, d=6, noise=0.5):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.7, rng=generator, format="csr", data_sampler=generator.normal)
    signs = np.where(X.toarray()[:, 0] * 2 + noise * generator.normal(size=n) > 0, 1.0, -1.0)
    return X, signs


RBF = Kernel("rbf", gamma=0.3)


def responses(X, y, kernel=RBF):
    rows = streamcut.rows(X, y).read(0)
    return Responses(rows, kernel, rows.y.astype(np.int8), X.shape[1])


def trained(X, y, steps, **options):
    solver = StochasticBatchPerceptron(responses(X, y), random=np.random.default_rng(0), **options)
    for _ in range(steps):
        solver.iterate()
    return solver


@pytest.mark.parametrize("bias", [False, True])
def test_water_rises_to_the_volume_from_wherever_it_is_looked_for(bias):
    rng = np.random.default_rng(0)
    for _ in range(300):
        signs = rng.choice([-1, 1], rng.integers(2, 40))
        signs[:2] = 1, -1
        c, levels = rng.standard_normal(len(signs)), WaterLevel(signs, bias=bias)
        volume = float(rng.exponential(len(signs)) + 1e-3)
        level = levels.find(c, volume)
        own = np.where(signs > 0, level.positive, level.negative)
        assert np.maximum(own - c, 0.0).sum() == pytest.approx(volume, rel=1e-9)
        near = levels.find(c + 0.05 * rng.standard_normal(len(c)), volume * rng.uniform(0.8, 1.2))
        np.testing.assert_allclose(levels.find(c, volume, near, rng.choice([0.01, 0.3, 3.0])), level, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
def test_step_by_step_as_on_a_dense_matrix(bias):
    X, signs = problem()
    nu, steps = 0.05, 150
    alpha, c = reference.average(matrix(RBF, X, X), signs, nu, steps, np.random.default_rng(0), bias=bias)
    ours = trained(X, signs, steps, nu=nu, bias=bias)
    np.testing.assert_allclose(ours.responses.alpha_sum / steps, alpha, atol=1e-12)
    np.testing.assert_allclose(ours.responses.c_sum / steps, c, atol=1e-12)
    assert ours.responses.evaluations == steps * len(signs)


def test_without_slack_a_separable_problem_is_separated():
    generator = np.random.default_rng(4)
    X = generator.normal(size=(80, 2))
    X = sp.csr_array(X[np.abs(X[:, 0]) > 0.3])
    signs = np.sign(X.toarray()[:, 0])
    solver = trained(X, signs, 2000, nu=1e-9)
    assert np.all(solver.responses.c_sum > 0)


KERNEL = Kernel("rbf", gamma=0.4)


def noisy(seed=2, n=100, noise=0.6):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, 5), density=0.7, rng=generator, format="csr", data_sampler=generator.normal)
    return X, np.where(X.toarray()[:, 0] + noise * generator.normal(size=n) > 0, 1.0, -1.0)


def scores_of(solver, X, signs):
    alpha, intercept = solver.predictor()
    return matrix(KERNEL, X, X) @ (alpha * signs) + intercept


def random(seed=0):
    return np.random.default_rng(seed)


def test_pegasos_step_by_step():
    X, signs = noisy()
    m, C, draws = len(signs), 2.0, random()
    Q = matrix(KERNEL, X, X) * signs * signs[:, None]
    lam, w = 1.0 / (C * m), np.zeros(m)  # w = Σ w_i y_i φ(x_i)
    ours = KernelPegasos(responses(X, signs, KERNEL), C=C, random=random())
    evaluations = 0
    for t in range(1, 60):
        rows = draws.integers(m, size=1)
        losing = rows[(Q @ w)[rows] < 1.0]
        w *= 1.0 - 1.0 / t
        w[losing] += 1.0 / (lam * t)
        evaluations += len(losing) * m
        ours.iterate()
    np.testing.assert_allclose(scores_of(ours, X, signs), signs * (Q @ w), rtol=1e-9, atol=1e-12)
    assert ours.responses.evaluations == evaluations
    assert ours.rows_seen == 59


def test_sdca_climbs_to_the_optimum():
    X, signs = noisy()
    m, C = len(signs), 1.0
    K = matrix(KERNEL, X, X)
    best = exact.objective(K, signs, exact.solve(K, signs, np.full(m, C), bias=False))
    ours = KernelSDCA(responses(X, signs, KERNEL), C=C, random=random())
    values = [0.0]
    for _ in range(60 * m):
        ours.iterate()
        if ours.rows_seen % m == 0:
            values.append(ours.figures()["dual"])
    assert np.all(np.diff(values) >= -1e-9)
    assert values[-1] == pytest.approx(best, rel=1e-3)
    assert np.all((ours.responses.alpha >= 0.0) & (ours.responses.alpha <= C))


def test_the_perceptron_ends_when_rows_are_separated():
    X, signs = noisy(noise=0.0)
    ours = KernelPerceptron(responses(X, signs, KERNEL), random=random())
    mistakes = -1
    while ours.responses.evaluations != mistakes:
        mistakes = ours.responses.evaluations
        for _ in range(len(signs)):
            ours.iterate()
    assert np.all(signs * scores_of(ours, X, signs) > 0.0)
    assert ours.rows_seen > len(signs)
