"""Training that starts from a model: certificates as good as any, fewer passes, and what no training can start from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, save_model, train
from streamcut.errors import NotFoundError, UsageError

ROWS, OLD_ROWS, FEATURES = 660, 600, 30


@cache
def rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, FEATURES), density=0.3, format="csr", rng=rng, data_sampler=rng.standard_normal)
    score = X @ np.random.default_rng(7).standard_normal(FEATURES)
    return sp.csr_array(X), np.where(score + 0.5 * rng.standard_normal(ROWS) > 0.1, 1.0, -1.0), rng.uniform(0.2, 3.0, ROWS)


@cache
def data(n: int = ROWS) -> Any:
    X, y, _ = rows()
    return streamcut.rows(X[:n], y[:n])


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


NUMBER, SEVERAL, RBF = {"task": "regression"}, {"task": "multiclass"}, {"kernel": "rbf", "gamma": 0.5, "budget": 10}
STARTS = [  # what the model was trained on and how, the training that is to begin with it, what the message says
    ("wide", {}, "signs", {}, "30 features, but the data has 29"),
    ("signs", {}, "signs", {"positive_label": -1.0}, "positive label is 1, here it is -1"),
    ("signs", {}, "classes", SEVERAL, "it takes a linear one for several classes"),
    ("other classes", SEVERAL, "classes", SEVERAL, "do not have the same classes"),
    ("signs", {}, "numbers", NUMBER, "model of task binary by bundle-dca; it takes a linear one for numbers"),
    ("numbers", NUMBER, "signs", {}, "model of task regression by newton; it takes a linear one for two classes"),
    ("queries", {"task": "ranking"}, "signs", {}, "a model of task ranking by"),
    ("numbers", {**NUMBER, **RBF}, "numbers", {**NUMBER, **RBF, "loss": "quantile"}, "trained with loss epsilon-insensitive"),
    ("signs", RBF, "signs", {**RBF, "gamma": 1.0}, "was trained with kernel rbf, gamma 0.5; use the same"),
]


def of_kind(kind: str) -> Any:
    X, y, u = rows()
    classes = np.digitize(u, [1.0, 2.0]) + (kind == "other classes")
    y = {"signs": y, "wide": y, "numbers": u}.get(kind, classes.astype(float))
    X = X if kind == "wide" else X[:, :29]
    return streamcut.rows(X[:200], y[:200], qid=np.arange(200) // 10 if kind == "queries" else None)


@pytest.mark.parametrize(("trained", "how", "kind", "options", "message"), STARTS, ids=lambda value: str(value)[:40])
def test_what_no_training_starts_from(trained, how, kind, options, message):
    start = train(of_kind(trained), **how)
    with pytest.raises(UsageError, match=message):
        train(of_kind(kind), **options, warm_start=start)


def test_a_file_that_is_missing_or_whose_proof_does_not_hold_is_no_start(tmp_path):
    with pytest.raises(NotFoundError, match="cannot read"):
        train(data(), warm_start=str(tmp_path / "none.npz"))
    model = train(data())
    save_model(replace(model, witnesses=(replace(model.witnesses[0], b=model.witnesses[0].b + 1.0),)), tmp_path / "m.npz")
    with pytest.raises(UsageError, match="does not hold on this data"):
        train(data(), warm_start=str(tmp_path / "m.npz"))
