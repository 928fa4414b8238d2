"""Batches of rows from several places of a lane: smooth losses by bundle-dca, where there is more than one batch."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.streams import rows

import streamcut
from inside.kit.streams import SMALL
from streamcut.config import TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.feed import Feed, Streams, Traffic
from streamcut.execution.plan import Machine, plan_memory
from streamcut.execution.runner import Runner
from streamcut.jobs import columns
from streamcut.jobs.columns import ColumnsJob
from streamcut.oracles.random_order import RandomOrder
from streamcut.solvers.progress import Progress, StoppingRule

RUN = {"solver": "bundle-dca", "loss": "logistic", "C": 0.5, "tol": 1e-4, "tol_relative": None, "lanes": 2}


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(columns, "ORDER", SMALL)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 60), st.integers(1, 9), st.integers(1, 5), st.integers(1, 60), st.data())
def test_blocks_have_every_row_once_whatever_the_shards(n, shard_nnz, piece, places, entries, data):
    X, _ = rows(n, 9, n)
    start = data.draw(st.integers(0, n - 1))
    stop = data.draw(st.integers(start + 1, n))
    streams = Streams(places, piece, entries, (data.draw(st.integers(0, 9)),))

    def blocks(shard_nnz):
        memory, traffic, read = streamcut.rows(X, np.arange(n), shard_nnz=shard_nnz), Traffic(), []
        feed, found = Feed(memory), []
        first, memory.read = memory.read, lambda shard, buffers=None: (read.append(shard), first(shard, buffers))[1]
        memory.expect = lambda *shards: announced.append((len(read), shards))
        announced = []
        for chunk in feed.mixed(start, stop, streams, [feed.buffers() for _ in range(places)], traffic):
            assert chunk.pieces is None or (len(chunk.pieces) > 1 and chunk.nnz <= entries)
            inside = slice(chunk.indptr[0], chunk.indptr[-1])
            values = np.ones(chunk.nnz) if chunk.data is None else chunk.data[inside]
            shape = (chunk.n_rows, 9)
            dense = sp.csr_array((values, chunk.indices[inside], chunk.indptr - chunk.indptr[0]), shape).toarray()
            np.testing.assert_array_equal(dense, X.toarray()[chunk.numbers])
            np.testing.assert_array_equal(chunk.y, chunk.numbers)
            found.append(chunk.numbers.tolist())
        assert traffic.rows == stop - start
        for count, shards in announced:  # in the order in which they are read
            assert read[count : count + len(shards)] == list(shards)
        return found

    found = blocks(shard_nnz)
    assert sorted(row for block in found for row in block) == list(range(start, stop))


def test_pieces_that_come_together_are_others_in_each_pass():
    partners = {}
    for number in range(12):
        found = Streams(4, 10, 1000, (number, 0)).ranges(0, 400)
        assert sorted(row for ranges in found for start, stop in ranges for row in range(start, stop)) == list(range(400))
        starts = [ranges[0][0] for ranges in found]
        partners.setdefault(starts[0] - starts[1], number)
    assert len(partners) > 4


def test_row_59_rows_sorted_by_label_converge_under_the_tightest_memory(monkeypatch):
    """Batches shrink with the memory, and still come from four places."""
    monkeypatch.setattr(columns, "ORDER", RandomOrder(nnz=1 << 11, batch=32))
    X, y = rows(12_000, 40)
    passes = {}
    for name, order in (("shuffled", np.random.default_rng(1).permutation(len(y))), ("sorted", np.argsort(y, kind="stable"))):
        data = streamcut.rows(X[order], y[order])
        manifest = data.manifest
        job = ColumnsJob.planned(TrainOptions(C=10.0, row_cache="0", scheduler="sync", tol_relative=None), manifest)
        needs = job.needs(manifest)
        with pytest.raises(MemoryBudgetError) as refused:
            plan_memory(needs, manifest, Machine(1, 0, 1, in_memory=True))
        smallest = min(choice.per_worker for choice in needs.mixing if choice.streams == 4)
        budget = refused.value.least + smallest
        plan = needs.planned(lambda each: plan_memory(each, manifest, Machine(budget, 0, 1, in_memory=True)))  # noqa: B023
        assert plan.streamed.streams == 4
        assert plan.streamed.batch < needs.mixing[0].batch
        with Runner(Feed(data, plan.pinned), job.lanes) as runner:
            model = job.solve(runner, Progress(StoppingRule(1e-3, None, max_passes=200)), plan)
        assert model.certificate.converged
        passes[name] = model.history[-1]["passes"]
    assert passes["sorted"] <= 2 * passes["shuffled"], passes


def test_rows_of_a_batch_come_in_runs_and_none_twice():
    statistics = streamcut.rows(*rows(20_000)).manifest.statistics
    large = RandomOrder(nnz=800, batch=8)
    near, order = large.group_rows(statistics), large.drawn(statistics, 3, 7)
    assert sorted(order) == list(range(large.batch_rows(statistics)))
    assert large.drawn(statistics, 4, 7).tolist() != order.tolist()
    for start in range(0, len(order), near):
        fetched = np.sort(order[start : start + near])
        assert near // 32 <= np.count_nonzero(np.diff(fetched) > 1) <= near // 16 + 2, "from all over the batch"


def test_fewer_passes_than_batches_one_after_the_other(small_batches, monkeypatch):
    X, y = rows(6000)
    asked = {**RUN, "lanes": 1, "row_cache": "0", "tol": 1e-6, "C": 0.05}
    mixed = streamcut.train(streamcut.rows(X, y), **asked)
    monkeypatch.setattr(RandomOrder, "has_streams", lambda *_: False)
    assert mixed.history[-1]["passes"] < streamcut.train(streamcut.rows(X, y), **asked).history[-1]["passes"]
