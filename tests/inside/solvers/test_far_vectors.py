"""Vectors in scratch files: what comes out is what it is with vectors in memory, to the last bit, in less memory."""

import errno
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from kit.nights import by_night

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.bundle.bundle import Bundle
from streamcut.config import TrainOptions
from streamcut.errors import DiskFullError, NotFoundError
from streamcut.execution.plan import Machine, plan_memory
from streamcut.execution.row_state import ScratchShelf
from streamcut.foundation.rounding import CutError
from streamcut.jobs.multiclass import MulticlassJob
from streamcut.jobs.smaller import smallest_change

DUAL = {"task": "multiclass", "row_cache": "0", "max_cuts": 6}


def problem(n: int = 300, d: int = 20, K: int = 4) -> Any:
    """Rows with weights and classes by a planted W."""
    rng = np.random.default_rng(3)
    X = sp.random_array((n, d), density=0.1, rng=rng, format="csr", data_sampler=rng.standard_normal)
    y = (X @ rng.standard_normal((d, K)) + 0.3 * rng.standard_normal((n, K))).argmax(axis=1)
    return streamcut.rows(X, y.astype(float), weight=rng.uniform(0.5, 2.0, n))


@pytest.fixture
def far(monkeypatch):
    """Jobs that may have vectors in files have them there, whatever the memory; gives a list of them."""
    found = []

    def chosen(job, *, threads, manifest):
        there = next(job.with_files(manifest))
        found.append(there)
        return iter([there])

    monkeypatch.setattr("streamcut.jobs.smaller._choices", chosen)
    return found


def near(data, **options):
    """The model from vectors in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamcut.jobs.smaller._choices", lambda job, *, threads, manifest: iter([job]))
        return train(data, **options)


def same(model, other):
    np.testing.assert_array_equal(model.weights, other.weights)
    np.testing.assert_array_equal(model.intercepts, other.intercepts)
    np.testing.assert_array_equal(model.witnesses[0].a, other.witnesses[0].a)
    assert model.certificates == other.certificates


KINDS = {
    "crammer-singer": {**DUAL, "tol": 1e-4},
    "cached": {**DUAL, "tol": 1e-4, "row_cache": "auto"},
    "some cached": {**DUAL, "tol": 1e-4, "row_cache": "20%", "loss": "softmax"},
    "by way of a smaller C": {**DUAL, "C": 10.0, "tol_relative": 1e-3, "max_passes": 60},
    "softmax": {**DUAL, "loss": "softmax"},
    "ocas": {"task": "multiclass", "solver": "ocas", "max_cuts": 8, "max_passes": 40},
    "ocas, softmax": {"task": "multiclass", "solver": "ocas", "max_cuts": 8, "max_passes": 40, "loss": "softmax"},
}


@pytest.mark.parametrize("kind", by_night(KINDS, ("ocas, softmax",)))
def test_the_bits_are_those_of_vectors_in_memory(kind, far, tmp_path):
    data, options = problem(), KINDS[kind]
    model = train(data, **options, scratch=str(tmp_path))
    assert far[0].far
    assert far[0].workers == 1
    same(model, near(data, **options))
    certificate = model.certificates[0]
    assert certificate.lower_bound <= certificate.primal
    assert not list(tmp_path.iterdir())


def test_stopped_and_resumed_is_uninterrupted(far, tmp_path):
    data, options, seen = problem(), {**KINDS["by way of a smaller C"], "scratch": str(tmp_path)}, []
    kept = CheckpointOptions(str(tmp_path / "kept"), every=0.0)
    train(data, **options, checkpoint=kept, on_iteration=seen.append, stop=lambda: len(seen) >= 12)
    resumed = train(data, **options, checkpoint=replace(kept, resume=True))
    assert len(resumed.history) > 12
    same(resumed, near(data, **options))


def test_options_that_want_more_keep_vectors_in_memory():
    data = problem()

    def jobs(**options):
        chosen = TrainOptions(task="multiclass", **options)
        return [*MulticlassJob.planned(chosen, data.manifest).with_files(data.manifest)]

    assert [(len(job.lanes), job.workers, job.swept) for job in jobs(workers=2)] == [(1, 1, True), (1, 1, False)]
    assert [job.swept for job in jobs(row_cache="1MB")] == [True]
    assert [job.swept for job in jobs(row_cache="1MB", sweeps=0)] == [job.swept for job in jobs(row_cache="0")] == [False]
    for more in ({"lanes": 2}, {"l1": 0.1}, {"solver": "cpa"}):
        assert jobs(**more) == []
    assert len(jobs(solver="ocas", lanes=2)[0].lanes) == 2


def test_short_memory_means_vectors_in_scratch_files():
    rng, budget = np.random.default_rng(0), 340 << 20  # a vector is 48 MB
    X = sp.csr_array((np.ones(4000), rng.choice(500_000, 4000, replace=False), np.arange(0, 4001, 10)), shape=(400, 500_000))
    manifest = streamcut.rows(X, np.arange(400) % 12.0).manifest
    job = MulticlassJob.planned(TrainOptions(task="multiclass", max_cuts=4), manifest)

    def planned(job):
        machine = Machine(budget, 0, job.workers, in_memory=True)
        return job.needs(manifest).planned(lambda needs: plan_memory(needs, manifest, machine))

    chosen, plan = smallest_change(job, planned, threads=True, manifest=manifest)
    assert chosen.far
    assert plan.total <= budget


# --- the shelf ------------------------------------------------------------------------------------------------------------------


def resident_below(folder) -> int:
    """The resident bytes of this process's mappings of files in a folder, whether they have names or not."""
    found = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    here = [mapping for mapping in found if f"{folder}/" in mapping.partition("\n")[0]]
    return sum(1024 * int(re.search(r"^Rss: +(\d+) kB", mapping, re.MULTILINE)[1]) for mapping in here)


