"""The stochastic batch perceptron: against Algorithm 1 on a dense matrix, and against SMO."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.sbp import problem
from reference import sbp as reference
from reference import smo as exact
from reference.kernels import matrix

import streamcut
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.kernels.kernel import Kernel
from streamcut.oracles.kernel_columns import Responses
from streamcut.papers.sbp import StochasticBatchPerceptron, WaterLevel

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


@pytest.mark.parametrize("bias", [False, True])
def test_it_comes_to_the_pareto_front_of_smo(bias):
    """ν taken from the optimum for C, as in the paper: norm and mean hinge loss come within 1 % of it."""
    X, signs = problem(noise=1.0)
    C, m = 1.0, len(signs)
    K = matrix(RBF, X, X)
    best = exact.solve(K, signs, np.full(m, C), bias=bias)
    scores = K @ (best * signs)
    norm = np.sqrt((best * signs) @ scores)
    intercept = np.median((signs - scores)[(best > 1e-6) & (best < C - 1e-6)]) if bias else 0.0
    hinge = np.maximum(0.0, 1.0 - signs * (scores + intercept)).mean()
    figures = trained(X, signs, 3_000, nu=hinge / norm, bias=bias, batch=16).figures()
    assert figures["norm"] == pytest.approx(norm, rel=0.01)
    assert figures["mean_hinge"] == pytest.approx(hinge, rel=0.01)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_nu_from_c_comes_near_the_optimum_for_it(C, bias):
    X, signs = problem(noise=1.0)
    m, K = len(signs), matrix(RBF, X, X)
    best = exact.objective(K, signs, exact.solve(K, signs, np.full(m, C), bias=bias))
    figures = trained(X, signs, 2_000, C=C, bias=bias, batch=16).figures()
    assert best <= 0.5 * figures["norm"] ** 2 + C * m * figures["mean_hinge"] <= 1.02 * best


def test_a_batch_that_holds_all_rows_under_water_is_the_exact_gradient():
    X, signs = problem()
    one, other = (trained(X, signs, 50, nu=0.02, batch=len(signs), seed=seed) for seed in (1, 2))
    assert np.array_equal(one.responses.c_sum, other.responses.c_sum)


def test_without_slack_a_separable_problem_is_separated():
    generator = np.random.default_rng(4)
    X = generator.normal(size=(80, 2))
    X = sp.csr_array(X[np.abs(X[:, 0]) > 0.3])
    signs = np.sign(X.toarray()[:, 0])
    solver = trained(X, signs, 2000, nu=1e-9)
    assert np.all(solver.responses.c_sum > 0)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("kernel", [RBF, Kernel("linear"), Kernel("poly", gamma=0.4, degree=2, coef0=1.0)], ids=lambda k: k.name)
def test_columns_and_blocks_are_the_kernel(kernel, ones):
    X, signs = problem(n=90)
    if ones:
        X.data[:] = 1.0
    K = matrix(kernel, X, X) * signs * signs[:, None]
    rows = np.arange(3, 40)
    steps = np.random.default_rng(0).normal(size=len(rows))
    single, block = (responses(X, signs, kernel) for _ in range(2))
    for row, step in zip(rows, steps, strict=True):
        single.step(np.array([row]), np.array([step]))
    block.step(rows, steps)
    np.testing.assert_allclose(single.c, K[:, rows] @ steps, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(block.c, single.c, rtol=1e-12, atol=1e-13)
    one = responses(X, signs, kernel)
    assert one.square_of(rows, steps) == pytest.approx(steps @ K[np.ix_(rows, rows)] @ steps, rel=1e-10)
    assert one.square_of(rows[:1], steps[:1]) == pytest.approx(steps[0] ** 2 * abs(K[rows[0], rows[0]]), rel=1e-12)
