"""The runners of this process: one thread, several, and row state in scratch files."""

import hashlib
import signal
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from kit.many_shards import FEATURES, ROWS, make_store

from streamcut.errors import CorruptError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Interrupted, Runner
from streamcut.foundation.interrupts import result_of
from streamcut.foundation.rounding import Grids
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.row_passes import First, ScorePass, SlopesPass, StepPass

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


@dataclass(frozen=True)
class Slow(OnRows):
    """A pass that somebody may stop."""

    interruptible: ClassVar[bool] = True

    def visit_chunk(self, partial, rows, chunk):
        rows["z"][:] = 77.0


def score(w, dataset, *, first=False, **options):
    weight = dataset.manifest.statistics.weight_sum
    grids = Grids.holding(dataset.manifest.statistics.max_abs_value * weight, weight)
    return ScorePass(PointwiseRisk(Hinge(1.0)), grids, w, 1.0, first=First(grids) if first else None, **options)


def history(runner, dataset):
    """Digests of the sums and the row state of passes as OCAS makes them."""
    rng = np.random.default_rng(1)
    for name in ("z", "z_b", "u"):
        runner.row_state.add(name)
    digests = []
    first = score(np.zeros(FEATURES + 1), dataset, at_w=True, first=True)
    passes = [first, *(score(rng.standard_normal(FEATURES + 1), dataset, kappa=0.3) for _ in range(2))]
    for work in passes:
        sums, report = runner.run(work)
        assert report.traffic.rows == ROWS
        seen = [sums.a, sums.b, sums.loss, *runner.run(SlopesPass(np.linspace(0.0, 1.0, 50), Hinge()))[0]]
        seen += [] if sums.totals is None else [sums.totals.weight, sums.totals.magnitudes]
        seen += [runner.run(StepPass(0.4, Hinge()))[0], *(runner.rows[name] for name in ("z", "z_b", "u"))]
        digests.append([hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest() for value in seen])
    return digests


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

    @pytest.mark.parametrize("lanes", [1, 5])
    def test_sums_and_row_state_are_those_of_one_thread(self, make, dataset, lanes):
        planned = plan_lanes(dataset.manifest.statistics, lanes)
        with Runner(Feed(dataset), planned) as alone:
            expected = history(alone, dataset)
        with make(dataset, planned) as runner:
            assert history(runner, dataset) == expected

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

    def test_an_array_that_is_added_again_is_zeros(self, make, dataset):
        with make(dataset, plan_lanes(dataset.manifest.statistics, 5)) as runner:
            runner.row_state.add("z")
            runner.run(Slow())
            assert (runner.rows["z"] == 77.0).all()
            runner.row_state.add("z", np.int32, (2,))
            runner.run(Order())
            assert runner.rows["z"].dtype == np.int32
            np.testing.assert_array_equal(runner.rows["z"], np.zeros((ROWS, 2)))
            runner.run(Slow())
            assert (runner.rows["z"] == 77).all()

    def test_an_error_ends_the_pass_and_the_runner_goes_on(self, make, dataset):
        with make(dataset, plan_lanes(dataset.manifest.statistics, 5)) as runner:
            runner.row_state.add("z")
            with pytest.raises(CorruptError, match="row 1500: bad"):
                runner.run(Fails(1500))
            assert runner.run(Order())[1].traffic.rows == ROWS

    def test_a_pass_that_is_broken_off_can_be_repeated(self, make, dataset):
        asked = [False]
        planned = plan_lanes(dataset.manifest.statistics, 5)
        w = np.linspace(-1, 1, FEATURES + 1)
        with make(dataset, planned, stop=lambda: asked[0]) as runner:
            for name in ("z", "z_b", "u"):
                runner.row_state.add(name)
            runner.run(score(w, dataset, at_w=True, first=True))
            before = runner.run(score(w, dataset, kappa=0.5))[0].a
            asked[0] = True
            with pytest.raises(Interrupted):
                runner.run(Slow())
            asked[0] = False
            np.testing.assert_array_equal(runner.run(score(w, dataset, kappa=0.5))[0].a, before)


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
