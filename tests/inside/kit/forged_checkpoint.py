"""Trainings that are stopped, and gone on with from checkpoints that somebody forged."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, train
from streamcut.foundation.files import write_stream_durably
from streamcut.io.memory import MemoryDataset
from streamcut.models.checkpoint import StoredCheckpoint, checkpoint_parts, open_checkpoint

KERNEL = {"kernel": "rbf", "gamma": 0.3}


RUNS: dict[str, dict[str, Any]] = {
    "ocas": {"solver": "ocas"},
    "cpa": {"solver": "cpa", "l1": 0.1},
    "bundle-dca": {"solver": "bundle-dca", "row_cache": "50%"},
    "squared hinge": {"solver": "bundle-dca", "loss": "squared-hinge"},
    "poisson": {"task": "regression", "loss": "poisson", "solver": "bundle-dca", "labels": "counts"},
    "crammer-singer": {"task": "multiclass", "solver": "bundle-dca", "labels": "classes"},
    "softmax": {"task": "multiclass", "loss": "softmax", "solver": "bundle-dca", "labels": "classes"},
    "one-vs-rest": {"task": "multiclass", "strategy": "one-vs-rest", "solver": "bundle-dca", "labels": "classes"},
    "ranking": {"task": "ranking", "labels": "counts", "qid": True},
    "roc-area": {"task": "roc-area"},
    "f1": {"task": "binary", "loss": "f1"},
    "one-class": {"task": "one-class", "labels": "one", "C": None},
    "sequence": {"task": "sequence", "labels": "classes", "qid": True, "solver": "bundle-dca"},
    "smo": {"solver": "smo", **KERNEL, "tol": 1e-9, "tol_relative": None, "max_passes": None},
    "sdca": {"solver": "sdca", "tol": None, **KERNEL, "bias": 0.0, "epochs": 2.0, "max_passes": None},
    "sbp": {"solver": "sbp", "tol": None, **KERNEL, "epochs": 2.0, "max_passes": None},
    "bsca": {"solver": "bsca", "tol": None, **KERNEL, "budget": 20, "epochs": 2.0, "max_passes": None},
    "sampled cuts": {"task": "multiclass", "solver": "sampled-linear", "samples": 20, "labels": "classes"},
}


COMMON = {"C": 1.0, "lanes": 2, "max_passes": 4, "tol": 1e-9, "tol_relative": None, "scheduler": "sync"}


def rows(labels: str, n: int = 120):
    """(X, y, qid)."""
    rng = np.random.default_rng(5)
    X = sp.random_array((n, 9), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    score = X @ rng.standard_normal((9, 3)) + 0.5 * rng.standard_normal((n, 3))
    if labels == "one":
        return abs(X), np.ones(n), np.arange(n)
    y = {"two": np.where(score[:, 0] > 0.0, 1.0, -1.0), "classes": score.argmax(axis=1) + 0.0}
    y["counts"] = rng.poisson(np.exp(np.clip(score[:, 0], -2, 2))).astype(float)
    return X, y[labels], np.arange(n) // 10


def job(name: str) -> tuple[MemoryDataset, dict[str, Any]]:
    options = {**COMMON, **RUNS[name]}
    X, y, qid = rows(options.pop("labels", "two"))
    data = streamcut.rows(X, y, qid=qid if options.pop("qid", False) else None, shard_nnz=200)
    one = options.get("solver") in ("smo", "sdca", "sbp", "bsca", "sampled-linear")
    return data, {key: value for key, value in options.items() if value is not None and not (one and key == "lanes")}


def stopped(name: str, folder) -> StoredCheckpoint:
    """The checkpoint of a run that was stopped on its way."""
    data, options = job(name)
    asked = iter(range({"smo": 1, "bsca": 2}.get(name, 40)))
    train(data, checkpoint=CheckpointOptions(str(folder), every=0.0), stop=lambda: next(asked, None) is None, **options)
    return max((open_checkpoint(path) for path in folder.glob("*.checkpoint")), key=lambda each: each.record["generation"])


def resumed(name: str, folder, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """What training makes of a checkpoint."""
    for old in folder.glob("*.checkpoint"):
        old.unlink()
    write_stream_durably(folder / "even.checkpoint", *checkpoint_parts(record, arrays, lambda: None))
    data, options = job(name)
    return train(data, checkpoint=CheckpointOptions(str(folder), resume=True), **options)
