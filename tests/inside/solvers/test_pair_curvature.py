"""The curvature of pairs against the list of all pairs, and what its points save."""

import numpy as np
import pytest
from kit.ranking import problem
from reference import pairs as slow

import streamcut
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.losses.pairs import Pairs, PairsOfLevels
from streamcut.oracles.pair_curvature import CurvedPairsOracle


def curvature_of(X, y, qid, scores, width):
    """(Σ over near pairs of (x_i − x_j)(x_i − x_j)ᵀ/(2·width), the weights of each row's pairs as the upper, the lower one)."""
    found, up, down = np.zeros((X.shape[1], X.shape[1])), np.zeros(len(y)), np.zeros(len(y))
    for i, j in slow.all_pairs(y, qid):
        if abs(scores[i] - scores[j] - 1.0) < width:
            between = X[i] - X[j]
            found += np.outer(between, between) / (2.0 * width)
            up[i] += 1.0 / (2.0 * width)
            down[j] += 1.0 / (2.0 * width)
    return found, up, down


@pytest.mark.parametrize("seed", range(4))
def test_near_pairs_are_those_of_a_list(seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, 3, 60).astype(float), np.sort(rng.integers(0, 6, 60))
    scores, starts, codes = (
        np.round(rng.normal(size=60), 1 + seed % 2),
        np.searchsorted(qid, np.append(np.unique(qid), 6)),
        np.empty(60, np.int32),
    )
    Pairs().encode(y, starts, codes)
    up, down = np.empty(60, np.float32), np.empty(60, np.float32)
    Pairs().near(codes, starts, np.ones(len(starts) - 1), scores, up, down)
    _, ups, downs = curvature_of(np.zeros((60, 1)), y, qid, scores, 1.0)
    np.testing.assert_allclose(up, ups, atol=1e-6)
    np.testing.assert_allclose(down, downs, atol=1e-6)


@pytest.mark.parametrize("queries", [None, 30])
def test_the_curvature_is_nearly_that_of_a_list_of_pairs(queries):
    X, y, qid = problem(300, 4, queries=queries)
    X = X.toarray()
    risk = Pairs() if queries else PairsOfLevels(tuple(np.unique(y)))
    data = streamcut.rows(X, y, qid=qid)
    with Runner(Feed(data), plan_lanes(data.manifest.statistics, 2)) as runner:
        oracle = CurvedPairsOracle(runner, risk, C=1.0, bias=0.0, keep_best=True)
        oracle.start()
        w = np.linalg.norm(X, axis=1).mean() ** -1 * np.ones(X.shape[1])
        oracle.score(w)
        oracle.at(1.0)
        oracle.step(1.0, w)
        oracle.cut_at_best()
        H = np.tril(oracle.curvature) + np.tril(oracle.curvature, -1).T
    expected = curvature_of(X, y, qid, X @ w, 1.0)[0] * len(y) / len(slow.all_pairs(y, qid))
    assert np.linalg.eigvalsh(H).min() >= -1e-6 * np.linalg.norm(H)
    assert np.linalg.norm(H - expected) <= 0.35 * np.linalg.norm(expected)
