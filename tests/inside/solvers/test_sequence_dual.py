"""Dual ascent on sequences: the cut of what they hold is one, and steps are those of the reference and never go down."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.sequence import sequences
from reference import viterbi as slow

import streamcut
from streamcut import train
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import group_starts
from streamcut.losses.sequence import SequenceRisk
from streamcut.oracles.dual.sequence import SequenceDualOracle

K = 3
RISK = SequenceRisk((1.0, 2.0, 3.0))


def set_up(X, y, qid, *, C, bias, lanes):
    data = streamcut.rows(X, y, qid=qid, shard_nnz=60)
    runner = Runner(Feed(data), plan_lanes(data.manifest.statistics, lanes))
    oracle = SequenceDualOracle(runner, RISK, C=C, bias=bias)
    oracle.start()
    return runner, oracle


def keys_of(oracle):
    """By which sequences are ordered in the next pass."""
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
            step = min(1.0, gain / (C * move @ move))
            w -= C * step * move
            mixtures[s] = psi + step * move, loss + step * (np.sum(path != target[a:b]) - loss)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), C=st.sampled_from([0.05, 1.0]), bias=st.sampled_from([0.0, 2.0]))
def test_one_lane_takes_the_steps_of_the_reference(seed, C, bias):
    X, y, qid = sequences(12, seed=seed)
    _, oracle = set_up(X, y, qid, C=C, bias=bias, lanes=1)
    dense = np.hstack([X.toarray(), np.full((len(y), 1), bias)]) if bias else X.toarray()
    starts, target = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(y)])), (y - 1).astype(int)
    w, mixtures = np.zeros(oracle.dimension), [(np.zeros(oracle.dimension), 0.0)] * (len(starts) - 1)
    for _ in range(4):
        reference_pass(dense, target, starts, np.argsort(keys_of(oracle)), C, mixtures, w)
        _, cut = oracle.score_and_ascend(np.zeros(oracle.dimension), 0.0)
        assert np.allclose(cut.a * len(y), sum(psi for psi, _ in mixtures), atol=1e-9)
        assert cut.b * len(y) == pytest.approx(sum(loss for _, loss in mixtures))


def slow_batches(bounds, size):
    """[the sequences of a batch, in stored order], of those that begin at rows `bounds`."""
    batches, last = [], None
    for s, (a, b) in enumerate(pairwise(bounds)):
        alone = a // size != (b - 1) // size
        if alone or last != a // size:
            batches.append([])
        batches[-1].append(s)
        last = None if alone else a // size
    return batches


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=30),
    size=st.integers(2, 12),
    shard_nnz=st.integers(1, 60),
    cut=st.integers(0, 200),
    block=st.sampled_from([1, 20, 1000]),
)
def test_blocks_hold_whole_batches_wherever_shards_end(lengths, size, shard_nnz, cut, block):
    bounds = np.append(0, np.cumsum(lengths))
    n = int(bounds[-1])
    data = streamcut.rows(
        np.arange(2.0, n + 2)[:, None], np.arange(n) % 2, qid=np.repeat(np.arange(len(lengths)), lengths), shard_nnz=shard_nnz
    )
    feed, cut = Feed(data), min(cut, n)
    for first, stop in ((0, cut), (cut, n)):
        here = bounds[np.searchsorted(bounds, first) :][: np.count_nonzero((bounds[:-1] >= first) & (bounds[:-1] < stop)) + 1]
        found, values = [], []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("streamcut.execution.feed.BLOCK_NNZ", block)
            for chunk in feed.groups(first, stop, feed.buffers(), Traffic(), alignment=size):
                ends = group_starts(chunk) + chunk.first_row
                found.extend(slow_batches(ends.tolist(), size) if len(ends) > 1 else [])
                values.append(chunk.data[chunk.indptr[0] : chunk.indptr[-1]].copy())
        batches = slow_batches(here.tolist(), size) if len(here) > 1 else []
        assert [len(batch) for batch in found] == [len(batch) for batch in batches]
        assert np.concatenate([*values, []]).tolist() == list(range(here[0] + 2, here[-1] + 2 if batches else 0))


@settings(max_examples=8, deadline=None)
@given(size=st.sampled_from([2, 5, 16, 1000]), shard_nnz=st.sampled_from([1, 30, 100]), lanes=st.sampled_from([1, 3]))
def test_bits_depend_on_neither_shards_nor_workers(size, shard_nnz, lanes):
    X, y, qid = sequences(60, seed=3)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamcut.oracles.dual.sequence.batch_rows", lambda statistics: size)
        for nnz, workers in ((1 << 20, 1), (shard_nnz, 1), (shard_nnz, 2)):
            data = streamcut.rows(X, y, qid=qid, shard_nnz=nnz)
            common = {"task": "sequence", "solver": "bundle-dca", "tol": None, "max_passes": 6}
            model = train(data, **common, lanes=lanes, workers=workers)
            found.append((model.weights, model.transitions, model.certificate.lower_bound))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


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
