"""Row caches on Dask: the bits of threads, whoever dies and wherever a cache has to come about again."""

from __future__ import annotations

import signal

import kit.shared.dask_cache
import pytest
from kit.clusters import same, started, train
from kit.nights import by_night
from kit.shared.dask_cache import FEW, TASKS, on_cluster

import streamcut
from streamcut import load_model, save_model
from streamcut.errors import ExitCode

stores = kit.shared.dask_cache.stores
on_threads = kit.shared.dask_cache.on_threads
client = kit.shared.dask_cache.client

NIGHTLY = ("multiclass", "softmax", "rest")  # elastic nets of theirs
FEW_IN_WORDS = [f"--{name.replace('_', '-')}={value or 0}" for name, value in FEW.items()]


@pytest.mark.thirds
@pytest.mark.parametrize("task", by_night(TASKS, ["rest, squared", "multiclass"]))
def test_bits_are_those_of_threads(client, stores, on_threads, tmp_path, task):
    model = on_cluster(client, stores[task], tmp_path, lanes=4, **TASKS[task])
    assert model.solver == "bundle-dca"
    assert same(tmp_path / "m.npz", on_threads(task, 4))
    assert model.parameters["row_cache"] == load_model(on_threads(task, 4)).parameters["row_cache"] != "0B"


@pytest.mark.parametrize("task", by_night(["binary", *NIGHTLY], NIGHTLY))
def test_an_elastic_net_of_scaled_rows_has_the_bits_of_threads(client, stores, tmp_path, task):
    options = {**TASKS[task], "lanes": 4, "l1": "5%", "scale": "std"}
    model = on_cluster(client, stores[task], tmp_path, **options)
    save_model(streamcut.train(stores[task], workers=2, **options, **FEW), tmp_path / "here.npz")
    assert same(tmp_path / "m.npz", tmp_path / "here.npz")
    assert not model.weights.all()


def test_by_default_rows_are_cached_as_on_threads(client, stores, tmp_path):
    asked = {"solver": "bundle-dca", "lanes": 2, "max_passes": 1}
    model = streamcut.train(stores["binary"], scheduler=client, scratch=str(tmp_path), **asked)
    assert model.parameters["row_cache"] == streamcut.train(stores["binary"], **asked).parameters["row_cache"] != "0B"


def test_a_worker_dies_in_a_sweep_and_another_in_a_pass(stores, on_threads, tmp_path):
    with started(tmp_path, "none:1:kill", "train.cached:12:kill", "train.shard:10:kill") as (address, processes):
        asked = [*FEW_IN_WORDS, "--set", "lanes=3", "--scheduler", address, "--memory", "4GB", "--scratch", tmp_path]
        done = train(stores["binary"], tmp_path / "m.npz", *asked)
        assert done.returncode == 0, done.stderr
        assert [processes[f"worker {number}"].wait(5) for number in (1, 2)] == [-signal.SIGKILL] * 2
        assert processes["worker 0"].poll() is None
    assert same(tmp_path / "m.npz", on_threads("binary", 3))


def test_when_all_workers_die_in_sweeps_the_checkpoint_is_good(stores, on_threads, tmp_path):
    asked = [*FEW_IN_WORDS, "--set", "lanes=4", "--checkpoint", tmp_path / "run", "--checkpoint-every", "0s"]
    with started(tmp_path, "train.cached:12:kill", "train.cached:12:kill") as (address, _):
        done = train(stores["binary"], tmp_path / "m.npz", *asked, "--scheduler", address, "--set", "deadline=2s")
        assert done.returncode == ExitCode.CLUSTER_LOST, done.stderr
    assert not (tmp_path / "m.npz").exists()
    done = train(stores["binary"], tmp_path / "m.npz", *asked, "--resume")
    assert done.returncode == 0, done.stderr
    assert same(tmp_path / "m.npz", on_threads("binary", 4))
