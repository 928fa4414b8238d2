"""Several trainings read the same data: each gets its rows as if it were alone, each shard is decoded once for all of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import streamcut
from streamcut.errors import CorruptError
from streamcut.execution.runner import Interrupted
from streamcut.execution.shared_reading import Reader, SharedReading
from streamcut.io.memory import MemoryDataset
from streamcut.io.row_view import Folds, fold_views
from streamcut.selection import train_path
from streamcut.tuning import tune
from streamcut.verification import verify

SHARDS = 7


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = sp.random_array((70 * SHARDS, 12), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(12) > 0.0, 1.0, -1.0)
    path = tmp_path_factory.mktemp("shared") / "rows.zarr"
    dump_svmlight_file(X, y, str(path.with_suffix(".svm")), zero_based=False)
    streamcut.convert(path.with_suffix(".svm"), path, shard_nnz=X.nnz // SHARDS)
    return path


class Counting:
    """A data set that counts how often each shard is decoded, slowly."""

    def __init__(self, inner, seconds=0.0):
        self.inner, self.manifest, self.path, self.recipe = inner, inner.manifest, inner.path, inner.recipe
        self.reads, self.seconds = [], seconds

    def buffers(self):
        return self.inner.buffers()

    def read(self, shard, buffers=None):
        self.reads.append(shard)
        time.sleep(self.seconds)
        return self.inner.read(shard, buffers)

    def expect(self, *shards):
        pass


def labels_of(reader, shards, wait=0.0):
    found = []
    for shard in shards:
        rows = reader.read(shard)
        before = rows.y.copy(), rows.indices.copy()
        time.sleep(wait)
        np.testing.assert_array_equal(rows.y, before[0], "the buffers were used for another shard")
        np.testing.assert_array_equal(rows.indices, before[1])
        found.append(before[0])
    return np.concatenate(found)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("pinned", [(), (0, 3), range(SHARDS), range(SHARDS + 1)])
def test_each_gets_its_rows_and_each_shard_is_read_once(data, workers, pinned):
    counting = Counting(streamcut.open(data))
    count = len(counting.manifest.shards)
    assert count == SHARDS + 1
    shared = SharedReading(counting, workers)
    shared.pin(frozenset(pinned))
    rng = np.random.default_rng(workers)
    passes = [3, 3, 1, 2, 3, 0]
    readers = [Reader(shared) for _ in passes]
    orders = []
    for number in passes:  # some read a shard twice in a pass, or leave the first and the last ones out
        first, last = sorted(rng.choice(count + 1, 2, replace=False))
        order = list(range(count)) if number == 3 else list(range(first, last))
        orders.append([shard for shard in order for _ in range(1 + (shard == 2))] * number if number else [])
    works = [
        (reader, lambda reader=reader, order=order, wait=wait: labels_of(reader, order, wait) if order else None)
        for reader, order, wait in zip(readers, orders, rng.uniform(0.0, 0.002, len(passes)), strict=True)
    ]
    found = shared.run(works)
    inner = counting.inner
    for order, labels in zip(orders, found, strict=True):
        if order:
            np.testing.assert_array_equal(labels, np.concatenate([inner.read(shard).y for shard in order]))
    streamed = [shard for shard in range(count) if shard not in pinned]
    assert sorted(counting.reads) == sorted([*pinned, *streamed * (3 if len(streamed) > 1 else 1)]), "the only one stays"


def test_no_more_run_than_workers(data):
    shared = SharedReading(streamcut.open(data), 2)
    running, most = 0, 0

    def work(reader):
        nonlocal running, most
        for shard in list(range(len(reader.manifest.shards))) * 2:
            reader.read(shard)
            running += 1
            most = max(most, running)
            time.sleep(0.001)
            running -= 1

    readers = [Reader(shared) for _ in range(6)]
    shared.run([(reader, lambda reader=reader: work(reader)) for reader in readers])
    assert most == 2


def test_an_error_ends_those_that_wait(data):
    shared = SharedReading(streamcut.open(data), 2)
    ended = []

    def good(reader):
        try:
            labels_of(reader, list(range(len(reader.manifest.shards))) * 1000)
        except Interrupted:
            ended.append(reader)
            raise

    def bad(reader):
        reader.read(0)
        raise CorruptError("shard 0: gone")

    readers = [Reader(shared) for _ in range(4)]
    works = [(reader, lambda reader=reader: good(reader)) for reader in readers[1:]]
    with pytest.raises(CorruptError, match="gone"):
        shared.run([(readers[0], lambda: bad(readers[0])), *works])
    assert len(ended) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"scale": "std", "loss": "squared-hinge"},
        {"kernel": "rbf", "gamma": 0.5, "nystroem": 8},
        {"kernel": "rbf", "gamma": 0.5, "fourier": 8},
        {"loss": "f1"},
        {"task": "roc-area"},
    ],
)
def test_what_reads_rows_before_it_trains_shares_that_too(data, options, monkeypatch):
    pin = SharedReading.pin
    monkeypatch.setattr(SharedReading, "pin", lambda self, shards: pin(self, frozenset()))
    store, Cs = streamcut.open(data), [0.1, 1.0]
    found = tune(store, {"C": Cs}, folds=3, workers=2, **options)
    for fold, (rows, held_out) in enumerate(fold_views(store, Folds(3))):
        alone = []
        train_path(rows, Cs, validation=held_out, on_model=lambda _, tried: alone.append(tried), workers=1, **options)  # noqa: B023
        ours = [line for line in found.table if line["fold"] == fold]
        assert [line["primal"] for line in ours] == [tried.result["primal"] for tried in alone]
        assert [line[found.best.measure] for line in ours] == [tried.value for tried in alone]
    assert verify(found.model, store).consistent


def test_several_classes_take_a_path_too():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 6))
    counting = Counting(MemoryDataset(X, np.digitize(X @ rng.standard_normal(6), [-1.0, 1.0]).astype(float), shard_nnz=300))
    found = tune(counting, {"C": [0.1, 1.0]}, folds=2, task="multiclass", strategy="one-vs-rest", workers=2)
    assert [(line["fold"], line["C"]) for line in found.table] == [(0, 0.1), (0, 1.0), (1, 0.1), (1, 1.0)]
    alone = {}  # a path of its own up to the best C: a warm start is in its bits
    options = {"task": "multiclass", "strategy": "one-vs-rest"}
    train_path(counting.inner, [0.1, 1.0], on_model=lambda model, tried: alone.update({tried.C: model}), **options)
    assert found.model.converged
    np.testing.assert_array_equal(found.model.weights, alone[found.best.options["C"]].weights)


def test_ctrl_c_in_python(data):
    script = (
        "import streamcut, sys\n"
        "said = lambda *_: print('trained', flush=True)\n"
        f"streamcut.tune({str(data)!r}, {{'C': [1e-6, 100.0]}}, folds=3, tol=1e-14, tol_relative=None, on_trained=said,\n"
        "               max_passes=10**9)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "trained\n"
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=100)
    assert "KeyboardInterrupt" in err
    assert process.returncode in (1, 130, -signal.SIGINT)
