"""The model of what a pass on a cluster takes: arithmetic that can be done by hand, and where it says that scaling ends."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from kit.contracts.runner import make_store

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.cost import (
    LOOKS,
    RANGES_FROM,
    Assumed,
    Work,
    by_ranges,
    describe,
    pass_cost,
    scales_to,
)
from streamcut.io.dataset import shard_bytes
from streamcut.reports.costs import cluster_work
from streamcut.training import Session

WORK = Work(10**12, 2 * 10**12, 10**9, 1024, 10**7, 1, 20, 16)
FAR = Assumed(line=1e9, store=1e8, rows=1e9, adding=1e9, task=0.001)


def test_a_pass_by_hand():
    alone = pass_cost(WORK, FAR)
    assert (alone.reading, alone.computing, alone.copying) == (10_000.0, 2000.0, 0.0)
    assert alone.merging == pytest.approx(1024 * 8e7 * 2e-9)
    assert (alone.tasks, alone.rows) == (pytest.approx(1.024 + LOOKS * 0.001), LOOKS * 16.0)
    assert alone.seconds == pytest.approx(10_000 + 0.08 + alone.merging + alone.tasks + alone.rows + 26 * 0.08)
    many = pass_cost(WORK, replace(FAR, workers=64, threads=2))
    assert (many.reading, many.computing, many.rows) == (10_000 / 64, 2000 / 128, LOOKS / 8)
    assert many.sending == pytest.approx(7 * 0.08)
    assert many.merging == pytest.approx(16 * 2 * 0.08 + 0.08)
    assert many.tasks == pytest.approx(1.024 + LOOKS * 0.064)
    assert many.copying == pytest.approx(16 / 64)
    assert pass_cost(replace(WORK, lanes=3), replace(FAR, workers=2)).computing == pytest.approx(2000 * 2 / 3)
    assert pass_cost(replace(WORK, lanes=3), replace(FAR, workers=9)).computing == pytest.approx(2000 / 3)


def test_a_sweep_computes_sends_and_merges():
    work = replace(WORK, cached=10**11, sweeps=5)
    cost = pass_cost(work, replace(FAR, workers=64))
    assert cost.sweep == pytest.approx(1e11 / 64e9 + cost.sending + cost.merging + 1.024)
    assert cost.iteration == cost.seconds + 5 * cost.sweep


def test_small_sums_are_added_by_the_client():
    assert not by_ranges(RANGES_FROM - 1, 4)
    assert by_ranges(RANGES_FROM, 4)
    assert not by_ranges(RANGES_FROM, 3)


def test_where_it_stops_scaling():
    assert scales_to(replace(WORK, lanes=16), FAR) == (16, "there are 16 lanes; --lanes gives more")
    workers, why = scales_to(replace(WORK, lanes=1 << 14), FAR)
    assert workers < 1 << 14
    assert why == "tasks"
    costs = [pass_cost(replace(WORK, lanes=1 << 14), replace(FAR, workers=count)).seconds for count in (workers, 2 * workers)]
    assert costs[0] < 1.25 * costs[1]
    assert scales_to(replace(WORK, lanes=1 << 14), replace(FAR, task=1e-6))[1] == "master"


def test_what_is_assumed_in_words():
    assumed = Assumed.parse("workers=64, threads=8,line=10Gbit,store=500MB/s,task=0.01")
    assert assumed == Assumed(64, 8, 1.25e9, 5e8, task=0.01)
    for wrong in ("workers", "workers=0", "workers=2.5", "lanes=3", "line=fast", "line=0MB", "task=1s", "store=-1GB", ""):
        with pytest.raises(UsageError, match=r"assume: .*write for example|assume: .*is not a whole number"):
            Assumed.parse(wrong)


def test_the_command_line_needs_no_cluster(tmp_path):
    store = make_store(tmp_path / "rows.zarr")
    start = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()", "train", store.path, "--dry-run"]
    asked = ["--scheduler", "tcp://nowhere:1", "--solver", "ocas", "--lanes", "4", "--assume", "workers=2", "--json"]
    told = json.loads(subprocess.run([*start, *asked], capture_output=True, text=True, check=True, timeout=60).stdout)
    work = Work(told_bytes(store), sum_decoded(store), 3000, 4, 41, 1, 20, 24)
    assert told["event"] == "cost"
    assert told["tasks"] == dict(describe(work, Assumed(workers=2)))["tasks"] == "0.04 s"
    assert told["computing"] == dict(describe(work, Assumed(workers=2)))["computing"]
    assert told["scales to"].startswith("1 workers")


def test_what_a_training_would_do(tmp_path):
    """Cuts and codes, and sums of a running w and two cuts."""
    options = {"solver": "bundle-dca", "lanes": 4, "max_passes": 2, "memory": "4GB"}
    store = make_store(tmp_path / "rows.zarr")
    run = Session(store, TrainOptions(**options), scheduler=None)
    work = cluster_work(run)
    assert (work.cuts, work.sums, work.sweeps, work.lanes) == (16, 3, TrainOptions().sweeps, 4)


def told_bytes(store):
    return sum(array.stored_bytes for shard in store.manifest.shards for array in shard.arrays.values())


def sum_decoded(store):
    return sum(shard_bytes(store.manifest, shard) for shard in store.manifest.shards)
