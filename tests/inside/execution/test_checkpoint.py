"""Training that is stopped, killed or short of disk ends with the bits of an undisturbed run after --resume, or says why not."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from kit.store_crash import forked
from reference.power_loss import WAYS, Recorder, left_over

import streamcut
from streamcut import CheckpointOptions, load_model, save_model, train
from streamcut.errors import CorruptError, LockedError, UsageError
from streamcut.foundation.files import locked
from streamcut.models.checkpoint import open_checkpoint, write_checkpoint

pytestmark = pytest.mark.process

SOLVERS = {
    "predicted": {"solver": "ocas", "max_cuts": 6},
    "exact": {"solver": "ocas", "cut": "exact"},
    "bundle-dca": {"solver": "bundle-dca", "row_cache": "50%"},
}
LIMITS = {"C": 0.1, "lanes": 2, "max_passes": 14, "tol": 1e-7, "tol_relative": None}


@cache
def data(seed: int = 0) -> Any:
    """400 rows in 5 shards."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((400, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(15) + 0.5 * rng.standard_normal(400) > 0.1, 1.0, -1.0)
    return streamcut.rows(X, y, weight=rng.uniform(0.2, 3.0, 400), shard_nnz=400)


def bits(model) -> tuple:
    """Everything that must not change."""
    path = [[line[name] for name in ("passes", "primal", "lower_bound", "step", "cuts")] for line in model.history]
    return model.weights.tobytes(), model.proofs[0].a.tobytes(), model.certificate, json.dumps(path)


@cache
def undisturbed(solver: str) -> tuple:
    return bits(train(data(), **LIMITS, **SOLVERS[solver]))


def options(folder, **other) -> CheckpointOptions:
    return CheckpointOptions(str(folder), **{"every": 0.0, "resume": True, **other})


def after(blocks: int):
    """A `stop` that says no so many times, then yes."""
    asked = iter(range(blocks))
    return lambda: next(asked, None) is None


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_run_stopped_at_any_block_goes_on_to_the_same_bits(tmp_path, solver):
    for blocks in count(1, 7):
        folder = tmp_path / str(blocks)
        arguments = {**LIMITS, **SOLVERS[solver], "scheduler": "sync"}
        try:
            model = train(data(), checkpoint=options(folder), stop=after(blocks), **arguments)
        except KeyboardInterrupt:
            assert not list(folder.glob("*.checkpoint"))  # the first pass was not done: there is nothing to keep
            continue
        if model.certificate.stop_reason != "interrupted":
            assert bits(model) == undisturbed(solver)
            assert blocks > 20
            return
        assert model.certificate.lower_bound <= model.certificate.primal
        assert bits(train(data(), checkpoint=options(folder), **arguments)) == undisturbed(solver)


@pytest.mark.parametrize(("point", "stride"), [("train.shard", 11), ("ckpt_tmp", 61), ("ckpt_fsync", 5), ("ckpt_rename", 5)])
def test_killed_anywhere_it_goes_on_to_the_same_bits(tmp_path, point, stride):
    folder, expected = tmp_path / "run", undisturbed("predicted")

    def work() -> None:
        assert bits(train(data(), checkpoint=options(folder), **LIMITS, **SOLVERS["predicted"])) == expected

    for visit in count(1, stride):
        ended = forked(work, f"{point}:{visit}:kill")
        if ended == 0:
            assert visit > 1
            return
        assert ended == -signal.SIGKILL
        work()
        assert not list(folder.glob(".*.tmp"))
        for path in folder.glob("*.checkpoint"):
            path.unlink()


@pytest.mark.parametrize("way", WAYS)
def test_the_power_goes_at_any_moment(tmp_path, monkeypatch, way):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # what is durable is the recorder's to say
    live = tmp_path / "live"
    live.mkdir()
    with Recorder(live) as recorder:
        model = train(data(), checkpoint=options(live / "run", every=0.0), **LIMITS, **SOLVERS["predicted"])
        save_model(model, str(live / "m.npz"))
    resumed, moments = 0, [*enumerate(recorder.moments)][WAYS.index(way) % 3 :: 3]  # each way has others
    for number, moment in moments:
        disk = tmp_path / f"{number}"
        left_over(moment, disk, way, seed=number)
        resumed += any((disk / "run").glob("*.checkpoint"))
        again = train(data(), checkpoint=options(disk / "run"), **LIMITS, **SOLVERS["predicted"])
        assert bits(again) == undisturbed("predicted"), f"{way} at {moment.before}"
        if (disk / "m.npz").exists():
            assert bits(load_model(disk / "m.npz")) == undisturbed("predicted")
    assert len(moments) > resumed > 5


