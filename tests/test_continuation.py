"""Leaving C for a smaller one and coming back: fewer passes, the same certificate, and resumable anywhere on the way."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from streamcut.config import CheckpointOptions
from streamcut.io.memory import MemoryDataset
from streamcut.models.certificate import Certificate, StopReason
from streamcut.oracles.dual.ascent import DualOracle
from streamcut.solvers import continuation, standstill
from streamcut.training import train

OPTIONS = {"solver": "bundle-dca", "C": 30.0, "tol": 1e-3, "tol_relative": None, "max_passes": 300, "lanes": 1}


@pytest.fixture(autouse=True)
def plain_passes(monkeypatch):
    """As several lanes have them; accelerated ones stay at C."""
    monkeypatch.setattr(DualOracle, "accelerated", False)


@cache
def data() -> MemoryDataset:
    """Many rows, few features, labels that no weights can learn: the bound is late for a large C."""
    rng = np.random.default_rng(0)
    X = (rng.random((4000, 120)) < 0.3).astype(np.int8)
    y = np.where(X @ rng.standard_normal(120) + 4.0 * rng.standard_normal(4000) > 0.0, 1.0, -1.0)
    return MemoryDataset(X, y)


@cache
def exact() -> Certificate:
    """Of the same problem, to a hundredth of the gap."""
    return train(data(), row_cache="30%", **{**OPTIONS, "tol": 1e-5, "max_passes": 2000}).certificate


def stages(monkeypatch) -> list[float]:
    """The C of every stage that is entered from now on."""
    seen = []
    move = continuation.Continuation._move

    def watched(self, C, oracle, rule):
        seen.append(C)
        move(self, C, oracle, rule)

    monkeypatch.setattr(continuation.Continuation, "_move", watched)
    return seen


@pytest.mark.parametrize("row_cache", ["0", "2%"])
def test_fewer_passes_to_a_certificate_that_holds(row_cache, monkeypatch):
    assert exact().converged
    seen = stages(monkeypatch)
    model = train(data(), row_cache=row_cache, **OPTIONS)
    assert seen
    assert seen[0] < 30.0
    assert seen[-1] == 30.0
    monkeypatch.setattr(continuation, "_PASSES", 10**9)
    straight = train(data(), row_cache=row_cache, **OPTIONS)
    assert straight.history[-1]["passes"] > 1.3 * model.history[-1]["passes"]
    for found in (model.certificate, straight.certificate):
        assert found.converged
        assert found.lower_bound <= exact().primal
        assert found.primal >= exact().lower_bound
        assert found.c_bar == 30.0 * 4000
    rows = data().read(0)
    w = model.augmented_weights
    primal = 0.5 * w @ w + 30.0 * np.maximum(0.0, 1.0 - rows.y * model.score_chunk(rows)).sum()
    assert model.certificate.primal == pytest.approx(primal, rel=1e-11)
    assert model.witness.bound(model.certificate.c_bar) == pytest.approx(model.certificate.lower_bound, rel=1e-12)


def test_what_is_reported_only_gets_better():
    history = train(data(), row_cache="0", **OPTIONS).history
    primal, bound = ([line[name] for line in history] for name in ("primal", "lower_bound"))
    assert primal == sorted(primal, reverse=True)
    assert bound == sorted(bound)


def test_resumed_at_every_stage_with_the_same_bits(tmp_path, monkeypatch):
    seen = stages(monkeypatch)
    undisturbed = train(data(), row_cache="2%", **OPTIONS)
    assert len(seen) > 2
    folder = str(tmp_path / "run")
    for passes in [*range(2, undisturbed.history[-1]["passes"], 2), 300]:
        options = {**OPTIONS, "max_passes": passes}
        model = train(data(), row_cache="2%", checkpoint=CheckpointOptions(folder, resume=True), **options)
    assert model.certificate.stop_reason is StopReason.CONVERGED
    assert model.weights.tobytes() == undisturbed.weights.tobytes()
    assert model.certificate == undisturbed.certificate
    assert model.witness.a.tobytes() == undisturbed.witness.a.tobytes()
    names = ("passes", "primal", "lower_bound", "step", "cuts", "nnz")
    lines = [[[line[name] for name in names] for line in found.history] for found in (model, undisturbed)]
    assert lines[0] == lines[1]


@pytest.mark.parametrize("passes", range(5, 20, 3))
def test_a_run_that_ends_on_the_way_speaks_of_what_was_asked_for(passes):
    certificate = train(data(), row_cache="0", **{**OPTIONS, "max_passes": passes}).certificate
    assert certificate.c_bar == 30.0 * 4000
    assert certificate.lower_bound <= exact().primal
    assert certificate.primal >= exact().lower_bound


def test_a_point_that_comes_back_worse_than_the_best_one_is_no_standstill(monkeypatch):
    """Where the smaller C is another problem, the point comes back with a larger F than was known: later ones improve it."""
    monkeypatch.setattr(continuation, "_PASSES", 8)
    monkeypatch.setattr(continuation, "_STILL", 1e9)
    monkeypatch.setattr(continuation, "_LATE", 1e-3)
    monkeypatch.setattr(standstill, "_SOME", 2)
    monkeypatch.setattr(standstill, "_MANY", 2)
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 600), density=0.02, format="csr", rng=rng)
    y = np.where(X @ rng.standard_normal(600) + 0.1 * rng.standard_normal(3000) > 0.0, 1.0, -1.0)
    seen = stages(monkeypatch)
    model = train(MemoryDataset(X, y), row_cache="30%", **OPTIONS)
    assert seen
    history = model.history
    assert any(before["primal"] == after["primal"] for before, after in pairwise(history[9:]))
    assert model.certificate.stop_reason is StopReason.CONVERGED
