"""Yu & Joachims, Training Structural SVMs with Kernels Using Sampled Cuts (KDD 2008), section 6.

Checkers is made here at any size: points of the unit square, the class of their field of a 4 × 4 board, moved by Gaussian noise
of a fiftieth of a field's side. Adult is a9a's training set, 22,697 rows of it to train on and the rest to test, as in the paper.
Covertype is the 20,000-row sample, class 2 against the rest. Nyström features stand for its Cholesky, LIBSVM for SVM-light.
The paper has Ψ(x, y) = yφ(x), hence loss max(0, 1 − 2yf): its C is 4 of ours. Times are processor time of all threads.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from sets import Rows, narrow, read
from sklearn.svm import SVC

from streamcut.io.memory import MemoryDataset
from streamcut.prediction import predict
from streamcut.training import train

OURS = 4.0  # times the paper's C
SIGMA2 = {"checkers": 0.05, "adult": 20.0, "covertype": 1.7}
TABLE_C = {"checkers": 1.0, "adult": 100.0, "covertype": 1.0}
SAMPLED = ("sampled-constant", "sampled-linear")
LIMIT = 3600.0  # seconds of one training
Data = tuple[sp.csr_array, np.ndarray, sp.csr_array, np.ndarray]


def checkers(n: int, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """n points of the board, float32, and their classes ±1."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = np.where(np.floor(4 * X).sum(axis=1) % 2 == 0, 1.0, -1.0)
    return sp.csr_array((X + 0.005 * rng.standard_normal((n, 2))).astype(np.float32)), y


@cache
def problem(name: str, n: int) -> Data:
    """(X, y, X_test, y_test) with n training rows at most."""
    if name == "checkers":
        return (*checkers(n, 0), *checkers(50_000, 1))
    if name == "adult":
        X, y, _ = read("a9a", "train")
        order = np.random.default_rng(0).permutation(len(y))
        first, rest = order[: min(n, 22_697)], order[22_697:]
        return X[first], np.sign(y[first] - 0.5), X[rest], np.sign(y[rest] - 0.5)
    rows = Rows("covtype_20k", n, positive=2.0)
    return rows.X, rows.y, rows.T, rows.t


def run(name: str, n: int, method: str, r: int, C: float, seed: int) -> dict[str, Any]:
    """One training: what was asked, what it cost, the errors in percent."""
    X, y, T, t = problem(name, n)
    gamma, started = 1.0 / (2.0 * SIGMA2[name]), time.process_time()
    line = {"N": len(y), "method": method if method == "LIBSVM" else f"{method} {r}", "r": r, "C": C, "seed": seed}
    if method == "LIBSVM":
        machine = SVC(C=OURS * C, gamma=gamma, cache_size=1000).fit(narrow(X), y)
        line["seconds"] = time.process_time() - started
        tests, on_training = machine.predict(narrow(T)), machine.predict(narrow(X[:20_000]))
    else:
        late = lambda: time.process_time() - started > LIMIT  # noqa: E731
        how = {"solver": "ocas", "nystroem": r} if method == "Nyström" else {"solver": method, "samples": r}
        model = train(MemoryDataset(X, y), kernel="rbf", gamma=gamma, C=OURS * C, bias=0, seed=seed, stop=late, **how)
        line |= {"seconds": time.process_time() - started, "interrupted": str(model.stop_reason) == "interrupted"}
        if method in SAMPLED:
            line["iterations"] = model.facts["iterations"]
            if model.certificate is not None:
                line["gap"] = (model.certificate.primal - model.certificate.lower_bound) / (OURS * C * len(y))
        tests, on_training = predict(model, MemoryDataset(T, t)), predict(model, MemoryDataset(X[:20_000], y[:20_000]))
    return line | {"test_error": 100 * float(np.mean(tests != t)), "train_error": 100 * float(np.mean(on_training != y[:20_000]))}


def by_rows(name: str, most: int | None) -> list[dict[str, Any]]:
    """Figures 1 to 3: time and errors against the number of rows, with 400 samples."""
    sizes = [1_000, 10_000, 100_000, 1_000_000] if name == "checkers" else [2_000, 5_000, 15_120]
    sizes = [n for n in sizes if n <= (most or n)] or [most or 0]
    return [run(name, n, method, 400, 1.0, 0) for n in sizes for method in (*SAMPLED, "LIBSVM") if method != "LIBSVM" or n <= 3e4]


def by_samples(name: str, most: int | None) -> list[dict[str, Any]]:
    """Figures 4 to 7: time, iterations and errors against the number of samples."""
    sizes, costs = ((50, 100), (1.0,)) if most else ((100, 400, 1000, 4000), (0.01, 0.1, 1.0, 10.0, 100.0))
    lines = [run(name, most or 22_697, method, r, C, 0) for C in costs for method in SAMPLED for r in sizes]
    return [line for line in lines if not line["interrupted"]]


def table(name: str, most: int | None) -> list[dict[str, Any]]:
    """Table 1: three seeds of sampled cuts, next to Nyström features and LIBSVM."""
    return list(_table(name, most or {"checkers": 1_000_000, "adult": 22_697, "covertype": 15_120}[name]))


def _table(name: str, n: int) -> Iterator[dict[str, Any]]:
    C = TABLE_C[name]
    if n <= 3e4:
        yield run(name, n, "LIBSVM", 0, C, 0)
    for r in (250,) if name == "checkers" else (250, 500):
        yield run(name, n, "Nyström", r, C, 0)
    for method in SAMPLED:
        for r in (400, 1000):
            yield from (run(name, n, method, r, C, seed) for seed in range(3))


PARTS = {
    "rows": (by_rows, ("checkers", "covertype")), "samples": (by_samples, ("adult",)),
    "table": (table, ("checkers", "adult", "covertype")),
}  # fmt: skip
