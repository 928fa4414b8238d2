"""Row caches on Dask: the bits of threads, whoever dies and wherever a cache has to come about again."""

from __future__ import annotations

import json
import re

import kit.shared.dask_cache
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.clusters import same, train
from kit.shared.dask_cache import FEW, TASKS, on_cluster, rows

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import ExitCode, MemoryBudgetError
from streamcut.execution.cache_passes import RecallPass
from streamcut.execution.dask import runner as dask_runner
from streamcut.execution.dask import worker as dask_worker
from streamcut.execution.dask.cache_slots import Slots
from streamcut.execution.dask.plan import ClusterNeeds, WorkerProcess, remote, shares
from streamcut.execution.dask.ranges import put_back
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes
from streamcut.execution.plan import Needs
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.machine import memory_limit
from streamcut.jobs.columns import ColumnsJob
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.losses.hinge import Hinge
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.dual.ascent import DualOracle
from streamcut.oracles.dual.classes import ClassesCache, MulticlassDualOracle, row_bytes
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.oracles.dual.passes import Ascent

stores = kit.shared.dask_cache.stores
on_threads = kit.shared.dask_cache.on_threads
client = kit.shared.dask_cache.client


def test_groups_of_classes_have_the_bits_of_threads(client, stores, tmp_path, monkeypatch):
    """The second group is smaller than the first: its caches are others."""
    whole, options = ColumnsJob.in_groups, {**TASKS["rest"], "lanes": 2}
    monkeypatch.setattr(ColumnsJob, "in_groups", lambda job: (each for each in whole(job) if each.at_once == 2))
    model = on_cluster(client, stores["rest"], tmp_path, **options)
    save_model(streamcut.train(stores["rest"], workers=2, **options, **FEW), tmp_path / "here.npz")
    assert same(tmp_path / "m.npz", tmp_path / "here.npz")
    assert {line["classes"] for line in model.history} == {"1–2 of 3", "3 of 3"}


@pytest.mark.parametrize(
    ("task", "lanes"), [("binary", 5), pytest.param("few rows", 6, marks=pytest.mark.long), ("rest, squared", 5)]
)
def test_sums_that_workers_add_up_have_the_bits_of_the_clients(client, stores, on_threads, tmp_path, monkeypatch, task, lanes):
    """Each a range of the features."""
    ranges = []

    def noted(*given):
        ranges.append(len(given[3]))
        put_back(*given)

    monkeypatch.setattr(dask_runner, "_INLINE", 1)  # the passes go from one to the other, too
    monkeypatch.setattr(dask_runner, "RANGES_FROM", 1)
    monkeypatch.setattr(dask_runner, "RANGES_WORKERS", 2)
    monkeypatch.setattr(dask_runner, "put_back", noted)
    on_cluster(client, stores[task], tmp_path, lanes=lanes, **TASKS.get(task, {}))
    assert same(tmp_path / "m.npz", on_threads(task, lanes))
    assert set(ranges) == {2}


@pytest.mark.parametrize("task", ["binary", "rest"])
def test_caches_that_have_no_place_in_memory_go_to_the_disk(client, stores, on_threads, tmp_path, monkeypatch, caplog, task):
    monkeypatch.setattr(ClusterNeeds, "capacity", lambda *_: 1)
    client.run(recall_by, None)
    try:
        on_cluster(client, stores[task], tmp_path, lanes=4, **TASKS[task])
    finally:
        client.run(recall_by, RecallPass)
    assert same(tmp_path / "m.npz", on_threads(task, 4))
    assert "has memory for 1 of the row caches of its 2 lanes" in caplog.text


def recall_by(kind):
    """What a worker fills caches by that it has lost."""
    dask_worker.RecallPass = kind


