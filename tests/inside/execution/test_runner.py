"""The runners of this process: one thread, several, and row state in scratch files."""

import signal
import threading
from concurrent.futures import Future

import pytest
from kit.contracts.runner import make_store

from inside.kit.contracts.runner import RunnerContract
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner
from streamcut.foundation.interrupts import result_of
from streamcut.io.manifest import Statistics

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("runner") / "rows.zarr")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("pinned", [(), (0, 2)])
@pytest.mark.parametrize("spilled", [False, True])
class TestRunner(RunnerContract):
    @pytest.fixture
    def make(self, workers, pinned, spilled, tmp_path):
        def make(dataset, lanes, **options):
            row_state = RowState(lanes.bounds[-1], tmp_path if spilled else None)
            return Runner(Feed(dataset, frozenset(pinned)), lanes, workers, row_state=row_state, **options)

        return make


def test_a_lane_says_which_shards_it_will_read(dataset, monkeypatch):
    seen = []
    real = dataset.read
    monkeypatch.setattr(dataset, "expect", lambda *shards: seen.append(("expects", *shards)))
    monkeypatch.setattr(dataset, "read", lambda shard, buffers=None: seen.append(("reads", shard)) or real(shard, buffers))
    rows = [shard.rows for shard in dataset.manifest.shards]
    feed = Feed(dataset, frozenset([2]))
    for _ in range(2):
        seen.clear()
        for _ in feed.blocks(0, sum(rows[:3]) + 1, feed.buffers(), Traffic()):
            pass
    # what is in memory is not expected, nor what lies behind the lane
    began, then = [("expects", 0, 1, 3), ("reads", 0), ("expects", 1, 3), ("reads", 1)], [("expects", 3)]
    assert seen == [*began, *then, *then, ("reads", 3), ("expects",)]


def test_a_signal_that_another_thread_gets_is_handled_during_a_wait():
    answer: Future[str] = Future()
    late = threading.Timer(30.0, answer.set_result, ["at the end of the wait"])
    other = threading.Timer(0.1, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, lambda *_: late.cancel() or answer.set_result("at once"))
    try:
        late.start()
        other.start()
        assert result_of(answer) == "at once"
    finally:
        late.cancel()
        signal.signal(signal.SIGUSR1, before)


LANES = [(1, 10, 2), (3, 10, 4), (40, 10, 16), (40, 1_000_000, 8), (40, 6_000_000, 1)]


@pytest.mark.parametrize(("millions", "features", "lanes"), LANES)
def test_there_are_as_many_lanes_as_their_dense_sums_pay_for(millions, features, lanes):
    """At least 2¹⁹ entries each, and four for every feature."""
    given = Statistics(n_rows=100_000, n_features=features, nnz=millions << 20)
    planned = plan_lanes(given)
    assert len(planned) == lanes
    assert planned.bounds[0] == 0
    assert planned.bounds[-1] == 100_000
    assert len(plan_lanes(given, 7)) == 7
    assert len(plan_lanes(Statistics(n_rows=3, n_features=1, nnz=3), 7)) == 3
