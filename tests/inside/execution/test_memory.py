"""Training keeps its memory promise: the peak is what the plan says, whatever the size of the data."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import kit.shared.memory
import numpy as np
import pytest
import scipy.sparse as sp
from kit.first_runs import within
from kit.shared.memory import ROOM, STREAMCUT, command, least, line_of, result_within

import streamcut
from streamcut.errors import DiskFullError, ExitCode, NotFoundError
from streamcut.execution.row_state import RowState
from streamcut.foundation.machine import machine_memory, memory_limit

pytestmark = pytest.mark.process


stores = kit.shared.memory.stores
queries = kit.shared.memory.queries


@pytest.mark.parametrize("solver", [["--set", "cut=exact"], ["--solver", "bundle-dca"]], ids=lambda s: s[1])
def test_the_peak_is_below_the_budget_and_the_same_for_more_data(stores, tmp_path, solver):
    budget = memory_limit(least(stores[2], tmp_path, *solver)) + ROOM
    peaks = []
    for store in (stores[2], stores[4]):
        result = result_within(budget, line_of(store, tmp_path, f"{budget}B", *solver))
        assert result["peak"] <= result["planned"] <= result["budget"] == budget
        peaks.append(result["peak"])
    if "bundle-dca" not in solver:  # its row cache is a part of the data while the budget allows
        assert max(peaks) <= 1.05 * min(peaks)


def test_the_minimum_of_a_refusal_is_enough_and_row_state_spills_without_changing_a_bit(stores, tmp_path):
    from streamcut import load_model

    done = command(stores[4], tmp_path, "2GB", "--solver", "ocas")
    assert done.returncode == 0, done.stderr
    roomy = load_model(tmp_path / "m.npz")
    for more in (["--solver", "ocas"], ["--set", "cut=exact"], ["--solver", "cpa"]):
        memory = least(stores[4], tmp_path, *more)
        result = result_within(memory_limit(memory), line_of(stores[4], tmp_path, memory, *more))
        assert result["peak"] <= memory_limit(memory)
        if "ocas" in more:
            narrow = load_model(tmp_path / "m.npz")
            np.testing.assert_array_equal(narrow.weights, roomy.weights)
            assert narrow.certificate == roomy.certificate
    done = command(stores[4], tmp_path, least(stores[4], tmp_path, "--dry-run"), "--dry-run")
    assert done.returncode == 0


FAMILIES = {
    "roc-area": ["--task", "roc-area"],
    "one-vs-rest": ["--task", "multiclass", "--strategy", "one-vs-rest"],
    "sampled-linear": ["--solver", "sampled-linear", "--kernel", "rbf", "--gamma", "1", "--set", "samples=50"],
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_least_of_a_training_is_enough(stores, queries, tmp_path, family):
    """Of every kind: scripts/checks/check_memory.py."""
    limits = ["--max-passes", "2"] if family == "one-vs-rest" else ["--set", "max-cuts=20", "--max-passes", "2"]
    store = queries if family == "one-vs-rest" else stores[2]
    line = [*STREAMCUT, "train", str(store), *FAMILIES[family], *limits, "--output", str(tmp_path / "m.npz"), "--json"]
    refused = subprocess.run([*line, "--memory", "1MB"], capture_output=True, text=True, timeout=120)
    assert refused.returncode == ExitCode.MEMORY, refused.stderr
    assert ("max-cuts" in refused.stderr) == (family != "one-vs-rest")
    assert ("--set samples" in refused.stderr) == (family == "sampled-linear")
    minimum = re.search(r"at least (\d+MB)", refused.stderr)[1]
    result = result_within(memory_limit(minimum), [*line, "--memory", minimum, "--force"])
    assert result["peak"] <= result["planned"] <= memory_limit(minimum)


LIMITED = """
import faulthandler, resource, sys
faulthandler.dump_traceback_later(30, exit=True)
from pathlib import Path
from streamcut.training import train
def limit(plan):
    files = sum(size for what, size in plan.lines if "in scratch files" in what)  # pages that the limit does not count
    room = int((plan.total - plan.lines[0][1] - files) * float(sys.argv[3]))
    data = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:"))
    resource.setrlimit(resource.RLIMIT_DATA, (1024 * int(data.split()[1]) + room,) * 2)
train(sys.argv[4], max_passes=3)  # loads kernels: LLVM ends the process when it finds no memory for them
try:
    train(sys.argv[1], memory=sys.argv[2], max_passes=3, on_plan=limit)
except MemoryError:
    sys.exit(7)
"""


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_limit_of_the_system_is_a_memory_error(stores, tmp_path, share):
    memory = f"{memory_limit(least(stores[4], tmp_path)) + ROOM}B"
    limited = [sys.executable, "-P", "-c", LIMITED, str(stores[4]), memory, str(share), str(stores[0])]
    done = subprocess.run(limited, capture_output=True, timeout=60)
    assert done.returncode == 7, done.stderr.decode()[-2000:]


# --- row state ------------------------------------------------------------------------------------------------------------------


def test_a_full_or_missing_scratch_folder_is_told_at_once(tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="scratch"):
        RowState(10, tmp_path / "no").add("z")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskFullError, match=r"8,000 bytes needed"):
        RowState(1000, tmp_path).add("z")


def test_a_method_that_takes_over_finds_no_row_state(tmp_path):
    state = RowState(3000, tmp_path)
    state.add("codes", np.float32, (2, 1))
    state.clear()
    state.add("z")
    state.release(0, 3000)
    assert list(state.arrays) == ["z"]


# --- the plan -------------------------------------------------------------------------------------------------------------------


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


_PEAK = """
import sys
from streamcut.cli import main
from streamcut.foundation.systems import peak_bytes
try:
    main()
finally:
    print(peak_bytes())
"""


@pytest.mark.parametrize("options", [["--solver", "ocas", "--set", "max-cuts=4"], ["--loss", "softmax"]])
def test_a_model_of_all_features_is_within_the_least_memory(tmp_path, options):
    """All of its arrays, while it is made and saved: there the peak is."""
    rng, several, width = np.random.default_rng(0), "--strategy" in options or "softmax" in options, 1 << 21
    X, y = (
        sp.csr_array((np.ones(6000), rng.integers(0, 1000, 6000), np.arange(0, 6001, 3)), (2000, width)),
        rng.integers(0, 4, 2000),
    )
    X.sum_duplicates()
    with streamcut.create(tmp_path / "wide.zarr", width, memory="4GB") as made:
        made.append(X, (y if several else y > 1).astype(float))
    line = [
        sys.executable,
        "-P",
        "-c",
        _PEAK,
        "train",
        str(tmp_path / "wide.zarr"),
        "--output",
        str(tmp_path / "m.npz"),
        "--quiet",
    ]
    line += [*options, *["--task", "multiclass"] * several, "--max-passes", "2", "--memory"]
    refused = subprocess.run([*line, "1MB"], capture_output=True, text=True, timeout=120)
    least = re.search(r"at least (\d+)MB", refused.stderr)[1]

    def run():
        (tmp_path / "m.npz").unlink(missing_ok=True)
        done = subprocess.run([*line, f"{least}MB"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert within(int(least) * 10**6, run, int) <= int(least) * 10**6