def test_the_caches_of_all_processes_are_within_the_memory(tmp_path):
    store, n, each = tmp_path / "wide.zarr", 60_000, 50
    rng = np.random.default_rng(0)
    indices = (rng.integers(0, 100, (n, each)) + 100 * np.arange(each)).astype(np.int32).ravel()
    with streamcut.create(store, 100 * each, shard_nnz=1 << 17) as out:
        indptr, y = each * np.arange(n + 1), rng.choice([-1.0, 1.0], n)
        values = rng.random(n * each).astype(np.float32)
        out.append(sp.csr_array((values, indices, indptr), shape=(n, 100 * each)), y)
    asked = [
        "--scheduler",
        "local-cluster",
        "--workers",
        "2",
        "--set",
        "lanes=2",
        "--max-passes",
        "2",
        "--set",
        "sweeps=3",
        "--json",
    ]
    refused = train(streamcut.open(store), tmp_path / "m.npz", *asked, "--memory", "1MB")
    assert refused.returncode == ExitCode.MEMORY, refused.stderr
    minimum = memory_limit(re.search(r"at least (\d+MB)", refused.stderr)[1])
    room = 10**7  # a third of what they would like
    done = train(streamcut.open(store), tmp_path / "m.npz", *asked, "--memory", f"{minimum + room}B", "--force")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["peak"] <= result["planned"] <= result["budget"] == minimum + room
    cached = sum(size for name, size in load_model(str(tmp_path / "m.npz")).resources["plan"] if "row cache" in name)
    assert 0.5 * room <= cached <= 0.02 * minimum + room


# --- the plan and the parts -----------------------------------------------------------------------------------------------------


