"""A worker that lives and cannot be reached: its network is cut, one way or both, and mended again."""

from __future__ import annotations

import subprocess
import sys

import kit.shared.dask_partitioned
import pytest
from kit.dask_owned import FEW

import streamcut
from streamcut.execution.dask.cluster import patience
from streamcut.foundation.machine import available_cpus

dataset = kit.shared.dask_partitioned.dataset


def test_busy_machines_have_more_time(monkeypatch):
    def limit(turns, load, *, local):
        monkeypatch.setattr("os.getloadavg", lambda: (load * available_cpus(), 0.0, 0.0))
        return patience(10.0, [{"metrics": {"event_loop_interval": turn}} for turn in turns], local=local)

    assert limit([0.02, 0.021, 0.03], 0.5, local=True) == 10.0
    assert limit([0.02, 0.02, 0.02], 3.0, local=False) == 10.0, "the load is that of another machine"
    assert limit([0.02, 0.02, 0.02], 3.0, local=True) == pytest.approx(30.0)
    assert limit([0.02, 9.0, 0.02], 0.0, local=False) == 10.0, "one worker alone is late: it is the one that is ill"
    assert limit([0.1, 0.1, 0.02], 0.0, local=False) == pytest.approx(25.0)
    assert limit([9.0, 9.0], 40.0, local=True) == 50.0
    assert patience(10.0, [], local=False) == patience(10.0, [{}], local=False) == 10.0


@pytest.mark.long
def test_busy_processes_beside_a_cluster_cost_no_worker(dataset, tmp_path, caplog):
    """Eight of them for each processor, while workers start and train."""
    here = streamcut.train(dataset, **FEW)
    busy = [subprocess.Popen([sys.executable, "-P", "-c", "while True: pass"]) for _ in range(8 * available_cpus())]
    try:
        model = streamcut.train(
            dataset, scheduler="local-cluster", workers=2, scratch=str(tmp_path), silence=30.0, deadline=600.0, **FEW
        )
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert "silent" not in caplog.text
    assert model.weights.tobytes() == here.weights.tobytes()
