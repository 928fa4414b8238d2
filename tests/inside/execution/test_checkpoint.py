"""Training that is stopped, killed or short of disk ends with the bits of an undisturbed run after --resume, or says why not."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from kit.waiting import blocked, state_of, until
from reference.power_loss import WAYS, Recorder, left_over

import streamcut
from streamcut import CheckpointOptions, load_model, save_model, train
from streamcut.errors import CorruptError, LockedError, UsageError
from streamcut.foundation import files
from streamcut.foundation.files import locked
from streamcut.models.checkpoint import open_checkpoint, write_checkpoint

pytestmark = pytest.mark.process

STREAMCUT = [sys.executable, "-P", "-c", "from streamcut.cli import main; main()"]
SOLVERS = {
    "predicted": {"solver": "ocas", "max_cuts": 6},
    "exact": {"solver": "ocas", "cut": "exact"},
    "cpa": {"solver": "cpa"},
    "newton": {"solver": "newton", "loss": "logistic"},
    "bundle-dca": {"solver": "bundle-dca", "row_cache": "50%"},
}
LIMITS = {"C": 0.1, "lanes": 2, "max_passes": 14, "tol": 1e-7, "tol_relative": None}


@cache
def data(weighted: bool = False, seed: int = 0) -> Any:
    """400 rows in 5 shards."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((400, 15), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(15) + 0.5 * rng.standard_normal(400) > 0.1, 1.0, -1.0)
    return streamcut.rows(X, y, weight=rng.uniform(0.2, 3.0, 400) if weighted else None, shard_nnz=400)


def bits(model) -> tuple:
    """Everything that must not change."""
    path = [[line[name] for name in ("passes", "primal", "lower_bound", "step", "cuts")] for line in model.history]
    return model.weights.tobytes(), model.witnesses[0].a.tobytes(), model.certificate, json.dumps(path)


@cache
def undisturbed(solver: str, weighted: bool = False) -> tuple:
    return bits(train(data(weighted), **LIMITS, **SOLVERS[solver]))


def options(folder, **other) -> CheckpointOptions:
    return CheckpointOptions(str(folder), **{"every": 0.0, "resume": True, **other})


@pytest.fixture(autouse=True)
def _no_failpoints(monkeypatch):
    monkeypatch.delenv("STREAMCUT_FAILPOINT", raising=False)
    monkeypatch.setattr(files, "_hits", Counter())


def after(blocks: int):
    """A `stop` that says no so many times, then yes."""
    asked = iter(range(blocks))
    return lambda: next(asked, None) is None


@pytest.mark.parametrize(
    ("solver", "weighted"),
    [("predicted", True), ("exact", False), ("exact", True), ("cpa", False), ("newton", True), ("bundle-dca", True)],
)
def test_a_run_stopped_at_any_block_goes_on_to_the_same_bits(tmp_path, solver, weighted):
    for blocks in count(1, 4):
        folder = tmp_path / str(blocks)
        arguments = {**LIMITS, **SOLVERS[solver], "scheduler": "sync"}
        try:
            model = train(data(weighted), checkpoint=options(folder), stop=after(blocks), **arguments)
        except KeyboardInterrupt:
            assert not list(folder.glob("*.checkpoint"))  # the first pass was not done: there is nothing to keep
            continue
        if model.certificate.stop_reason != "interrupted":
            assert bits(model) == undisturbed(solver, weighted)
            assert blocks > 20
            return
        assert model.certificate.lower_bound <= model.certificate.primal
        assert bits(train(data(weighted), checkpoint=options(folder), **arguments)) == undisturbed(solver, weighted)