def test_vectors_on_the_shelf_are_not_resident_once_released(tmp_path):
    shelf, n = ScratchShelf(tmp_path), 8_000_000
    vectors = [shelf.put(np.full(n, float(k))) for k in range(3)]
    assert list(tmp_path.iterdir()) == []  # the files have no names
    assert resident_below(tmp_path) == 0
    taken = shelf.take(vectors[2])
    assert resident_below(tmp_path) == 0
    vectors[2][:] = 5.0
    assert resident_below(tmp_path) == 8 * n
    assert taken[-1] == 2.0
    assert [vector[n // 2] for vector in vectors] == [0.0, 1.0, 5.0]


def test_a_full_or_missing_scratch_folder_is_told_at_once(tmp_path, monkeypatch):
    with pytest.raises(NotFoundError, match="scratch"):
        ScratchShelf(tmp_path / "no").zeros(10)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(DiskFullError, match=r"8,000 bytes needed"):
        ScratchShelf(tmp_path).zeros(10, 100)


def test_a_bundle_on_the_shelf_is_that_in_memory(tmp_path):
    rng = np.random.default_rng(2)
    there, here = Bundle(70_000, 10.0, 4, shelf=ScratchShelf(tmp_path)), Bundle(70_000, 10.0, 4)
    for _ in range(7):
        a = rng.standard_normal(70_000) / 300.0
        for bundle in (there, here):
            bundle.add(a, float(rng.uniform(0.5, 1.0)) if bundle is there else there.saved()["b"][-1], CutError(0.0, 0.0))
        ours, theirs = there.solve(1e-9), here.solve(1e-9)
        np.testing.assert_array_equal(ours.w, theirs.w)
        np.testing.assert_array_equal(ours.a, theirs.a)
        assert ours.lower_bound == theirs.lower_bound
    assert there.saved()["gram"].tolist() == here.saved()["gram"].tolist()
