"""What tests/models/test_exports.py and tests/inside/models/test_exports.py share."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut

ROWS = 10_000


@pytest.fixture(scope="module")
def problem() -> tuple[sp.csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    X = sp.random_array((ROWS, 40), density=0.3, rng=rng, format="csr", data_sampler=rng.normal)
    return X, X @ rng.normal(size=(40, 4)) + rng.normal(size=(ROWS, 4))


KINDS = {
    "hinge": {"loss": "hinge"},
    "logistic": {"loss": "logistic"},
    "F1": {"loss": "f1"},
    "four classes": {"task": "multiclass"},
    "softmax": {"task": "multiclass", "loss": "softmax"},
    "one-vs-rest": {"task": "multiclass", "strategy": "one-vs-rest"},
    "one-vs-rest, logistic": {"task": "multiclass", "strategy": "one-vs-rest", "loss": "logistic"},
}


@pytest.fixture(scope="module", params=KINDS)
def model(request, problem):
    X, scores = problem
    y = scores.argmax(axis=1) if "task" in KINDS[request.param] else np.sign(scores[:, 0])
    return streamcut.train(streamcut.rows(X[:300], y[:300].astype(float)), C=0.3, tol_relative=0.1, **KINDS[request.param])
