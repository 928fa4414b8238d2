"""A thread that reads and scores a batch ahead of its lane: the same bits, the same errors, no more memory than planned."""

import threading
from collections import Counter

import numpy as np
import pytest
from kit.streams import rows

import streamcut
from inside.kit.streams import SMALL
from streamcut.errors import CorruptError, MemoryBudgetError
from streamcut.execution import threads as execution
from streamcut.execution.feed import Feed, Streams
from streamcut.execution.lanes import Lanes
from streamcut.execution.passes import Blocks, Pass
from streamcut.execution.plan import MemoryPlan, Needs, Streamed
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.chunk import Chunk
from streamcut.io.stores.writer import StoreWriter
from streamcut.jobs import columns
from streamcut.oracles.columns_passes import AscentPass

STREAMS = Streams(3, 10, 1000, (0, 0))


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(columns, "ORDER", SMALL)


@pytest.fixture
def threads(monkeypatch):
    """Names of the threads that blocks were scored and visited in."""
    found = {"score": set(), "visit_chunk": set()}

    def spied(name):
        was = getattr(AscentPass, name)
        return lambda *args: (found[name].add(threading.current_thread().name), was(*args))[1]

    for name in found:
        monkeypatch.setattr(AscentPass, name, spied(name))
    return found


@pytest.mark.thirds
@pytest.mark.parametrize("row_cache", ["0", "30%"])
@pytest.mark.parametrize(("loss", "bias"), [("hinge", 1.0), ("logistic", 0.0)])
def test_two_threads_have_the_bits_of_one(small_batches, threads, tmp_path, loss, bias, row_cache):
    X, y = rows()
    with StoreWriter(tmp_path / "rows.zarr", shard_nnz=700, n_features=X.shape[1], options={}) as writer:
        writer.append(Chunk(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, y), {})
        writer.finish({})
    asked = {"solver": "bundle-dca", "loss": loss, "bias": bias, "row_cache": row_cache, "lanes": 1, "max_passes": 6}
    models = []
    for workers in (1, 2):
        for names in threads.values():
            names.clear()
        models.append(streamcut.train(streamcut.open(tmp_path / "rows.zarr"), workers=workers, **asked))
        assert len(threads["score"]) == workers - 1, "one worker does all of a block at once"
        assert len(threads["visit_chunk"]) == 1
        assert not threads["score"] & threads["visit_chunk"]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    measured = {"seconds", "cpu_seconds", "bytes_read"}
    first, second = ([{k: v for k, v in each.items() if k not in measured} for each in model.history] for model in models)
    assert first == second


class Sums(Pass):
    """Adds labels up, and notes what happened to each block."""

    blocks = Blocks(streams=STREAMS)
    interruptible = True

    def __init__(self, fails_at=None, bad_at=None, scored=None):
        self.fails_at, self.bad_at, self.events, self.scored = fails_at, bad_at, [], scored

    def begin(self, first_row):
        return [0.0]

    def divided(self):
        again = Sums(self.fails_at, self.bad_at, [])
        again.events = self.events
        return again, again

    def score(self, rows, chunk):
        number = sum(what == "score" for what, _ in self.events)
        if number == self.bad_at:
            raise CorruptError("bad row")
        self.events.append(("score", number))
        if self.scored is not None:
            self.scored.append(chunk.y.copy())
        rows["seen"] += 1.0
        return np.ones(chunk.n_rows, np.bool_)

    def visit_chunk(self, partial, rows, chunk):
        if self.scored is None:
            self.score(rows, chunk)
        number = sum(what == "visit" for what, _ in self.events)
        if self.scored is not None:
            np.testing.assert_array_equal(chunk.y, self.scored.pop(0))  # its memory has not been written to meanwhile
        np.testing.assert_array_equal(rows["seen"], 1.0)
        self.events.append(("visit", number))
        if number == self.fails_at:
            raise ArithmeticError("no")
        partial[0] += chunk.y.sum()
        rows["seen"] += 1.0

    def merge(self, total, part):
        return [total[0] + part[0]]


