"""The papers' kernel solvers: steps as on a dense matrix, and the optima that they come to."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference import sbp as reference
from reference import smo as exact
from reference.kernels import matrix

import streamcut
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.kernels.kernel import Kernel
from streamcut.oracles.kernel_columns import Responses
from streamcut.papers.rivals import KernelPegasos, KernelPerceptron, KernelSDCA
from streamcut.papers.sbp import StochasticBatchPerceptron, WaterLevel


def problem(seed=1, n=120, d=6, noise=0.5):
    generator = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.7, rng=generator, format="csr", data_sampler=generator.normal)
    signs = np.where(X.toarray()[:, 0] * 2 + noise * generator.normal(size=n) > 0, 1.0, -1.0)
    return X, signs


RBF = Kernel("rbf", gamma=0.3)


def responses(X, y, kernel=RBF, *, lanes=1, workers=1, shard_nnz=1 << 20, pinned=True, averaged=True):
    data = streamcut.rows(X, y, shard_nnz=shard_nnz)
    shards = frozenset(range(len(data.manifest.shards))) if pinned else frozenset()
    runner = Runner(Feed(data, shards), plan_lanes(data.manifest.statistics, lanes), workers)
    return Responses(runner, kernel, 1.0, averaged=averaged)


def trained(X, y, steps, *, seed=0, **options):
    own = {name: options.pop(name) for name in ("lanes", "workers", "shard_nnz", "pinned", "kernel") if name in options}
    solver = StochasticBatchPerceptron(responses(X, y, **own), random=np.random.default_rng(seed), **options)
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
    sums = np.zeros(len(signs))
    sums[ours.responses.numbers] = ours.responses.alpha_sum
    np.testing.assert_allclose(sums / steps, alpha, atol=1e-12)
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


def prepared(X, y):
    data = streamcut.rows(X, y)
    return Responses(Runner(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics)), KERNEL, 1.0)


def scores_of(solver, X, signs):
    alpha, intercept = solver.predictor()
    own = np.zeros(len(signs))
    own[solver.responses.numbers] = alpha * signs[solver.responses.numbers]
    return matrix(KERNEL, X, X) @ own + intercept


def random(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("batch", [1, 5])
def test_pegasos_step_by_step(batch):
    X, signs = noisy()
    m, C, draws = len(signs), 2.0, random()
    Q = matrix(KERNEL, X, X) * signs * signs[:, None]
    lam, w = 1.0 / (C * m), np.zeros(m)  # w = Σ w_i y_i φ(x_i)
    ours = KernelPegasos(prepared(X, signs), C=C, batch=batch, random=random())
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
    X, signs = noisy()
    m, C = len(signs), 1.0
    K = matrix(KERNEL, X, X)
    best = exact.objective(K, signs, exact.solve(K, signs, np.full(m, C), bias=False))
    ours = KernelSDCA(prepared(X, signs), C=C, batch=batch, random=random())
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
    ours = KernelPerceptron(prepared(X, signs), random=random())
    mistakes = -1
    while ours.responses.evaluations != mistakes:
        mistakes = ours.responses.evaluations
        for _ in range(len(signs)):
            ours.iterate()
    assert np.all(signs * scores_of(ours, X, signs) > 0.0)
    assert ours.rows_seen > len(signs)
