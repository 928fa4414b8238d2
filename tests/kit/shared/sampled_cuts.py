"""What tests/solvers/test_sampled_cuts.py and tests/inside/solvers/test_sampled_cuts.py share."""

from functools import cache

import numpy as np
import scipy.sparse as sp

import streamcut
from streamcut import CheckpointOptions, train

SOLVERS = ("sampled-linear", "sampled-constant")
RBF = {"kernel": "rbf", "gamma": 0.5}


@cache
def rings(n=120, seed=0):
    """(X, y): two classes that no line parts."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, 3)) > 0.2, rng.standard_normal((n, 3)), 0.0)
    return X, np.where(X[:, 0] ** 2 + np.sin(2 * X[:, 1]) + 0.3 * rng.standard_normal(n) > 0.8, 2.0, 1.0)


def coefficients_of(model, X):
    """The model's coefficients by row of X."""
    rows = {row.tobytes(): i for i, row in enumerate(X)}
    places = [rows[vector.tobytes()] for vector in model.support.toarray()]
    found = np.zeros((len(X), *model.coefficients.shape[1:]))
    found[places] = model.coefficients
    return found


def words(count=40, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, count)
    y = np.concatenate([(rng.integers(3) + np.arange(n)) % 3 for n in lengths])
    angle = 2 * np.pi * (y + 0.8 * rng.standard_normal(len(y))) / 6
    return sp.csr_array(np.stack([np.cos(2 * angle), np.sin(2 * angle)], 1)), y + 1.0, np.repeat(np.arange(count), lengths)


def checkpointed(solver, folder, task, **more):
    """Trained with checkpoints in `folder`, gone on with if there are any."""
    if task == "sequence":
        X, y, qid = words(150)
        data = streamcut.rows(X, y, qid=qid, shard_nnz=200)
    else:
        X, y = rings(400)
        data = streamcut.rows(X, y, weight=None if task == "binary" else 1.0 + X[:, 0] ** 2, shard_nnz=300)
    kept = CheckpointOptions(str(folder), every=0.0, resume=True) if folder is not None else None
    how = {"task": task, "solver": solver, "samples": 20, "tol": 1e-2, "checkpoint": kept, **RBF}
    return train(data, **how, **more)


@cache
def undisturbed(solver, task):
    return everything(checkpointed(solver, None, task))


def everything(model):
    """All that must not change, whatever happened in between."""
    inner = getattr(model, "emissions", model)
    path = [[value for name, value in line.items() if name != "seconds"] for line in inner.history]
    proved = inner.certificate, inner.point and (inner.point.coefficients.tobytes(), inner.point.dense.tobytes())
    return path, inner.facts, inner.support.data.tobytes(), inner.coefficients.tobytes(), str(model.stop_reason), proved
