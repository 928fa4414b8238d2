"""Linear families for bench_families.py: a set's rows, our options, the sum of losses, and peers at their own settings.

The bias is a feature of ones for everybody. Sets marked with * were used for no tuning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from cases import load, seconds_of
from liblinear import liblinearutil
from scipy.special import logsumexp
from sklearn.linear_model import ElasticNet, LogisticRegression, Ridge

from streamcut.compiled import multiclass
from streamcut.io.memory import MemoryDataset
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.training import train

EPSILON, L1 = 0.1, 1.0
TWO = ("a9a", "ijcnn1", "reuters_moneyfx", "usps:3*", "susy_30k*", "covtype_20k:2", "skin_nonskin*")
NUMBERS = ("ord_computer", "ord_abalone", "ord_bank32nh", "ord_california*")
CLASSES = ("dna", "usps", "letter*", "news20_bydate", "sector*")

Peer = tuple[float, Any]  # seconds, and what the objective takes


def narrow(X: sp.csr_array) -> sp.csr_matrix:
    """With indices of 32 bits, on which scikit-learn and LIBLINEAR insist."""
    X = sp.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


@cache
def with_ones(name: str) -> sp.csr_matrix:
    """Rows with a feature of ones."""
    X = load(name)[0]
    return narrow(sp.hstack([X, np.ones((X.shape[0], 1))]))


@dataclass(frozen=True)
class Family:
    """The options of `train`, the sum of losses of scores, sets, and peers by name: their seconds and weights (d + 1, K)."""

    options: dict[str, Any]
    loss: Callable[[np.ndarray, np.ndarray], float]
    sets: tuple[str, ...]
    peers: dict[str, Callable[[sp.csr_matrix, np.ndarray, float], Peer]]
    l1: float = 0.0
    Cs: tuple[float, ...] = field(default=(0.1, 1.0, 10.0))

    def theirs(self, name: str, C: float) -> dict[str, Callable[[], Peer]]:
        """Runs of the peers."""
        ones, y = with_ones(name), load(name)[1]
        return {peer: lambda run=run: run(ones, y, C) for peer, run in self.peers.items()}

    def objective(self, name: str, C: float, W: np.ndarray) -> float:
        """½‖W‖² + l1 ‖W‖₁ + C times the losses."""
        regulariser = 0.5 * float((W * W).sum()) + self.l1 * float(np.abs(W).sum())
        return regulariser + C * self.loss(with_ones(name) @ W, load(name)[1])

    def ours(self, name: str, C: float, stop: dict[str, Any]) -> dict[str, Any]:
        """Seconds, objective, lower bound (None of held-out losses), passes."""
        X, y, _ = load(name)
        data = MemoryDataset(X, y)
        seconds, model = seconds_of(lambda: train(data, C=C, scheduler="sync", **self.options, **stop))
        certificates = model.certificates
        return result_of(seconds, sum(c.primal for c in certificates), sum(c.lower_bound for c in certificates), model)

    def has_target(self) -> bool:
        """Whether a training can end at an objective; one-vs-rest has one for each class."""
        return self.options.get("strategy") != "one-vs-rest"


def result_of(seconds: float, primal: float, bound: float | None, model: Any) -> dict[str, Any]:
    history = getattr(model, "history", None) or [{}]
    return {"seconds": seconds, "primal": primal, "bound": bound, "passes": history[-1].get("passes", 0)}


def margins(loss: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], float]:
    """The sum of `loss` of the margins of two classes."""
    return lambda scores, y: float(loss(y * scores.ravel()).sum())


def residuals(loss: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray, np.ndarray], float]:
    """The sum of `loss` of the residuals."""
    return lambda scores, y: float(loss(np.abs(scores.ravel() - y)).sum())


def crammer_singer(scores: np.ndarray, y: np.ndarray) -> float:
    losses = np.empty(len(y))
    loss = CrammerSinger(scores.shape[1])
    multiclass.losses(loss, np.searchsorted(np.unique(y), y), np.ascontiguousarray(scores), losses)
    return float(losses.sum())


def one_vs_rest(scores: np.ndarray, y: np.ndarray) -> float:
    return float(np.maximum(0.0, 1.0 - np.where(y[:, None] == np.unique(y), 1.0, -1.0) * scores).sum())


def softmax(scores: np.ndarray, y: np.ndarray) -> float:
    return float((logsumexp(scores, axis=1) - scores[np.arange(len(y)), np.searchsorted(np.unique(y), y)]).sum())


def liblinear(kind: int, more: str = "") -> Callable[[sp.csr_matrix, np.ndarray, float], Peer]:
    """LIBLINEAR -s `kind` at its own tolerance."""

    def run(X: sp.csr_matrix, y: np.ndarray, C: float) -> Peer:
        problem = liblinearutil.problem(y, X)
        settings = liblinearutil.parameter(f"-s {kind} -c {C} -q {more}")
        seconds, model = seconds_of(lambda: liblinearutil.train(problem, settings))
        columns = 1 if kind >= 11 or (model.nr_class == 2 and kind != 4) else model.nr_class
        W = np.ctypeslib.as_array(model.w, (X.shape[1] * columns,)).reshape(-1, columns).copy()
        if kind < 11:
            labels = np.array(model.get_labels())
            W = W * (1.0 if labels[0] == y.max() else -1.0) if columns == 1 else np.ascontiguousarray(W[:, np.argsort(labels)])
        return seconds, W

    return run


def estimator(make: Callable[[float], Any], dense: bool = False) -> Callable[[sp.csr_matrix, np.ndarray, float], Peer]:
    """An estimator of scikit-learn at its own tolerance."""

    def run(X: sp.csr_matrix, y: np.ndarray, C: float) -> Peer:
        model, inputs = make(C), X.toarray() if dense else X
        seconds, _ = seconds_of(lambda: model.fit(inputs, y))
        coef = model.coef_
        return seconds, np.atleast_2d(coef).T

    return run


def logistic(**how: Any) -> Callable[[sp.csr_matrix, np.ndarray, float], Peer]:
    return estimator(lambda C: LogisticRegression(C=C, fit_intercept=False, **how))


def ridge(**how: Any) -> Callable[[sp.csr_matrix, np.ndarray, float], Peer]:
    return estimator(lambda C: Ridge(alpha=1 / C, fit_intercept=False, **how))


def net(C: float) -> LogisticRegression:
    return LogisticRegression(C=C / 2, l1_ratio=0.5, solver="saga", fit_intercept=False, max_iter=1000)


def lasso(dense: bool) -> Callable[[sp.csr_matrix, np.ndarray, float], Peer]:
    """ElasticNet with the same objective, divided by nC."""

    def run(X: sp.csr_matrix, y: np.ndarray, C: float) -> Peer:
        def make(C: float) -> ElasticNet:
            return ElasticNet(alpha=(1 + L1) / (len(y) * C), l1_ratio=L1 / (1 + L1), fit_intercept=False)

        return estimator(make, dense)(X, y, C)

    return run


HINGE, LOG = (lambda z: np.maximum(0.0, 1.0 - z)), (lambda z: np.logaddexp(0.0, -z))
LINEAR: dict[str, Family] = {
    "hinge": Family({"loss": "hinge"}, margins(HINGE), TWO, {"LIBLINEAR -s 3": liblinear(3)}),
    "squared hinge": Family(
        {"loss": "squared-hinge"}, margins(lambda z: HINGE(z) ** 2), TWO,
        {"LIBLINEAR -s 1": liblinear(1), "LIBLINEAR -s 2": liblinear(2)},
    ),
    "logistic": Family(
        {"loss": "logistic"}, margins(LOG), TWO,
        {"LIBLINEAR -s 0": liblinear(0), "LIBLINEAR -s 7": liblinear(7), "lbfgs": logistic()},
    ),
    "logistic, elastic net": Family(
        {"loss": "logistic", "l1": L1}, margins(LOG), TWO[:5], {"saga": estimator(net)}, l1=L1
    ),
    "squared": Family(
        {"task": "regression", "loss": "squared"}, residuals(lambda r: 0.5 * r * r), NUMBERS,
        {"Ridge": ridge(), "Ridge, Cholesky": ridge(solver="cholesky")},
    ),
    "squared, elastic net": Family(
        {"task": "regression", "loss": "squared", "l1": L1}, residuals(lambda r: 0.5 * r * r), NUMBERS,
        {"ElasticNet": lasso(False), "ElasticNet, dense": lasso(True)}, l1=L1,
    ),
    "ε-insensitive": Family(
        {"task": "regression", "loss": "epsilon-insensitive", "epsilon": EPSILON},
        residuals(lambda r: np.maximum(0.0, r - EPSILON)), NUMBERS, {"LIBLINEAR -s 13": liblinear(13, f"-p {EPSILON}")},
    ),
    "squared ε-insensitive": Family(
        {"task": "regression", "loss": "squared-epsilon-insensitive", "epsilon": EPSILON},
        residuals(lambda r: np.maximum(0.0, r - EPSILON) ** 2), NUMBERS,
        {"LIBLINEAR -s 11": liblinear(11, f"-p {EPSILON}"), "LIBLINEAR -s 12": liblinear(12, f"-p {EPSILON}")},
    ),
    "one-vs-rest": Family(
        {"task": "multiclass", "loss": "hinge", "strategy": "one-vs-rest"}, one_vs_rest, CLASSES, {"LIBLINEAR -s 3": liblinear(3)}
    ),
    "Crammer-Singer": Family({"task": "multiclass"}, crammer_singer, CLASSES, {"LIBLINEAR -s 4": liblinear(4)}),
    "softmax": Family({"task": "multiclass", "loss": "softmax"}, softmax, CLASSES[:4], {"lbfgs": logistic()}, Cs=(0.1, 1.0)),
}  # fmt: skip
