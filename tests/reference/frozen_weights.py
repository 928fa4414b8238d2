"""Small trainings, one for each way through the code, whose weights are frozen in frozen_weights.json.

`CASES` are {name: (data, options of train)}, `DATA` makes each data set from a fixed seed, `answer` is what is frozen of a model.
Trainings end after a few passes, long before a stopping rule could end them, so nothing but the numbers themselves is compared.
scripts/tools/freeze_weights.py writes the file; it uses no more of streamcut than `train` and `rows`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import streamcut
from streamcut import train

FILE = Path(__file__).with_suffix(".json")

_PLANES = {"max_passes": 7}
_DCA = {"solver": "bundle-dca", "max_passes": 4, "lanes": 2}
_RBF = {"kernel": "rbf", "gamma": 0.7}
_BUDGETED = {**_RBF, "budget": 12, "tol": None, "tol_relative": None, "bias": 0.0, "max_time": 600.0, "epochs": 2.0}
_ROUNDS = {**_RBF, "bias": 0.0, "tol": None, "tol_relative": None, "max_time": 600.0, "epochs": 2.0}
_SAMPLED = {**_RBF, "C": 0.5, "samples": 25, "max_passes": 12, "tol": 1e-4}
_LINEAR = {**_SAMPLED, "solver": "sampled-linear", "max_passes": 23}  # the same iterations: each reads rows twice
_OVR = "one-vs-rest"
_NYSTROEM = {**_RBF, "nystroem": 15}

CASES = {
    "cpa": ("two", {"solver": "cpa", **_PLANES}),
    "cpa, few cuts, two lanes": ("two", {"solver": "cpa", "max_cuts": 5, "lanes": 2, "max_passes": 9}),
    "ocas, predicted cuts": ("two", {"solver": "ocas", **_PLANES}),
    "ocas, exact cuts": ("two", {"solver": "ocas", "cut": "exact", **_PLANES}),
    "ocas, no bias, weights of a class": ("two", {"solver": "ocas", "bias": 0.0, "positive_weight": 2.5, **_PLANES}),
    "ocas, row weights, shards": ("weighted", {"solver": "ocas", "C": 0.3, "lanes": 2, **_PLANES}),
    "bundle-dca": ("two", {**_DCA, "row_cache": "0"}),
    "bundle-dca, cache": ("two", {**_DCA, "row_cache": "40%"}),
    "bundle-dca, cache of all rows, large C": ("two", {**_DCA, "row_cache": "100%", "C": 30.0, "sweeps": 5}),
    "bundle-dca, row weights, shards": ("weighted", {**_DCA, "row_cache": "50%", "max_passes": 8}),
    "bundle-dca, every value 1": ("ones", {**_DCA, "row_cache": "30%", "bias": 2.0}),
    "newton": ("two", {"solver": "newton", "loss": "logistic", "lanes": 2, "max_passes": 4}),
    "newton, squared loss, row weights": ("weighted", {"solver": "newton", "loss": "squared", "task": "regression", "l1": 3.0}),
    "working-set": ("two", {"solver": "working-set", "loss": "squared-hinge", "l1_only": "20%", "lanes": 2, "max_passes": 4}),
    "classes, bundle-dca": ("classes", {"task": "multiclass", **_DCA, "row_cache": "0"}),
    "classes, bundle-dca, cache": ("classes", {"task": "multiclass", **_DCA, "row_cache": "50%"}),
    "one-vs-rest, bundle-dca": ("classes", {"task": "multiclass", "strategy": _OVR, **_DCA, "row_cache": "0"}),
    "one-vs-rest, bundle-dca, cache": ("classes", {"task": "multiclass", "strategy": _OVR, **_DCA, "row_cache": "50%"}),
    "ranking, pairs": ("queries", {"task": "ranking", "solver": "ocas", **_PLANES}),
    "ranking, queries, cpa": ("queries", {"task": "ranking", "solver": "cpa", "normalisation": "queries", **_PLANES}),
    "ranking, one query": ("levels", {"task": "ranking", "solver": "ocas", **_PLANES}),
    "ROC area": ("two", {"task": "roc-area", "solver": "ocas", **_PLANES}),
    "F1": ("two", {"loss": "f1", "solver": "ocas", **_PLANES}),
    "F1, cpa": ("two", {"loss": "f1", "solver": "cpa", **_PLANES}),
    "precision at k": ("two", {"loss": "prec@k", "k": "15%", "solver": "ocas", **_PLANES}),
    "break-even": ("two", {"loss": "prbep", "solver": "ocas", **_PLANES}),
    "errors": ("two", {"loss": "error", "solver": "ocas", **_PLANES}),
    "sequences, cpa": ("sequences", {"task": "sequence", "solver": "cpa", **_PLANES}),
    "sequences, ocas": ("sequences", {"task": "sequence", "solver": "ocas", **_PLANES}),
    "sequences, bundle-dca": ("sequences", {"task": "sequence", **_DCA}),
    "bsca": ("two", {"solver": "bsca", **_BUDGETED}),
    "bsca, projection, classes": ("classes", {"task": "multiclass", "solver": "bsca", **_BUDGETED, "maintenance": "project"}),
    "bsgd": ("two", {"solver": "bsgd", **_BUDGETED}),
    "bsgd, removal, poly": (
        "two",
        {"solver": "bsgd", **_BUDGETED, "kernel": "poly", "degree": 2, "coef0": 1.0, "maintenance": "remove"},
    ),
    "smo": ("two", {"solver": "smo", **_RBF, "tol": 1e-1}),
    "sbp": ("two", {"solver": "sbp", **_ROUNDS, "nu": 0.3}),
    "sdca": ("two", {"solver": "sdca", **_ROUNDS}),
    "pegasos": ("two", {"solver": "pegasos", **_ROUNDS}),
    "perceptron": ("two", {"solver": "perceptron", **_ROUNDS}),
    "sampled-constant": ("two", {"solver": "sampled-constant", **_SAMPLED}),
    "sampled-linear": ("two", _LINEAR),
    "sampled-linear, classes": ("classes", {"task": "multiclass", **_LINEAR}),
    "sampled-linear, sequences": ("sequences", {"task": "sequence", **_LINEAR}),
    "Nyström features, bundle-dca": ("two", {**_DCA, **_NYSTROEM}),
}


def _rows(rng: np.random.Generator, n: int, d: int = 10):
    return sp.random_array((n, d), density=0.4, format="csr", rng=rng, data_sampler=rng.standard_normal)


def _two() -> Any:
    rng = np.random.default_rng(1)
    X = _rows(rng, 160)
    return streamcut.rows(X, np.where(X @ rng.standard_normal(10) + 0.5 * rng.standard_normal(160) > 0.3, 1.0, -1.0))


def _weighted() -> Any:
    rng = np.random.default_rng(2)
    X = _rows(rng, 160).astype(np.float32)
    y = np.where(X @ rng.standard_normal(10) + rng.standard_normal(160) > 0.0, 2.0, 1.0)
    return streamcut.rows(X, y, weight=rng.integers(0, 5, 160) / 2, shard_nnz=150)


def _ones() -> Any:
    rng = np.random.default_rng(3)
    X = _rows(rng, 160)
    y = np.where(X @ rng.standard_normal(10) > 0.0, 1.0, 0.0)
    return streamcut.rows((X != 0).astype(np.int8), y)


def _classes() -> Any:
    rng = np.random.default_rng(4)
    X = _rows(rng, 150)
    return streamcut.rows(X, np.argmax(X @ rng.standard_normal((10, 3)) + 0.3 * rng.standard_normal((150, 3)), axis=1) + 1.0)


def _queries() -> Any:
    rng = np.random.default_rng(5)
    X = _rows(rng, 150)
    y = np.clip(np.round(X @ rng.standard_normal(10) / 2 + 0.5 * rng.standard_normal(150) + 1), 0, 3)
    return streamcut.rows(X, y, qid=np.repeat(np.arange(25), 6))


def _levels() -> Any:
    rng = np.random.default_rng(6)
    X = _rows(rng, 120)
    return streamcut.rows(X, np.clip(np.round(X @ rng.standard_normal(10) / 2 + 0.5 * rng.standard_normal(120) + 1), 0, 3))


def _sequences() -> Any:
    rng = np.random.default_rng(7)
    lengths = rng.integers(1, 7, 40)
    y = np.concatenate([(rng.integers(3) + np.arange(n)) % 3 for n in lengths]) + 1.0
    X = sp.random_array((len(y), 6), density=0.5, format="csr", rng=rng).toarray()
    X[np.arange(len(y)), y.astype(int)] += rng.random(len(y)) > 0.4
    return streamcut.rows(sp.csr_array(X), y, qid=np.repeat(np.arange(40), lengths))


DATA = {
    "two": _two,
    "weighted": _weighted,
    "ones": _ones,
    "classes": _classes,
    "queries": _queries,
    "levels": _levels,
    "sequences": _sequences,
}
_data = cache(lambda name: DATA[name]())


def answer(name: str) -> list[float]:
    """Weights, intercepts, transitions or coefficients of the model that training `name` gives, one after another."""
    data, options = CASES[name]
    model = train(_data(data), **{"scheduler": "sync", "tol": 1e-12, "tol_relative": None, **options})
    scorer = getattr(model, "inner", getattr(model, "emissions", model))
    names = ("weights", "coefficients", "intercept", "intercepts")
    parts = [getattr(scorer, name) for name in names if hasattr(scorer, name)]
    if "kernel" in options and np.ndim(parts[-1]) == 0:
        parts[-1] = np.full(scorer.scores_per_row, parts[-1])
    parts += [model.transitions] if getattr(model, "transitions", None) is not None else []
    return [number for part in parts for number in np.ravel(part).tolist()]


def frozen() -> dict[str, list[float]]:
    """What the trainings gave when they were frozen."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}
