"""What the experiments share: real data in memory, processor time, slopes.

Times are processor time of this process, with one thread unless said: what else the machine does changes them little.
"""

from __future__ import annotations

import lzma
import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

DATA = Path(os.environ.get("STREAMCUT_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
POSITIVE = {"covtype_20k": 1.0, "mnist": 8.0}  # against the rest; elsewhere the greater label
POOLED = ("covtype_20k",)  # its training rows were not drawn like its test rows: all are dealt anew
SCALED = ("covtype_20k", "spambase", "skin_nonskin")  # columns divided by their largest value


class Rows:
    """Training and test rows, shuffled, with labels ±1: X, T sparse float32 (n, d), y, t float64; grey levels are 0 to 1."""

    def __init__(self, name: str, most: int | None = None, *, positive: float | None = None, tests: int | None = None) -> None:
        random = np.random.default_rng(0)
        if name == "artificial":
            n = most or 20_000
            X, y = gaussians(n + n // 2, 500)
            self.X, self.y, self.T, self.t = X[:n], y[:n], X[n:][:tests], y[n:][:tests]
            return
        (X, y), (T, t) = (read(name, split)[:2] for split in ("train", "test"))
        d = max(X.shape[1], T.shape[1])
        X.resize(X.shape[0], d), T.resize(T.shape[0], d)
        if name in POOLED:
            whole, labels, n = sp.vstack([X, T], format="csr"), np.concatenate([y, t]), len(y)
            order = random.permutation(len(labels))
            X, y, T, t = whole[order[:n]], labels[order[:n]], whole[order[n:]], labels[order[n:]]
        if name in SCALED:
            scale = sp.diags_array((1.0 / np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-9)).astype(np.float32))
            X, T = X @ scale, T @ scale
        elif name == "mnist":
            X, T = X / np.float32(255.0), T / np.float32(255.0)
        label = POSITIVE.get(name, y.max()) if positive is None else positive
        order, tested = random.permutation(len(y))[:most], random.permutation(len(t))[:tests]
        self.X, self.y = sp.csr_array(X[order]).astype(np.float32), np.where(y[order] == label, 1.0, -1.0)
        self.T, self.t = sp.csr_array(T[tested]).astype(np.float32), np.where(t[tested] == label, 1.0, -1.0)

    def objective(self, w: np.ndarray, C: float) -> float:
        """½‖w‖² + C Σ hinge over the training rows."""
        w = np.asarray(w, dtype=np.float64).ravel()
        return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - self.y * (self.X @ w)).sum())

    def accuracy(self, w: np.ndarray) -> float:
        """On the test rows, in percent."""
        return 100 * float(np.mean((self.T @ np.asarray(w).ravel() > 0) == (self.t > 0)))


@cache
def rows_of(name: str, most: int | None = None) -> Rows:
    """Rows as they come, read once."""
    return Rows(name, most)


def read(name: str, split: str) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """(rows, labels, queries) of a file."""
    with lzma.open(DATA / name / f"{split}.svm.xz") as file:
        X, y, qid = load_svmlight_file(file, zero_based=False, query_id=True, dtype=np.float32)
    return sp.csr_array(X), y.astype(np.float64), qid


def gaussians(n: int, d: int) -> tuple[sp.csr_array, np.ndarray]:
    """Dense rows of two Gaussians with diagonal covariances of several scales, as Franc and Sonnenburg's artificial set."""
    random = np.random.default_rng(0)
    scales = 10.0 ** np.random.default_rng(1).uniform(-1.0, 1.0, (2, d))
    y = np.where(random.random(n) < 0.5, 1.0, -1.0)
    X = random.standard_normal((n, d)) * scales[(y > 0).astype(int)] + 0.1 * (y[:, None] > 0) * scales.mean(axis=0)
    return sp.csr_array(X.astype(np.float32)), y


def narrow(X: sp.csr_array) -> sp.csr_matrix:
    """With indices of 32 bits, on which scikit-learn insists."""
    return sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)


def seconds_of(work: Callable[[], Any]) -> tuple[Any, float]:
    """(what `work` returns, its processor time)."""
    started = time.process_time()
    result = work()
    return result, time.process_time() - started


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """d of y ~ x^d, by least squares on logarithms; nan with fewer than two points."""
    points = [(a, b) for a, b in zip(x, y, strict=False) if a > 0 and b > 0]
    return float(np.polyfit(*np.log(np.array(points)).T, 1)[0]) if len(points) > 1 else float("nan")