def test_every_changed_bit_of_a_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "a.checkpoint"
    arrays = {"a": np.arange(5.0), "none": np.empty((0, 3)), "b": np.arange(6, dtype=np.int64).reshape(2, 3)}
    record = {"identity": {"x": 0.1}, "state": {}}
    write_checkpoint(path, record, arrays)
    stored = open_checkpoint(path)
    assert stored.record == record
    for name, array in arrays.items():
        np.testing.assert_array_equal(stored[name], array)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(CorruptError):
            open_checkpoint(path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptError):
            open_checkpoint(path)


def test_a_checkpoint_of_another_run_or_in_use_is_refused_with_what_differs(tmp_path):
    folder = tmp_path / "run"
    first = {**LIMITS, "max_passes": 4}
    train(data(), checkpoint=options(folder), **first)
    with pytest.raises(UsageError, match=r"of a different run: C \(0\.1, now 0\.5\), tol .* differ"):
        train(data(), checkpoint=options(folder), **{**first, "C": 0.5, "tol": 1e-3})
    with pytest.raises(UsageError, match=r"different run: data "):
        train(data(seed=1), checkpoint=options(folder), **first)
    with pytest.raises(UsageError, match="resume=True"):
        train(data(), checkpoint=str(folder), **first)
    # what changes no bit may change
    train(data(), checkpoint=options(folder), **{**LIMITS, "workers": 1, "memory": "50%", "max_time": 1e6})
    with locked(folder / "lock", "it"), pytest.raises(LockedError, match="run is being written"):
        train(data(), checkpoint=options(folder), **LIMITS)


@pytest.mark.parametrize("point", ["ckpt_tmp", "ckpt_fsync"])
def test_a_full_disk_costs_a_checkpoint_and_not_the_run(tmp_path, monkeypatch, caplog, point):
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:2:ENOSPC")
    with caplog.at_level(logging.WARNING):
        model = train(data(), checkpoint=options(tmp_path / "a", every=0.0), **LIMITS, **SOLVERS["predicted"])
    assert bits(model) == undisturbed("predicted")
    assert "training continues" in caplog.text
    assert len(list((tmp_path / "a").glob("*.checkpoint"))) == 1


def test_a_second_signal_ends_at_once(tmp_path):
    """Of a training in the main thread, whose handler of the first runs where it stands still."""
    X, y = np.random.default_rng(0).standard_normal((400, 15)), np.arange(400) % 2
    with streamcut.create(tmp_path / "rows.zarr", shard_nnz=400) as out:
        out.append(X, y)
    os.mkfifo(tmp_path / "gate")
    environment = {**os.environ, "STREAMCUT_FAILPOINT": f"train.shard:8:hold={tmp_path / 'gate'}"}
    code = "from streamcut.cli import main; main('train rows.zarr -o m.npz --solver ocas --scheduler sync'.split())"
    command = [sys.executable, "-P", "-c", code]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:

        def waits_again(before: int) -> int:
            """How often its main thread has waited so far, once that is more than `before` and it waits."""
            state, times, deadline = "R", 0, time.monotonic() + 120.0
            while (state, times > before) != ("S", True):
                assert time.monotonic() < deadline
                status = Path(f"/proc/{process.pid}/status").read_text()
                state, times = re.search(r"^State:\t(.).*^voluntary_ctxt_switches:\s*(\d+)", status, re.M | re.S).groups()
                times = int(times)
            return times

        try:
            with open(tmp_path / "gate", "wb"):  # which waits until the process is there
                before = waits_again(0)
                process.send_signal(signal.SIGINT)
                waits_again(before)  # it has seen the first
                process.send_signal(signal.SIGTERM)  # of one kind two could become one before they are seen
                _, err = process.communicate(timeout=100)
        finally:
            process.kill()
    assert process.returncode == 143
    assert err.endswith("ended at once\n")
    assert not (tmp_path / "m.npz").exists()