def forked(failpoint: str, folder, solver: str) -> int:
    """Train in a forked child; its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            os.environ["STREAMCUT_FAILPOINT"] = failpoint
            model = train(data(), checkpoint=options(folder, every=0.0), **LIMITS, **SOLVERS[solver])
            os._exit(0 if bits(model) == undisturbed(solver) else 1)
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize(("point", "stride"), [("train.shard", 7), ("ckpt_tmp", 37), ("ckpt_fsync", 3), ("ckpt_rename", 3)])
def test_killed_anywhere_it_goes_on_to_the_same_bits(tmp_path, point, stride):
    solver = "predicted"
    undisturbed(solver)
    folder = tmp_path / "run"
    for visit in count(1, stride):
        ended = forked(f"{point}:{visit}:kill", folder, solver)
        if ended == 0:
            assert visit > 1
            return
        assert ended == -signal.SIGKILL
        model = train(data(), checkpoint=options(folder), **LIMITS, **SOLVERS[solver])
        assert bits(model) == undisturbed(solver)
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
    resumed = 0
    for number, moment in enumerate(recorder.moments):
        disk = tmp_path / f"{number}"
        left_over(moment, disk, way, seed=number)
        resumed += any((disk / "run").glob("*.checkpoint"))
        again = train(data(), checkpoint=options(disk / "run"), **LIMITS, **SOLVERS["predicted"])
        assert bits(again) == undisturbed("predicted"), f"{way} at {moment.before}"
        if (disk / "m.npz").exists():
            assert bits(load_model(disk / "m.npz")) == undisturbed("predicted")
    assert len(recorder.moments) > resumed > 5


def test_every_changed_bit_of_a_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "a.checkpoint"
    arrays = {"a": np.arange(5.0), "none": np.empty((0, 3)), "b": np.arange(6, dtype=np.int64).reshape(2, 3)}
    record = {"identity": {"x": 0.1}, "state": {}}
    write_checkpoint(path, record, arrays)
    stored = open_checkpoint(path)
    assert stored.record == record
    for name, array in arrays.items():
        np.testing.assert_array_equal(stored.read(name, array.shape, array.dtype), array)
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(CorruptError):
            open_checkpoint(path)
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(CorruptError):
            open_checkpoint(path)


def test_a_checkpoint_of_another_run_is_refused_with_what_differs(tmp_path):
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


def test_two_runs_do_not_share_a_folder(tmp_path):
    (tmp_path / "run").mkdir()
    with locked(tmp_path / "run" / "lock", "it"), pytest.raises(LockedError, match="run is being written"):
        train(data(), checkpoint=options(tmp_path / "run"), **LIMITS)


@pytest.mark.parametrize("point", ["ckpt_tmp", "ckpt_fsync"])
def test_a_full_disk_costs_a_checkpoint_and_not_the_run(tmp_path, monkeypatch, caplog, point):
    monkeypatch.setenv("STREAMCUT_FAILPOINT", f"{point}:2:ENOSPC")
    with caplog.at_level(logging.WARNING):
        model = train(data(), checkpoint=options(tmp_path / "a", every=0.0), **LIMITS, **SOLVERS["predicted"])
    assert bits(model) == undisturbed("predicted")
    assert "training continues" in caplog.text
    assert len(list((tmp_path / "a").glob("*.checkpoint"))) == 1


# --- the command line ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store of 20,000 rows in many shards."""
    from sklearn.datasets import dump_svmlight_file

    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    X = sp.random_array((20_000, 50), density=0.2, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(50) + 2.0 * rng.standard_normal(20_000) > 0.1, 1, -1)
    dump_svmlight_file(sp.csr_matrix(X), y, str(folder / "rows.svm"), zero_based=False)
    subprocess.run([*STREAMCUT, "convert", str(folder / "rows.svm"), str(folder / "rows.zarr"), "-q"], check=True)
    return folder / "rows.zarr"


COMMAND = ["--solver", "ocas", "--tol", "1e-6", "--tol-relative", "0", "--json", "--C", "0.01", "--set", "max-cuts=12"]
COMMAND += ["--max-passes", "90"]


def started(store, folder, *more, until="iteration", lines=10, **environment):
    command = [*STREAMCUT, "train", str(store), "--output", str(folder / "m.npz"), *COMMAND, *more]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    for _ in range(lines):
        while json.loads(process.stdout.readline())["event"] != until:
            pass
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_model_and_checkpoint_and_resume_ends_as_undisturbed(store, tmp_path, number, code):
    (tmp_path / "whole").mkdir()
    started(store, tmp_path / "whole").communicate(timeout=100)
    with started(store, tmp_path, "--checkpoint", str(tmp_path / "run")) as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert load_model(tmp_path / "m.npz").certificate.stop_reason == "interrupted"
    assert json.loads(out.splitlines()[-1])["stop_reason"] == "interrupted"
    with started(store, tmp_path, "--checkpoint", str(tmp_path / "run"), "--resume", lines=1) as process:
        _, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert bits(load_model(tmp_path / "m.npz")) == bits(load_model(tmp_path / "whole" / "m.npz"))


@contextmanager
def held(store, folder, point, *more):
    """A training in the main thread that stands still at the failpoint `point`, and whose handler of a signal runs there."""
    os.mkfifo(folder / "gate")
    environment = {**os.environ, "STREAMCUT_FAILPOINT": f"{point}:hold={folder / 'gate'}"}
    command = [*STREAMCUT, "train", str(store), "--output", str(folder / "m.npz"), *COMMAND, "--scheduler", "sync", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        with open(folder / "gate", "wb") as gate:  # which waits until the process is there
            yield process, gate
    finally:
        process.kill()
        process.communicate()
        (folder / "gate").unlink()


def test_a_second_signal_ends_at_once(store, tmp_path):
    with held(store, tmp_path, "train.shard:8") as (process, _):
        until(lambda: state_of(process.pid) == "S")
        before = blocked(process.pid)
        process.send_signal(signal.SIGINT)
        until(lambda: blocked(process.pid) > before)  # it has seen the first, and waits again
        process.send_signal(signal.SIGTERM)  # of one kind two could become one before they are seen
        _, err = process.communicate(timeout=100)
    assert process.returncode == 143
    assert err.endswith("ended at once\n")
    assert list(tmp_path.iterdir()) == []
