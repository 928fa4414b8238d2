"""Small trainings of each kind, to be reported."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import streamcut
from streamcut import train


def arrays(classes: int = 2, seed: int = 0, n: int = 500):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, 15), density=0.4, rng=rng, format="csr", data_sampler=rng.standard_normal)
    scores = X @ np.random.default_rng(9).standard_normal((15, classes)) + 0.5 * rng.standard_normal((n, classes))
    return X, np.argmax(scores, axis=1).astype(float)


def trained(kind: str):
    """(a model, data to measure it on)"""
    X, y = arrays(3 if kind in ("multiclass", "rest", "sequence") else 2)
    qid = np.repeat(np.arange(50), 10) if kind in ("ranking", "sequence") else None
    options = {
        "linear": {},
        "logistic": {"loss": "logistic"},
        "regression": {"task": "regression"},
        "bundle-dca": {"solver": "bundle-dca"},
        "multiclass": {"task": "multiclass"},
        "rest": {"task": "multiclass", "strategy": "one-vs-rest"},
        "ranking": {"task": "ranking"},
        "sequence": {"task": "sequence", "max_passes": 60},
        "bsca": {"kernel": "rbf", "budget": 20, "epochs": 3.0, "gamma": 0.1},
        "smo": {"kernel": "rbf", "solver": "smo", "gamma": 0.1},
        "sbp": {"kernel": "rbf", "solver": "sbp", "gamma": 0.1},
        "sampled": {"kernel": "rbf", "solver": "sampled-linear", "gamma": 0.1, "tol": 0.01},
        "nystroem": {"kernel": "rbf", "nystroem": 20, "gamma": 0.1},
    }[kind]
    data = streamcut.rows(X, y, qid=qid)
    return train(data, **options), data