def needs(wanted=(0, 0), *, row_cache=0, lanes=4):
    X, y = rows()
    bounds = tuple(2000 * k // lanes for k in range(lanes + 1))
    own = Needs(31, 16, row_bytes=48, row_cache=wanted)
    return ClusterNeeds(own, streamcut.rows(X, y).manifest, Lanes(bounds), row_cache)


def test_a_budget_is_shared_with_the_row_caches():
    workers = [WorkerProcess(f"tcp://{k}", 1, 10**8, 0) for k in range(3)]  # of four lanes one worker has two
    _, least = shares(needs(), workers, budget=10**10, base=10**8)
    for wanted, expected in ((10**6, 10**6), (10**9, 4 * (6 * 10**6 // 6))):
        changed, plan = shares(needs((0, wanted)), workers, budget=least.needed + 6 * 10**6, base=10**8)
        assert expected * 0.95 <= plan.row_cache <= expected
        assert plan.total <= plan.budget
        assert {needs(row_cache=plan.row_cache).capacity(worker, 2) for worker in changed} == {2}
    with pytest.raises(MemoryBudgetError, match="too little for a client and 3 workers"):
        shares(needs((10**7, 10**7)), workers, budget=least.needed + 6 * 10**6, base=10**8)


def test_each_worker_of_a_cluster_keeps_its_limit():
    def workers(usable):
        return [WorkerProcess("tcp://0", 2, 10**8, 10**9), WorkerProcess("tcp://1", 2, 10**8, usable)]

    lean = sum(size for _, size in needs().worker_lines(workers(0)[1]))
    plan = remote(needs((0, 10**9)), workers(lean + 10**6), budget=10**10, base=10**8)
    assert 0.95 * 2 * 10**6 <= plan.row_cache <= 2 * 10**6  # two lanes each
    with pytest.raises(MemoryBudgetError, match=r"the worker at tcp://1 may use .* row cache of a lane × 2"):
        remote(needs((10**7, 10**7)), workers(lean + 10**6), budget=10**10, base=10**8)


def test_a_worker_that_is_left_alone_keeps_as_many_caches_as_it_can():
    planned = needs(row_cache=4 * 10**6)
    worker = WorkerProcess("tcp://0", 1, 10**8, 0)
    lean = sum(size for _, size in planned.worker_lines(worker))
    found = [planned.capacity(WorkerProcess("tcp://0", 1, 10**8, lean + room), 4) for room in (0, 2 * 10**6 + 5, 10**9)]
    assert found == [1, 3, 4]


@pytest.fixture
def look(tmp_path):
    """Takes the slot of a lane for pass number `now`, after `past`; returns what it has seen, and marks its cache."""
    slots, like = Slots(), LossCache(CacheSize(3, 9, "int32", None), Hinge(1.0))

    def look(lane, past, now, *, capacity=2, run="run", folder=tmp_path):
        with slots.take(run, lane, past, now, capacity, like, folder) as slot:
            if slot.seen:
                assert (slot.cache.limit, slot.cache._number.tolist()) == (lane + slot.seen[-1], [lane, slot.seen[-1], 7])
            elif now < 0:
                raise ZeroDivisionError
            seen, slot.seen = slot.seen, (*past, now)
            slot.cache.limit = lane + now
            slot.cache._number[:] = lane, now, 7
        return seen

    return look


def test_slots_remember_what_they_have_seen(look):
    assert look(0, (), 1) == ()
    assert look(0, (1,), 2) == (1,)
    assert look(0, (1,), 2) == ()  # done again: it has seen too much
    assert look(1, (1, 2), 3) == ()
    assert look(1, (1, 2, 3, 4), 5) == (1, 2, 3)
    assert look(0, (1, 2, 3), 4) == (1, 2)
    with pytest.raises(ZeroDivisionError):
        look(1, (), -1)
    assert look(1, (1, 2, 3, 4, 5), 6) == ()
    assert look(1, (1,), 2, run="another") == ()


def test_caches_without_a_place_in_memory_lie_in_files(look, tmp_path):
    """Of three lanes two fit, then one; a new filling makes all of the old one worthless."""
    for first in (10, 20):
        assert [look(lane, (), first) for lane in range(3)] == [()] * 3
        assert [look(lane, (first,), first + 1) for lane in range(3)] == [(first,)] * 3
        assert len(list(tmp_path.iterdir())) == 1
        seen = first, first + 1
        assert [look(lane, seen, first + 2, capacity=1) for lane in (2, 0, 1)] == [seen] * 3
        assert len(list(tmp_path.iterdir())) == 2
    assert [look(lane, (), 30, run="another") for lane in range(3)] == [()] * 3


def test_a_cache_that_cannot_be_written_is_told(look, tmp_path, caplog):
    nowhere = tmp_path / "nowhere"
    assert [look(lane, (), 1, capacity=1, folder=nowhere) for lane in range(2)] == [()] * 2
    assert "a row cache is refilled for every sweep" in caplog.text
    assert [look(lane, (1,), 2, capacity=1, folder=nowhere) for lane in (1, 0)] == [(1,), ()]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["binary", "multiclass"]), st.floats(0.05, 1.0))
def test_a_cache_is_recalled_as_it_was_filled(seed, task, part):
    X, y = rows(300)
    rng = np.random.default_rng(seed)
    data = streamcut.rows(X, y if task == "multiclass" else np.minimum(y, 1.0), weight=rng.uniform(0.0, 2.0, 300).round())
    lanes = Lanes((0, 110, 300))
    with Runner(Feed(data, frozenset([0])), lanes) as runner:
        common = {"C": 1.0, "bias": 1.0, "cuts": 6, "sweeps": 1}
        everything = CacheSize.bytes_of_all(data.manifest, row_bytes(3))
        size = CacheSize.planned(data.manifest, int(part * everything), 2, row_bytes(3))
        if task == "binary":
            oracle, copies = (
                DualOracle(runner, PointwiseRisk(Hinge(1.0)), size=size, **common),
                [LossCache(size, Hinge(1.0)) for _ in range(2)],
            )
        else:
            oracle = MulticlassDualOracle(runner, ClassesRisk((0.0, 1.0, 2.0)), size=size, **common)
            copies = [ClassesCache(size, CrammerSinger(3)) for _ in range(2)]
        caches = oracle._caches
        ascent = Ascent(rng.standard_normal(oracle.dimension), np.zeros(6), 0, 1, 1.0, 0.0)
        fillings = [
            oracle._pass(ascent, np.arange(64), np.arange(2), room, True)
            for room in (caches, dict(zip(caches, copies, strict=True)))
        ]
        runner.run(fillings[0])
        cached = np.zeros(300, np.bool_)
        for cache in caches.values():
            cached[cache.numbers] = True
        runner.run(RecallPass(fillings[1], cached, 0))
    assert cached.any()
    for ours, theirs in zip(copies, caches.values(), strict=True):
        assert contents(ours) == contents(theirs)


def contents(cache):
    """Everything that sweeps look at."""
    entries = cache._indptr[cache.n]
    by_row = cache._number, cache._weight, cache._square, cache._share, getattr(cache, "_goal", cache._number)
    csr = cache._indptr[: cache.n + 1], cache._indices[:entries], cache._data[:entries]
    return [array.tobytes() for array in (*csr, *(array[: cache.n] for array in by_row))]
