"""Joachims, Training Linear SVMs in Linear Time (KDD 2006); Franc & Sonnenburg, Optimized cutting plane algorithm (ICML 2008).

Of Joachims's five sets none is here: acq of Reuters-21578 and money-fx stand for the texts, covtype_20k (class 1) for Covertype,
a9a (its Adult) and ijcnn1 for the dense ones, flights3m for many rows; LIBSVM with a linear kernel stands for SVM-light. Of Franc
and Sonnenburg's, covtype_20k, mnist, celegans_splice and the artificial one are nearest. ε is in units of mean loss, as there; no
relative rule, no bias. Joachims's C is n times ours.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sets import Rows, narrow, read, rows_of, seconds_of, slope
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC, LinearSVC

from streamcut.io.memory import MemoryDataset
from streamcut.training import train

BEST_C = {  # n·C, Joachims's C
    "a9a": 1600.0, "reuters_moneyfx": 1e4, "reuters21578": 1e4, "covtype_20k": 1e5, "ijcnn1": 5e4, "flights3m": 2.7e4,
}  # fmt: skip
OF_ROWS = {  # C of Franc's experiments; about where the area under the ROC curve of held-out rows is greatest
    "reuters_moneyfx": 3.0, "reuters21578": 1.0, "covtype_20k": 10.0, "mnist": 0.1, "celegans_splice": 0.1, "artificial": 0.001,
    "flights3m": 0.01,
}  # fmt: skip
RANKED = ("ord_abalone", "ord_computer", "ord_california")
EPSILONS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
LIMIT = 300.0  # seconds of one run of LIBSVM
_LOADED: set[str] = set()
SOLVERS: dict[str, dict[str, Any]] = {
    "cpa": {"solver": "cpa"}, "ocas": {"solver": "ocas", "cut": "exact"}, "bundle-dca": {"solver": "bundle-dca"},
}  # fmt: skip


def trained(rows: Rows, C: float, n: int | None = None, **options: Any) -> tuple[Any, float]:
    """(model, seconds) on the first n rows; C is that of a row."""
    data = MemoryDataset(rows.X[:n], rows.y[:n])
    settings = {"bias": 0.0, "tol": 1e-3, "tol_relative": None, "workers": 1, "max_passes": 5000, **options}
    if options.get("task") == "roc-area":
        del settings["bias"]
    kind = f"{settings.get('solver')} {settings.get('cut')} {settings.get('task')}"
    if kind not in _LOADED:  # kernels are loaded, or compiled
        _LOADED.add(kind)
        train(data, C=C, **settings | {"max_passes": 2})
    return seconds_of(lambda: train(data, C=C, **settings))


def passes_of(model: Any) -> int:
    return int(model.history[-1]["passes"])


def libsvm(rows: Rows, C: float, n: int) -> float:
    """Seconds of LIBSVM with a linear kernel."""
    return seconds_of(lambda: SVC(kernel="linear", C=C, cache_size=400).fit(narrow(rows.X[:n]), rows.y[:n]))[1]


def square(X: sp.csr_array) -> float:
    """R²: the greatest squared norm of a row."""
    return float(np.max(X.multiply(X).sum(axis=1)))


def table1(name: str, most: int | None) -> dict[str, Any]:
    """Time on all rows: classification by Algorithm 1, by LIBSVM, and ordinal regression by Algorithm 2."""
    rows = rows_of(name, most)
    n, part = len(rows.y), min(len(rows.y), 3000)
    C = BEST_C[name] / n
    model, seconds = trained(rows, C, solver="cpa")
    result = {"iterations": passes_of(model), "seconds": seconds, "C̄": BEST_C[name], "square": square(rows.X)}
    result["ordinal seconds"] = trained(rows, C, solver="cpa", task="roc-area")[1]
    likely = libsvm(rows, BEST_C[name] / part, part) * (n / part) ** 2  # its time grows like n^1.7 or worse
    return result | ({"libsvm": libsvm(rows, C, n)} if likely < LIMIT else {})


def by_rows(name: str, most: int | None) -> dict[str, Any]:
    """Figures 1 and 2: time and iterations against the number of rows."""
    rows = rows_of(name, most)
    grid = (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 256_000, 1_024_000)
    sizes = [n for n in grid if n < len(rows.y)] + [len(rows.y)]
    result: dict[str, list[float]] = {"n": sizes, "libsvm": []}
    for kind, task in (("", {}), ("ordinal ", {"task": "roc-area"})):
        runs = [trained(rows, BEST_C[name] / n, n, solver="cpa", **task) for n in sizes]
        result[f"{kind}seconds"] = [seconds for _, seconds in runs]
        result[f"{kind}iterations"] = [passes_of(model) for model, _ in runs]
    for n in sizes:
        if result["libsvm"] and result["libsvm"][-1] * 4 > LIMIT:
            break
        result["libsvm"].append(libsvm(rows, BEST_C[name] / n, n))
    return result


def ordinal(name: str, most: int | None) -> dict[str, Any]:
    """Algorithm 2 with five ranks, next to LIBLINEAR on the differences of all pairs: how far above, in mean loss."""
    X, y, _ = read(name, "train")
    taken = np.random.default_rng(0).permutation(len(y))[:600]
    X = sp.csr_array(X[taken] @ sp.diags_array(1.0 / np.maximum(abs(X).max(axis=0).toarray().ravel(), 1e-9)))
    ranks = np.searchsorted(np.quantile(y[taken], (0.2, 0.4, 0.6, 0.8)), y[taken]).astype(np.float64)
    model = train(MemoryDataset(X, ranks), task="ranking", C=1.0, tol=1e-3, tol_relative=None, max_passes=5000, workers=1)
    high, low = np.nonzero(ranks[:, None] > ranks)
    differences, c = X[high] - X[low], len(ranks) / len(high)
    sign = np.where(np.arange(len(high)) % 2, 1.0, -1.0)  # LIBLINEAR wants two classes
    peer = LinearSVC(loss="hinge", C=c, fit_intercept=False, tol=1e-6, max_iter=20_000)
    w = peer.fit(narrow(sp.csr_array(sp.diags_array(sign) @ differences)), sign).coef_[0]
    theirs = 0.5 * w @ w + c * np.maximum(0.0, 1.0 - differences @ w).sum()
    return {"above": float(model.certificate.primal - theirs) / len(ranks)}


def by_epsilon(name: str, most: int | None) -> dict[str, Any]:
    """Figures 4 to 7: iterations, time, accuracy and bound against ε."""
    rows = rows_of(name, most)
    C = BEST_C[name] / len(rows.y)
    optimum = trained(rows, C, solver="bundle-dca", tol=1e-5)[0].certificate.primal
    runs = [trained(rows, C, solver="cpa", tol=epsilon) for epsilon in EPSILONS]
    return {
        "1/ε": [1.0 / epsilon for epsilon in EPSILONS], "iterations": [passes_of(model) for model, _ in runs],
        "seconds": [seconds for _, seconds in runs], "accuracy": [rows.accuracy(model.weights) for model, _ in runs],
        "below": 100 * (1.0 - runs[-1][0].certificate.lower_bound / optimum),
    }  # fmt: skip


def by_cost(name: str, most: int | None) -> dict[str, Any]:
    """Figures 3, 8 and 9: iterations, time and accuracy (next to LIBLINEAR at -e 1e-4) against C."""
    rows = rows_of(name, most)
    grid = [BEST_C[name] * factor / len(rows.y) for factor in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)]
    runs = [trained(rows, C, solver="cpa") for C in grid]
    peers = [LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-4, max_iter=5000).fit(narrow(rows.X), rows.y) for C in grid]
    apart = [rows.accuracy(run[0].weights) - rows.accuracy(peer.coef_) for run, peer in zip(runs, peers, strict=True)]
    return {
        "C": grid, "iterations": [passes_of(model) for model, _ in runs], "seconds": [seconds for _, seconds in runs],
        "apart": float(np.max(np.abs(apart))),
    }  # fmt: skip


def sgd(rows: Rows, C: float, epochs: int = 10) -> tuple[np.ndarray, float]:
    """(w, seconds) of scikit-learn's SGD with Bottou's steps, as svmsgd2."""
    peer = SGDClassifier(alpha=1.0 / (C * len(rows.y)), fit_intercept=False, max_iter=epochs, tol=None, random_state=0)
    seconds = seconds_of(lambda: peer.fit(narrow(rows.X), rows.y))[1]
    return peer.coef_[0], seconds


def table2(name: str, most: int | None) -> dict[str, Any]:
    """Objective, iterations and seconds of every method; SGD of ten epochs above the best."""
    rows, C = rows_of(name, most), OF_ROWS[name]
    runs = {method: trained(rows, C, **options)[0] for method, options in SOLVERS.items()}
    best = min(rows.objective(model.weights, C) for model in runs.values())
    passes = {method: max(int(model.history[-1]["iteration"]), 1) for method, model in runs.items()}
    above = 100 * (rows.objective(sgd(rows, C)[0], C) / best - 1)
    return {**passes, "SGD above": above, "C̄": C * len(rows.y), "square": square(rows.X)}


def figure2(name: str, most: int | None) -> dict[str, Any]:
    """The least objective that SGD reaches in 100 epochs, above that of OCAS, in percent."""
    rows, C = rows_of(name, most), OF_ROWS[name]
    ours = rows.objective(trained(rows, C, **SOLVERS["ocas"], tol=1e-5)[0].weights, C)
    return {"SGD above": 100 * (min(rows.objective(sgd(rows, C, epochs)[0], C) for epochs in (1, 3, 10, 30, 100)) / ours - 1)}


def table3(name: str, most: int | None) -> dict[str, Any]:
    """C chosen by the area under the ROC curve on one half of the test rows: that of the other half, and seconds of it all."""
    rows, result = rows_of(name, most), {}
    for method in ("cpa", "ocas", "SGD"):
        best, whole = (0.0, 0.0), 0.0
        for C in (0.001, 0.01, 0.1, 1.0, 10.0)[: 5 if OF_ROWS[name] >= 1.0 else 4 if OF_ROWS[name] >= 0.1 else 2]:
            model, seconds = sgd(rows, C) if method == "SGD" else trained(rows, C, **SOLVERS[method])
            scores = rows.T @ (model if method == "SGD" else model.weights)
            whole += seconds
            best = max(best, (roc_auc_score(rows.t[::2], scores[::2]), roc_auc_score(rows.t[1::2], scores[1::2])))
        result[method] = {"area": 100 * best[1], "seconds": whole}
    return result


def figure3(name: str, most: int | None) -> dict[str, Any]:
    """e of OCAS's time ~ m^e over the larger half of the sizes."""
    rows = rows_of(name, most)
    m = len(rows.y)
    sizes = [n for n in (300, 1000, 3000, 10_000, 30_000) if n < m] + [m]
    seconds = [trained(rows, OF_ROWS[name] * m / n, n, **SOLVERS["ocas"])[1] for n in sizes]
    return {"e": slope(sizes[len(sizes) // 2 :], seconds[len(sizes) // 2 :])}


def table4(name: str, most: int | None) -> dict[str, Any]:
    """Speed-up of OCAS by two threads, by the clock: medians of five."""
    rows, clock = rows_of(name, most), {}
    data = MemoryDataset(rows.X, rows.y, shard_nnz=max(rows.X.nnz // 16, 1))
    for workers in (1, 2):
        taken = []
        for _ in range(5):
            started = time.perf_counter()
            train(data, C=OF_ROWS[name], **SOLVERS["ocas"], bias=0.0, tol=1e-3, tol_relative=None, lanes=8, workers=workers)
            taken.append(time.perf_counter() - started)
        clock[workers] = float(np.median(taken))
    return {"speed-up": clock[1] / clock[2]}


_FIVE = ("a9a", "reuters_moneyfx", "reuters21578", "covtype_20k", "ijcnn1")
_FRANC = ("reuters_moneyfx", "reuters21578", "covtype_20k", "mnist", "artificial")
SVM_PERF = {
    "table1": (table1, _FIVE), "rows": (by_rows, (*_FIVE, "flights3m")), "epsilon": (by_epsilon, _FIVE), "C": (by_cost, _FIVE),
    "ordinal": (ordinal, RANKED),
}  # fmt: skip
OCAS = {
    "table2": (table2, (*_FRANC, "celegans_splice", "flights3m")), "figure2": (figure2, _FRANC), "table3": (table3, _FRANC),
    "figure3": (figure3, ("celegans_splice",)), "table4": (table4, ("celegans_splice",)),
}  # fmt: skip
