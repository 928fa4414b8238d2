"""Training keeps its memory promise: the peak is what the plan says, whatever the size of the data."""

from __future__ import annotations

import errno
import os
import re

import kit.shared.memory
import pytest
from kit.shared.memory import ROOM, command, least, line_of, result_within

import streamcut
from streamcut.errors import DiskFullError, ExitCode, MemoryBudgetError, NotFoundError
from streamcut.execution.plan import MemoryPlan, Needs, Streamed
from streamcut.execution.row_state import RowState
from streamcut.foundation.systems import machine_memory, memory_limit

pytestmark = pytest.mark.process


stores = kit.shared.memory.stores
several = kit.shared.memory.several


def test_the_peak_is_below_the_budget_and_the_same_for_more_data(stores, tmp_path):
    budget = memory_limit(least(stores[2], tmp_path, "--set", "cut=exact")) + ROOM
    assert command(stores[0], tmp_path, "2GB", "--set", "cut=exact").returncode == 0, "compiles the kernels, which takes memory"
    peaks = []
    for store in (stores[2], stores[4]):
        result = result_within(budget, line_of(store, tmp_path, f"{budget}B", "--set", "cut=exact"))
        assert result["peak"] <= result["planned"] <= result["budget"] == budget
        peaks.append(result["peak"])
    assert max(peaks) <= 1.05 * min(peaks)


SAMPLED = ["--solver", "sampled-linear", "--kernel", "rbf", "--gamma", "1", "--set", "samples=50", "--set", "max-cuts=20"]
FAMILIES = {  # of every kind: scripts/checks/check_memory.py
    "bundle-dca": ["--solver", "bundle-dca"],
    "one-vs-rest": ["--task", "multiclass", "--strategy", "one-vs-rest"],
    "sampled-linear": [*SAMPLED, "--tol", "1e-3"],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_least_that_a_refusal_names_is_enough(stores, several, tmp_path, family):
    store, more = several if family == "one-vs-rest" else stores[2], [*FAMILIES[family], "--max-passes", "2"]
    refused = command(store, tmp_path, "1MB", *more)
    assert refused.returncode == ExitCode.MEMORY, refused.stderr
    assert ("--set samples" in refused.stderr) == (family == "sampled-linear")
    minimum = re.search(r"at least (\d+MB)", refused.stderr)[1]
    result = result_within(memory_limit(minimum), line_of(store, tmp_path, minimum, *more))
    assert result["peak"] <= result["planned"] <= memory_limit(minimum)


def test_row_state_spills_without_changing_a_bit(stores, tmp_path):
    models = []
    for memory in ("2GB", least(stores[4], tmp_path, "--solver", "ocas")):
        done = command(stores[4], tmp_path, memory, "--solver", "ocas")
        assert done.returncode == 0, done.stderr
        models.append(streamcut.load_model(tmp_path / "m.npz"))
    assert models[0].weights.tobytes() == models[1].weights.tobytes()
    assert models[0].certificate == models[1].certificate


def test_a_full_or_missing_scratch_folder_is_told_at_once(tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="scratch"):
        RowState(10, tmp_path / "no").add("z")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskFullError, match=r"8,000 bytes needed"):
        RowState(1000, tmp_path).add("z")


@pytest.mark.parametrize(
    ("own", "folder", "names", "stat"),
    [
        ("0::/a/b", "a", ("memory.max", "memory.current"), "inactive_file 1000000"),
        ("4:memory:/a/b\n0::/", "memory/a", ("memory.limit_in_bytes", "memory.usage_in_bytes"), "total_inactive_file 1000000"),
    ],
    ids=["version 2", "version 1"],
)
def test_limits_of_control_groups_count(tmp_path, own, folder, names, stat):
    (tmp_path / "own").write_text(own + "\n")
    place = tmp_path / "cgroup" / folder
    (place / "b").mkdir(parents=True)
    for where, limit in ((place, "30000000"), (place / "b", "max" if "max" in names[0] else "9223372036854771712")):
        (where / names[0]).write_text(limit + "\n")
        (where / names[1]).write_text("11000000\n")
        (where / "memory.stat").write_text(stat + "\nanon 5\n")
    assert machine_memory(tmp_path / "cgroup", tmp_path / "own") == (30_000_000, 20_000_000)


@pytest.mark.parametrize(("free", "batch"), [(200, 80), (100, 40), (30, 20), (10, 0)])
def test_batches_of_streams_leave_as_much_for_the_row_cache(free, batch):
    def plan(needs: Needs) -> MemoryPlan:
        if (left := free - needs.streamed.per_worker) < 0:
            raise MemoryBudgetError("too little")
        return MemoryPlan(free, (), frozenset(), 0, row_cache=left, streamed=needs.streamed)

    sizes = [Streamed(4, size, always=True) for size in (80, 40, 20)]
    needs = Needs(dimension=1, row_cache=(0, 1000), mixing=tuple(sizes))
    assert needs.planned(plan).streamed.per_worker == batch
