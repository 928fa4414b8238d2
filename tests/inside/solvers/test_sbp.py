"""The stochastic batch perceptron: against Algorithm 1 on a dense matrix, and against SMO."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.sbp import problem
from reference import sbp as reference
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


def test_without_slack_a_separable_problem_is_separated():
    generator = np.random.default_rng(4)
    X = generator.normal(size=(80, 2))
    X = sp.csr_array(X[np.abs(X[:, 0]) > 0.3])
    signs = np.sign(X.toarray()[:, 0])
    solver = trained(X, signs, 2000, nu=1e-9)
    assert np.all(solver.responses.c_sum > 0)
