"""One-vs-rest: every class has the certificate that its own training would have, whatever runs beside it."""

import pickle

import numpy as np
import pytest
from kit.columns import REST, problem

import streamcut
from streamcut.config import TrainOptions
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Runner
from streamcut.jobs.columns import ColumnsJob
from streamcut.jobs.multiclass import MulticlassJob
from streamcut.solvers.progress import Progress, StoppingRule


class _Sent(Runner):
    """Runs every pass, and merges every partial sum, as it comes out of a pickle: what happens on a cluster."""

    def run(self, work):
        total, report = super().run(pickle.loads(pickle.dumps(work)))
        return pickle.loads(pickle.dumps(total)), report


@pytest.mark.parametrize("options", [REST, {"task": "multiclass"}], ids=["rest", "crammer-singer"])
def test_passes_travel_to_other_processes_and_rows_to_scratch_files(options, tmp_path):
    X, y, _ = problem()
    data = streamcut.rows(X, y)
    chosen = TrainOptions(**options, max_passes=8)
    job = (ColumnsJob if "strategy" in options else MulticlassJob).planned(chosen, data.manifest)
    models = []
    for kind, row_state in ((Runner, None), (_Sent, RowState(len(y), tmp_path))):
        with kind(Feed(data, frozenset([0])), plan_lanes(data.manifest.statistics, 2), row_state=row_state) as runner:
            models.append(job.solve(runner, Progress(StoppingRule(max_passes=8)), MemoryPlan(0, (), frozenset([0]), 0)))
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