def running(ahead, *, lanes=(0, 200, 397), workers=2, **given):
    X, _ = rows(397, 6)
    data = streamcut.rows(X, np.arange(397.0), shard_nnz=100)
    runner = Runner(Feed(data), Lanes(lanes), workers, ahead=ahead, **given)
    runner.row_state.add("seen")
    return runner


@pytest.mark.parametrize("workers", [1, 2])
def test_every_row_is_scored_then_visited_and_written_back(workers):
    for ahead in (False, True):
        with running(ahead, workers=workers) as runner:
            for _ in range(2):
                total, report = runner.run(Sums())
                assert total == [396 * 397 / 2]
                assert report.traffic.rows == 397
                np.testing.assert_array_equal(runner.rows["seen"], 2.0)
                runner.rows["seen"][:] = 0.0


def test_no_more_than_one_block_is_ahead():
    for ahead in (False, True):
        work = Sums()
        with running(ahead, lanes=(0, 397), workers=1) as runner:
            runner.run(work)
        counts, most = Counter(), Counter()
        for what, number in work.events:
            assert number == counts[what]
            counts[what] += 1
            most["scored"] = max(most["scored"], counts["score"] - counts["visit"])
        assert counts["score"] == counts["visit"] > 3
        assert 1 <= most["scored"] <= 1 + ahead


@pytest.mark.parametrize(
    ("work", "error"),
    [(Sums(fails_at=2), ArithmeticError), (Sums(bad_at=0), CorruptError), (Sums(bad_at=3), CorruptError)],
)
def test_errors_of_either_thread_end_the_pass_and_the_next_one_runs(work, error):
    with running(True, lanes=(0, 397), workers=1) as runner:
        with pytest.raises(error):
            runner.run(work)
        count = len(work.events)
        runner.rows["seen"][:] = 0.0
        assert runner.run(Sums())[0] == [396 * 397 / 2]
        assert len(work.events) == count  # nobody goes on with the one that was given up


def test_a_stop_ends_both_threads():
    asked = iter([False, False, True])
    with running(True, lanes=(0, 397), workers=1, stop=lambda: next(asked, False)) as runner:
        work = Sums()
        with pytest.raises(Interrupted):
            runner.run(work)
        assert [number for what, number in work.events if what == "visit"] == [0, 1, 2]
        runner.rows["seen"][:] = 0.0
        assert runner.run(Sums())[0] == [396 * 397 / 2]


def test_a_block_that_is_not_copied_is_not_read_past(monkeypatch):
    monkeypatch.setattr(Feed, "mixed", lambda *_, **__: (block for block in blocks))
    X, _ = rows(30, 6)
    whole = streamcut.rows(X, np.arange(30.0)).read(0)
    blocks = [whole.rows(start, start + 10) for start in (0, 10, 20)]
    work = Sums()
    with running(True, lanes=(0, 30), workers=1) as runner:
        runner.run(work)
    order = [what for what, _ in work.events]
    assert order == ["score", "visit"] * 3


@pytest.mark.parametrize("spare", [False, True])
def test_processors_decide_whether_there_is_one_and_nothing_else(spare):
    """Memory for it is taken in any case: the same batches and row cache, and so the same bits, by any number of workers."""

    def plan(needs):
        lines = (("all", 2000), *needs.per_worker)
        if sum(size for _, size in lines) > 5000:
            raise MemoryBudgetError("too little")
        return MemoryPlan(5000, lines, frozenset(), 0, streamed=needs.streamed)

    mixing = Streamed(4, 3500, True, spare, 32), Streamed(4, 3000, True, spare, 16), Streamed(2, 2000, True, spare, 32)
    made = Needs(dimension=10, mixing=mixing).planned(plan)
    assert (made.streamed.streams, made.streamed.batch, made.streamed.ahead) == (4, 16, spare)


def test_no_thread_for_one_is_an_error_of_memory(monkeypatch):
    class Refusing(execution.ThreadPoolExecutor):
        def submit(self, *args, **kwargs):
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(execution, "ThreadPoolExecutor", Refusing)
    with pytest.raises(MemoryError, match="1 threads cannot be started"):
        running(True, lanes=(0, 397), workers=1)
