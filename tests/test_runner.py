"""The runners of this process: one thread, several, and row state in scratch files."""

import pytest
from contracts.runner import RunnerContract, make_store

from streamcut.execution.feed import Feed
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner


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
