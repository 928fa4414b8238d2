"""Training that starts from a model: certificates as good as any, fewer passes, and what no training can start from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, load_model, save_model, train
from streamcut.errors import NotFoundError, UsageError

ROWS, OLD_ROWS, FEATURES = 660, 600, 30


@cache
def rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, FEATURES), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    score = X @ np.random.default_rng(7).standard_normal(FEATURES)
    return sp.csr_array(X), np.where(score + 0.5 * rng.standard_normal(ROWS) > 0.1, 1.0, -1.0), rng.uniform(0.2, 3.0, ROWS)


@cache
def data(n: int = ROWS, features: int = FEATURES, weighted: bool = False) -> Any:
    X, y, u = rows()
    return streamcut.rows(X[:n, :features], y[:n], weight=u[:n] if weighted else None)


@pytest.fixture
def saved(tmp_path):
    """`saved(data, **options)` → the path of a model trained so."""

    def saved(dataset: Any, **options) -> str:
        path = str(tmp_path / "start.npz")
        save_model(train(dataset, **options), path)
        return path

    return saved


def passes(model) -> int:
    return model.history[-1]["passes"]


@pytest.mark.parametrize("solver", ["ocas", "bundle-dca"])
def test_stopped_and_resumed(solver, saved, tmp_path):
    options = {"solver": solver, "tol": 1e-6, "tol_relative": None, "warm_start": saved(data(OLD_ROWS))}
    whole = train(data(), **options)
    folder = str(tmp_path / "run")
    train(data(), checkpoint=folder, **{**options, "max_passes": 3})
    resumed = train(data(), checkpoint=CheckpointOptions(folder, resume=True), **options)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert passes(resumed) == passes(whole)
    assert len(resumed.history) == len(whole.history)


def test_resumed_from_another_model(saved, tmp_path):
    folder = str(tmp_path / "run")
    train(data(), checkpoint=folder, warm_start=saved(data(OLD_ROWS)), max_passes=2)
    with pytest.raises(UsageError, match="warm_start"):
        train(data(), checkpoint=CheckpointOptions(folder, resume=True), warm_start=saved(data(), C=3.0))


def test_what_no_training_starts_from(saved, tmp_path):
    before = saved(data())
    model = load_model(before)
    other = str(tmp_path / "other.npz")
    with pytest.raises(UsageError, match="has 30 features, but the data has 29"):
        train(data(features=29), warm_start=before)
    with pytest.raises(UsageError, match="positive label is 1, here it is -1"):
        train(data(), positive_label=-1.0, warm_start=before)
    with pytest.raises(NotFoundError, match="cannot read"):
        train(data(), warm_start=str(tmp_path / "none.npz"))
    save_model(replace(model, problem=replace(model.problem, labels=None, task="ranking")), other)
    with pytest.raises(UsageError, match="a model of task ranking by bundle-dca"):
        train(data(), warm_start=other)
    save_model(replace(model, witnesses=(replace(model.witnesses[0], b=model.witnesses[0].b + 1.0),)), other)
    with pytest.raises(UsageError, match="does not hold on this data"):
        train(data(), warm_start=other)
