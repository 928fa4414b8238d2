"""Dual ascent on sequences: the cut of what they hold is one, and steps are those of the reference and never go down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.sequence import sequences
from reference import viterbi as slow

import streamcut
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.losses.sequence import SequenceRisk
from streamcut.oracles.sequence_dual import SequenceDualOracle

K = 3
RISK = SequenceRisk((1.0, 2.0, 3.0))


def set_up(X, y, qid, *, C, bias, lanes, shard_nnz=60):
    data = streamcut.rows(X, y, qid=qid, shard_nnz=shard_nnz)
    runner = Runner(Feed(data), plan_lanes(data.manifest.statistics, lanes))
    oracle = SequenceDualOracle(runner, RISK, C=C, bias=bias)
    oracle.start()
    return runner, oracle


def keys_of(oracle):
    """By which sequences of a shard are ordered in the next pass."""
    return np.random.default_rng(oracle.passes).permutation(oracle._sequences)


def worst(w, X, target, starts):
    """(the worst labelling of every row, ℓ of every sequence) at w; that Viterbi is right is shown in test_sequence."""
    z = np.ascontiguousarray(X @ w[: X.shape[1] * K].reshape(-1, K))
    return RISK.worst(starts, target.astype(np.int32), z, z, 0.0, np.ascontiguousarray(w[X.shape[1] * K :].reshape(K, K)))


def reference_pass(X, target, starts, order, C, mixtures, w):
    """One Frank-Wolfe step for each sequence; `mixtures` are (joint features less the targets', wrong rows), changed in place."""
    for s in order:
        a, b = starts[s], starts[s + 1]
        path, value = worst(w, X[a:b], target[a:b], np.array([0, b - a]))
        psi, loss = mixtures[s]
        corner = slow.joint_features(X[a:b], path, K) - slow.joint_features(X[a:b], target[a:b], K)
        gain, move = value[0] - (loss + psi @ w), corner - psi
        if gain > 1e-12:
            curvature = C * move @ move
            step = 1.0 if curvature <= gain else gain / curvature
            w -= C * step * move
            mixtures[s] = psi + step * move, loss + step * (np.sum(path != target[a:b]) - loss)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), C=st.sampled_from([0.05, 1.0]), bias=st.sampled_from([0.0, 2.0]))
def test_one_lane_takes_the_steps_of_the_reference(seed, C, bias):
    X, y, qid = sequences(12, seed=seed)
    _, oracle = set_up(X, y, qid, C=C, bias=bias, lanes=1, shard_nnz=1 << 20)
    dense = np.hstack([X.toarray(), np.full((len(y), 1), bias)]) if bias else X.toarray()
    starts, target = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(y)])), (y - 1).astype(int)
    w, mixtures = np.zeros(oracle.dimension), [(np.zeros(oracle.dimension), 0.0)] * (len(starts) - 1)
    for _ in range(4):
        reference_pass(dense, target, starts, np.argsort(keys_of(oracle)), C, mixtures, w)
        _, cut = oracle.score_and_ascend(np.zeros(oracle.dimension), 0.0)
        assert np.allclose(cut.a * len(y), sum(psi for psi, _ in mixtures), atol=1e-9)
        assert cut.b * len(y) == pytest.approx(sum(loss for _, loss in mixtures))


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_steps_never_lower_the_dual_objective_and_their_cuts_bound_the_risk(lanes):
    X, y, qid = sequences(60)
    _, oracle = set_up(X, y, qid, C=0.5, bias=0.0, lanes=lanes)
    starts, target = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(y)])), (y - 1).astype(int)
    rng, dual = np.random.default_rng(2), 0.0
    for _ in range(6):
        _, cut = oracle.score_and_ascend(rng.standard_normal(oracle.dimension), 0.3)
        before, dual = dual, oracle.c_bar * cut.b - 0.5 * oracle.c_bar**2 * cut.a @ cut.a
        assert dual >= before - 1e-9
        for v in (*rng.standard_normal((4, oracle.dimension)), -oracle.c_bar * cut.a):
            assert worst(v, X.toarray(), target, starts)[1].sum() >= len(y) * (cut.a @ v + cut.b) - 1e-9
    assert dual > 0.0


def test_shares_are_those_of_a_distribution():
    X, y, qid = sequences(60)
    runner, oracle = set_up(X, y, qid, C=0.5, bias=1.0, lanes=2)
    for _ in range(20):
        oracle.score_and_ascend(np.zeros(oracle.dimension), 0.0)
    shares = runner.rows["shares"] + np.eye(K)[(y - 1).astype(int)]
    assert np.allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    assert shares.min() > -1e-12
    assert np.count_nonzero(np.abs(runner.rows["shares"]).sum(axis=1) > 1e-3) > 10
