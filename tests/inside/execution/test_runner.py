"""The runners of this process: one thread, several, and row state in scratch files."""

import signal
import threading
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
import pytest
from kit.many_shards import ROWS, make_store

from streamcut.errors import CorruptError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner
from streamcut.foundation.interrupts import result_of

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return make_store(tmp_path_factory.mktemp("runner") / "rows.zarr")


class OnRows(Pass):
    """Base of passes over rows with data, whose partial sums are lists."""

    def begin(self, first_row):
        return []

    def merge(self, total, part):
        return total + part


@dataclass(frozen=True)
class Order(OnRows):
    """Which rows came by, in which order; and whether each lane was told its own rows at the end."""

    def visit_chunk(self, partial, rows, chunk):
        partial.append((chunk.first_row, chunk.n_rows))

    def finish(self, partial, rows, first_row):
        partial.append(("end", first_row, len(rows["z"])))


@dataclass(frozen=True)
class Fails(OnRows):
    row: int

    def visit_chunk(self, partial, rows, chunk):
        if chunk.first_row <= self.row < chunk.first_row + chunk.n_rows:
            raise CorruptError(f"row {self.row}: bad")


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("pinned", [(), (0, 2)])
@pytest.mark.parametrize("spilled", [False, True])
class TestRunner:
    @pytest.fixture
    def make(self, workers, pinned, spilled, tmp_path):
        def make(dataset, lanes, **options):
            row_state = RowState(lanes.bounds[-1], tmp_path if spilled else None)
            return Runner(Feed(dataset, frozenset(pinned)), lanes, workers, row_state=row_state, **options)

        return make

    def test_lanes_see_their_rows_and_merge_in_order(self, make, dataset):
        lanes = Lanes((0, 1, 700, 1900, ROWS))
        with make(dataset, lanes) as runner:
            runner.row_state.add("z")
            seen, report = runner.run(Order())
        ends = [what for what in seen if what[0] == "end"]
        assert ends == [("end", start, stop - start) for start, stop in (lanes.rows(lane) for lane in range(4))]
        blocks = [what for what in seen if what[0] != "end"]
        assert [first for first, _ in blocks] == list(np.cumsum([0, *(n for _, n in blocks)])[:-1])
        assert sum(n for _, n in blocks) == ROWS == report.traffic.rows

    def test_an_error_ends_the_pass_and_the_runner_goes_on(self, make, dataset):
        with make(dataset, plan_lanes(dataset.manifest.statistics, 5)) as runner:
            runner.row_state.add("z")
            with pytest.raises(CorruptError, match="row 1500: bad"):
                runner.run(Fails(1500))
            assert runner.run(Order())[1].traffic.rows == ROWS


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
