"""Sampled cuts: exact when the sample is everything, close when it is not, and the same bits whoever computes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from kit.shared.sampled_cuts import SOLVERS, coefficients_of, rings
from reference import sampled as slow
from reference.kernels import matrix

import streamcut
from streamcut import train
from streamcut.compiled import splitmix
from streamcut.foundation.chunk import Chunk
from streamcut.kernels import vectors
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.oracles.kernel_columns import take
from streamcut.papers.gram_bundle import GramBundle
from streamcut.papers.sampled_passes import Expansion


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


def test_sparse_rows_score_like_dense_ones():
    rng = np.random.default_rng(5)
    X = sp.random_array((40, 30), density=0.2, format="csr", rng=rng)
    chunk = streamcut.rows(X, np.ones(40)).read(0)
    rows = np.array([3, 7, 7, 20, 39])
    columns, factors = rng.integers(0, 3, (5, 2)).astype(np.int32), rng.standard_normal((5, 2))
    some, kernel = take(chunk, rows), Kernel("rbf", 0.3)
    expansion = Expansion(rows, some, columns, factors, np.array([1.0, 2.0, 3.0]), np.zeros(0), rows, np.ones(5))
    C = np.zeros((5, 3))
    np.add.at(C, (np.arange(5)[:, None], columns), factors)
    want = matrix(kernel, X, X[rows]) @ C + [1.0, 2.0, 3.0]
    assert np.allclose(expansion.scores(Vectors(kernel, some, 30), chunk), want, rtol=1e-12)
    assert np.allclose(expansion.scores_of(Vectors(kernel, chunk, 30), 40), want, rtol=1e-12)


def test_keys_are_spread_evenly():
    out = np.empty(100_000, np.uint64)
    splitmix.keys(np.arange(100_000), 7, out)
    shares = np.bincount((out >> np.uint64(60)).astype(int), minlength=16) / len(out)
    assert np.all(np.abs(shares - 1 / 16) < 0.005)
    assert len(np.unique(out)) == len(out)


def test_a_bundle_follows_a_best_point_and_keeps_its_cuts():
    rng = np.random.default_rng(0)
    bundle, w_b, steps = GramBundle(2.0, 60), np.zeros(6), np.array([0.0, 0.3, 1.0])
    slopes = np.zeros((60, 6))  # by slot
    for t in range(40):
        slot = bundle.make_room()
        slopes[slot] = rng.standard_normal(6)
        bundle.add(slot, 1.0 + 0.1 * t, slopes[bundle.slots] @ slopes[slot], slopes[slot] @ slopes[slot])
        bundle.solve(1e-9)
        live, w = slopes[bundle.slots], -bundle.mixture @ slopes[bundle.slots]
        assert np.allclose(-bundle.best @ live, w_b, atol=1e-3)
        assert np.allclose(bundle.squares(steps), [np.sum((w_b + k * (w - w_b)) ** 2) for k in steps], rtol=1e-3)
        if t < 4:
            bundle.move_best(0.3)
            w_b = w_b + 0.3 * (w - w_b)
    assert len(bundle) > np.count_nonzero(bundle.mixture)  # cuts that the master problem has done without for long
    bundle.move_best(1.0)
    bundle.solve(1e-9)
    assert len(bundle) < 40
    assert np.allclose(bundle.best, bundle.mixture)


@pytest.mark.parametrize("code", [Kernel("rbf", 0.3), Kernel("linear"), Kernel("poly", 0.5, 2, 1.0)], ids=lambda k: k.name)
@pytest.mark.parametrize("kept", [True, False])
def test_vectors_of_many_features_have_those_that_occur(code, kept):
    """To the last bit what dense ones give, whatever the tiles, in the memory that the rows' own features take."""
    rng, wide = np.random.default_rng(0), vectors.WIDE + 1

    def rows(n: int) -> Chunk:
        X = sp.random_array((n, 40), density=0.2, format="csr", rng=rng)
        X.sort_indices()
        return Chunk(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, np.zeros(n))

    def spread(chunk: Chunk) -> Chunk:
        return replace(chunk, indices=(chunk.indices * 1500 + 7).astype(np.int32))

    some, others, factors = rows(30), rows(50), rng.standard_normal(30)
    part = others.rows(13, 41)  # of larger arrays
    for tile in (8 << 20, 100):
        dense = Vectors(code, some, 40, tile=tile if tile > 100 else 8 * 40, kept=kept)
        found = Vectors(code, spread(some), wide, tile=tile, kept=kept)
        out = np.zeros((2, part.n_rows))
        dense.add_sums(part, factors, out[0])
        found.add_sums(spread(part), factors, out[1])
        np.testing.assert_allclose(out[0], out[1], rtol=1e-13)
        values = np.zeros((2, part.n_rows, 30))
        for k, (these, chunk) in enumerate(((dense, part), (found, spread(part)))):
            for i, j, block in these.values(chunk):
                values[k, i : i + len(block), j : j + block.shape[1]] = block
        np.testing.assert_array_equal(values[0], values[1])
    assert sum(tile.V.nbytes for tile in found._made()) < 8 * 30 * 41
