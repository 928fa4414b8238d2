"""Training that starts from a model: certificates as good as any, fewer passes, and what no training can start from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, save_model, train
from streamcut.errors import NotFoundError, UsageError

RNG = np.random.default_rng(0)
X = sp.random_array((660, 30), density=0.3, format="csr", rng=RNG, data_sampler=RNG.standard_normal)
SIGNS = np.where(X @ np.random.default_rng(7).standard_normal(30) + 0.5 * RNG.standard_normal(660) > 0.1, 1.0, -1.0)
NUMBERS = RNG.uniform(0.2, 3.0, 660)
DATA = streamcut.rows(X, SIGNS)


@pytest.mark.parametrize("solver", ["ocas", "bundle-dca"])
def test_a_training_from_a_model_is_stopped_and_resumed_from_that_model_alone(solver, tmp_path):
    start = train(streamcut.rows(X[:600], SIGNS[:600]))
    options, folder = {"solver": solver, "tol": 1e-6, "tol_relative": None}, str(tmp_path / "run")
    whole = train(DATA, warm_start=start, **options)
    train(DATA, warm_start=start, checkpoint=folder, max_passes=3, **options)
    goes_on = CheckpointOptions(folder, resume=True)
    with pytest.raises(UsageError, match="warm_start"):
        train(DATA, warm_start=train(DATA, C=3.0), checkpoint=goes_on, **options)
    resumed = train(DATA, warm_start=start, checkpoint=goes_on, **options)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert [line["passes"] for line in resumed.history] == [line["passes"] for line in whole.history]


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


def of_kind(kind: str):
    classes = np.digitize(NUMBERS, [1.0, 2.0]) + (kind == "other classes")
    y = {"signs": SIGNS, "wide": SIGNS, "numbers": NUMBERS}.get(kind, classes.astype(float))
    qid = np.arange(200) // 10 if kind == "queries" else None
    return streamcut.rows(X[:200] if kind == "wide" else X[:200, :29], y[:200], qid=qid)


@pytest.mark.parametrize(("trained", "how", "kind", "options", "message"), STARTS, ids=lambda value: str(value)[:40])
def test_what_no_training_starts_from(trained, how, kind, options, message):
    start = train(of_kind(trained), **how)
    with pytest.raises(UsageError, match=message):
        train(of_kind(kind), **options, warm_start=start)


def test_a_file_that_is_missing_or_whose_proof_does_not_hold_is_no_start(tmp_path):
    with pytest.raises(NotFoundError, match="cannot read"):
        train(DATA, warm_start=str(tmp_path / "none.npz"))
    model = train(DATA)
    save_model(replace(model, proofs=(replace(model.proofs[0], b=model.proofs[0].b + 1.0),)), tmp_path / "m.npz")
    with pytest.raises(UsageError, match="does not hold on this data"):
        train(DATA, warm_start=str(tmp_path / "m.npz"))
