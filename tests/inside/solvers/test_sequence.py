"""Sequence labelling: Viterbi against trying every labelling, and its cuts."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.sequence import sequences
from reference import viterbi as slow
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut import predict, train
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.runner import Runner
from streamcut.jobs.sequence import chain
from streamcut.losses.sequence import SequenceRisk
from streamcut.oracles.sequence import SequenceOracle
from streamcut.prediction import scored_chunks


def chains(K=3, longest=4):
    numbers = st.integers(-8, 8).map(lambda i: i / 4)  # ties happen, and sums are exact
    return st.integers(1, longest).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, K - 1), min_size=n, max_size=n),
            st.lists(numbers, min_size=2 * n * K + 2 * K * K, max_size=2 * n * K + 2 * K * K),
        )
    )


@settings(max_examples=60, deadline=None)
@given(first=chains(), second=chains(), k=st.sampled_from([0.0, 0.25, 1.0]))
def test_loss_augmented_paths_equal_those_found_by_trying_all(first, second, k):
    K, risk = 3, SequenceRisk((1.0, 2.0, 4.0))
    numbers = [np.array(x) for _, x in (first, second)]
    target = np.array(first[0] + second[0], np.int32)
    starts = np.array([0, len(first[0]), len(target)])
    z_b, z = (
        np.concatenate([x[i * n * K : (i + 1) * n * K] for x, n in zip(numbers, np.diff(starts), strict=True)]) for i in (0, 1)
    )
    z_b, z = z_b.reshape(-1, K), z.reshape(-1, K)
    T_b, T = numbers[0][-2 * K * K :].reshape(2, K, K)
    middle, transitions = z_b + k * (z - z_b), T_b + k * (T - T_b)
    path, excess = risk.worst(starts, target, z_b, z, k, transitions)
    values, slopes = risk.along_line(starts, target, z_b, z, k, transitions, T - T_b)
    best = risk.best(starts, middle, transitions)
    for s in range(2):
        rows = slice(starts[s], starts[s + 1])
        value, _ = slow.worst(target[rows], middle[rows], transitions)
        assert excess[s] == values[s] == value >= 0.0
        gained = slow.score(path[rows], middle[rows], transitions) - slow.score(target[rows], middle[rows], transitions)
        assert gained + np.count_nonzero(path[rows] != target[rows]) == value
        zeros = np.zeros(starts[s + 1] - starts[s], np.int32)
        highest = slow.worst(zeros, middle[rows], transitions, augment=0.0)[0]
        assert slow.score(best[rows], middle[rows], transitions) - slow.score(zeros, middle[rows], transitions) == highest
        # a subgradient: no other point of the line lies below its tangent
        for other in (0.0, 0.5, 2.0):
            there = slow.worst(target[rows], (z_b + other * (z - z_b))[rows], T_b + other * (T - T_b))[0]
            assert there >= value + slopes[s] * (other - k) - 1e-9


def test_cut_is_a_subgradient_of_the_risk():
    X, y, qid = sequences(12)
    dataset = streamcut.rows(X, y, qid=qid)
    risk = chain(dataset.manifest.statistics)
    runner = Runner(Feed(dataset, frozenset([0])), plan_lanes(dataset.manifest.statistics, 2))
    oracle = SequenceOracle(runner, risk, C=1.0, bias=0.0, keep_margins=False)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(qid)) + 1, [len(y)]))
    target, n = (y - 1).astype(int), len(y)
    rng = np.random.default_rng(1)
    oracle.start()
    w = rng.standard_normal(oracle.dimension)
    cut, loss = oracle.cut_at(w)
    value = lambda v: slow.primal(v, X.toarray(), target, starts, 1.0, 3) - 0.5 * v @ v  # noqa: E731
    assert loss == pytest.approx(value(w))
    assert n * (cut.a @ w + cut.b) == pytest.approx(loss)
    for v in rng.standard_normal((5, oracle.dimension)):
        assert value(v) >= n * (cut.a @ v + cut.b) - 1e-9


def test_groups_that_go_on_in_the_next_block_of_text_are_labelled_whole(tmp_path, monkeypatch):
    X, y, qid = sequences(300)
    model = train(streamcut.rows(X, y, qid=qid), task="sequence", max_passes=8)
    dump_svmlight_file(sp.csr_matrix(X), y, str(tmp_path / "t.svm"), query_id=qid, zero_based=False)
    monkeypatch.setattr("streamcut.prediction.SCORES_AT_ONCE", 30)
    chunks = [chunk for chunk, _ in scored_chunks(model, str(tmp_path / "t.svm"))]
    firsts = [int(chunk.qid[0]) for chunk in chunks]
    assert len(chunks) > 10
    assert len(set(firsts)) == len(firsts)
    assert np.array_equal(predict(model, str(tmp_path / "t.svm")), model.predict(X, qid=qid))
