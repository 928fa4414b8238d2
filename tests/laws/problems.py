"""The rows and the trainings that the laws are asked of, and what each training minimises, written out in NumPy.

Nothing here knows how streamcut computes anything. A new loss, penalty or method is a line of `TRAININGS` (and of `ROW_LOSSES`).
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import streamcut


class Rows(NamedTuple):
    """X is CSR (n, d), y float64 (n,); qid int64 (n,), ascending; weight float64 (n,)."""

    X: sp.csr_array
    y: np.ndarray
    qid: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __getitem__(self, rows) -> Rows:
        """The rows of a slice or with the numbers `rows`."""
        return Rows(*(None if column is None else column[rows] for column in self))

    def in_memory(self, **options):
        """The rows as a data set."""
        return streamcut.rows(self.X, self.y, qid=self.qid, weight=self.weight, **options)

    def store(self, path, **options) -> str:
        """Written as a store, in four batches."""
        with streamcut.create(path, **options) as out:
            for start in range(0, len(self.y), 60):
                X, y, qid, weight = (None if column is None else column[start : start + 60] for column in self)
                out.append(X, y, **{name: v for name, v in (("qid", qid), ("weight", weight)) if v is not None})
        return str(path)


def _random(seed: int, n: int = 240, d: int = 8) -> tuple[np.random.Generator, sp.csr_array, np.ndarray]:
    """A generator, a sparse X, and noisy scores of a linear model."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.5, format="csr", rng=rng, data_sampler=rng.standard_normal)
    return rng, X, X @ rng.standard_normal(d) + 0.6 * rng.standard_normal(n)


def _weighted() -> Rows:
    rng, X, s = _random(1)
    return Rows(X, np.where(s > 0.4, 1.0, -1.0), weight=rng.integers(0, 5, len(s)) / 2)


def _signs() -> Rows:
    _, X, s = _random(8)
    return Rows(X, np.where(s > 0.5, 1.0, -1.0))


def _ones() -> Rows:
    """Every value is 1: such rows are stored without values."""
    _, X, s = _random(2)
    return Rows(sp.csr_array((X != 0).astype(np.float32)), np.where(s > 0, 1.0, -1.0))


def _numbers() -> Rows:
    """As `_counts` and `_classes` with weights, of 1: kernels are compiled for one kind of rows only."""
    _, X, s = _random(3)
    return Rows(X, np.round(2 * s, 2), weight=np.ones(240))


def _counts() -> Rows:
    _, X, s = _random(4)
    return Rows(X, np.round(np.exp(np.clip(s, -2, 2))), weight=np.ones(240))


def _classes() -> Rows:
    rng, X, _ = _random(5)
    y = np.argmax(X @ rng.standard_normal((8, 3)) + 0.4 * rng.standard_normal((240, 3)), axis=1) + 1.0
    return Rows(X, y, weight=np.ones(240))


def _queries() -> Rows:
    """Of 1 to 12 rows; in some all labels are equal."""
    rng, X, s = _random(6)
    qid, y = np.sort(rng.integers(0, 40, 240)), np.clip(np.round(s / 2 + 1), 0, 3)
    return Rows(X, np.where(qid % 8 == 0, 1.0, y), qid=qid)


def _sequences() -> Rows:
    rng, X, _ = _random(7)
    y = np.arange(240) // 2 % 3 + 1.0
    X = X.toarray()
    X[np.arange(240), y.astype(int)] += rng.random(240) > 0.4
    return Rows(sp.csr_array(X), y, qid=np.repeat(np.arange(60), 4))


ROWS = {
    "weighted": _weighted(),
    "signs": _signs(),
    "ones": _ones(),
    "numbers": _numbers(),
    "counts": _counts(),
    "classes": _classes(),
    "classes, no weights": _classes()._replace(weight=None),
    "queries": _queries(),
    "sequences": _sequences(),
}


class Training(NamedTuple):
    """`options` of `train` on ROWS[rows]; `passes` that it takes with its default tolerances, and to a relative gap of 10⁻⁵."""

    rows: str
    options: dict[str, Any]
    passes: tuple[int, int] | None = None


_NUMBERS = {"task": "regression"}
_CLASSES = {"task": "multiclass"}
_APART = {"task": "multiclass", "strategy": "one-vs-rest"}
TRAININGS = {  # linear models: every way through the code that ends with a certificate
    "hinge": Training("weighted", {}, (4, 11)),
    "hinge, C 30, cached": Training("weighted", {"C": 30.0, "row_cache": "100%"}, (7, 26)),
    "hinge, partly cached": Training("weighted", {"row_cache": "40%", "lanes": 2}, (3, 5)),
    "hinge, values 1, not cached": Training("ones", {"row_cache": "0", "lanes": 2}, (17, 33)),
    "hinge, positives count double": Training("ones", {"positive_weight": 2.0}, (4, 6)),
    "hinge, no intercept": Training("weighted", {"intercept": "none"}, (4, 19)),
    "hinge, free intercept": Training("weighted", {"intercept": "free"}, (4, 13)),
    "hinge, cpa": Training("weighted", {"solver": "cpa", "C": 0.2}, (26, 38)),
    "hinge, ocas": Training("weighted", {"solver": "ocas", "lanes": 2}, (18, 31)),
    "hinge, ocas, exact cuts": Training("weighted", {"solver": "ocas", "cut": "exact", "C": 0.2}, (15, 40)),
    "hinge, ocas, free intercept": Training("weighted", {"solver": "ocas", "intercept": "free"}, (19, 36)),
    "hinge, newton": Training("weighted", {"solver": "newton"}, (13, 38)),
    "squared hinge": Training("weighted", {"loss": "squared-hinge", "solver": "bundle-dca"}, (4, 6)),
    "squared hinge, newton": Training("weighted", {"loss": "squared-hinge", "solver": "newton"}, (7, 7)),
    "smoothed hinge": Training("weighted", {"loss": "smoothed-hinge"}, (6, 7)),
    "smoothed hinge, bundle-dca": Training("weighted", {"loss": "smoothed-hinge", "solver": "bundle-dca"}, (3, 5)),
    "logistic": Training("weighted", {"loss": "logistic", "solver": "bundle-dca"}, (3, 4)),
    "logistic, newton, free intercept": Training(
        "weighted", {"loss": "logistic", "solver": "newton", "intercept": "free"}, (5, 7)
    ),
    "elastic net": Training("weighted", {"loss": "logistic", "l1": 2.0, "solver": "bundle-dca"}, (3, 4)),
    "elastic net, newton": Training("weighted", {"loss": "logistic", "l1": 2.0, "solver": "newton"}, (5, 6)),
    "elastic net, hinge, free intercept": Training("weighted", {"l1": 2.0, "intercept": "free"}, (4, 18)),
    "lasso": Training("weighted", {"loss": "squared-hinge", "l1_only": 3.0}, (7, 8)),
    "lasso, squared, newton": Training("numbers", {**_NUMBERS, "loss": "squared", "l1_only": 3.0, "solver": "newton"}, (2, 2)),
    "lasso, working set, free intercept": Training(
        "numbers", {**_NUMBERS, "loss": "squared", "l1_only": 3.0, "solver": "working-set", "intercept": "free"}, (3, 3)
    ),
    "squared": Training("numbers", {**_NUMBERS, "loss": "squared"}, (2, 2)),
    "squared, bundle-dca, free intercept": Training(
        "numbers", {**_NUMBERS, "loss": "squared", "solver": "bundle-dca", "intercept": "free"}, (4, 7)
    ),
    "huber": Training("numbers", {**_NUMBERS, "loss": "huber"}, (5, 6)),
    "huber, bundle-dca": Training("numbers", {**_NUMBERS, "loss": "huber", "solver": "bundle-dca"}, (3, 5)),
    "epsilon-insensitive": Training("numbers", {**_NUMBERS, "loss": "epsilon-insensitive"}, (4, 12)),
    "epsilon-insensitive, newton, free intercept": Training(
        "numbers", {**_NUMBERS, "loss": "epsilon-insensitive", "solver": "newton", "intercept": "free"}, (12, 38)
    ),
    "squared epsilon-insensitive": Training(
        "numbers", {**_NUMBERS, "loss": "squared-epsilon-insensitive", "solver": "bundle-dca"}, (4, 7)
    ),
    "quantile": Training("numbers", {**_NUMBERS, "loss": "quantile", "quantile": 0.3}, (3, 13)),
    "quantile, newton": Training("numbers", {**_NUMBERS, "loss": "quantile", "quantile": 0.3, "solver": "newton"}, (16, 42)),
    "lasso, poisson, working set": Training(
        "counts", {**_NUMBERS, "loss": "poisson", "l1_only": 3.0, "solver": "working-set"}, (3, 3)
    ),
    "poisson": Training("counts", {**_NUMBERS, "loss": "poisson"}, (6, 7)),
    "poisson, bundle-dca": Training("counts", {**_NUMBERS, "loss": "poisson", "solver": "bundle-dca"}, (9, 12)),
    "Crammer-Singer": Training("classes", _CLASSES, (4, 21)),
    "softmax": Training("classes", {**_CLASSES, "loss": "softmax"}, (3, 4)),
    "one-vs-rest": Training("classes", _APART, (4, 12)),
    "one-vs-rest, logistic, not cached": Training("classes", {**_APART, "loss": "logistic", "row_cache": "0"}, (4, 8)),
    "one-vs-rest, squared hinge, free intercept": Training(
        "classes", {**_APART, "loss": "squared-hinge", "intercept": "free"}, (5, 7)
    ),
    "Crammer-Singer, elastic net": Training("classes", {**_CLASSES, "l1": 2.0}, (4, 17)),
    "softmax, elastic net": Training("classes", {**_CLASSES, "loss": "softmax", "l1": 2.0}, (3, 4)),
    "one-vs-rest, elastic net, not cached": Training("classes", {**_APART, "l1": 2.0, "row_cache": "0"}, (19, 293)),
    "one class": Training("ones", {"task": "one-class", "nu": 0.3}, (5, 12)),
    "ranking": Training("queries", {"task": "ranking", "solver": "ocas"}, (24, 63)),
    "ranking, newton": Training("queries", {"task": "ranking", "solver": "newton"}, (24, 77)),
    "ranking, average of queries": Training("queries", {"task": "ranking", "normalisation": "queries"}, (48, 123)),
    "ROC area": Training("signs", {"task": "roc-area"}, (10, 26)),
    "F1": Training("signs", {"loss": "f1"}, (28, 53)),
    "errors, cpa": Training("signs", {"loss": "error", "solver": "cpa", "C": 0.05}, (26, 48)),
    "precision at 20 %": Training("signs", {"loss": "prec@k", "k": "20%", "C": 0.05}, (12, 23)),
    "sequences": Training("sequences", {"task": "sequence", "C": 0.1}, (16, 42)),
    "sequences, ocas": Training("sequences", {"task": "sequence", "solver": "ocas", "C": 0.1}, (23, 56)),
}
_RBF = {"kernel": "rbf", "gamma": 0.5}
KERNELS = {  # kernel models; `smo` and `sampled-linear` have certificates
    "smo": Training("weighted", {**_RBF, "solver": "smo"}),
    "smo, values 1, polynomial": Training("ones", {"kernel": "poly", "gamma": 0.5, "degree": 2, "solver": "smo", "C": 3.0}),
    "bsca": Training("weighted", {**_RBF, "solver": "bsca", "budget": 20, "epochs": 2.0}),
    "bsca, numbers": Training("numbers", {**_RBF, **_NUMBERS, "solver": "bsca", "budget": 20, "epochs": 2.0}),
    "bsgd, classes": Training("classes", {**_RBF, **_CLASSES, "solver": "bsgd", "budget": 20, "epochs": 2.0}),
    "nystroem": Training("weighted", {**_RBF, "nystroem": 30}),
    "fourier": Training("weighted", {**_RBF, "fourier": 64}),
    "sbp": Training("ones", {**_RBF, "solver": "sbp", "nu": 0.3, "epochs": 2.0, "bias": 0.0}),
    "sdca": Training("ones", {**_RBF, "solver": "sdca", "epochs": 2.0, "bias": 0.0}),
    "pegasos": Training("ones", {**_RBF, "solver": "pegasos", "epochs": 2.0, "bias": 0.0}),
    "perceptron": Training("ones", {**_RBF, "solver": "perceptron", "epochs": 2.0, "bias": 0.0}),
    "sampled-linear": Training("weighted", {**_RBF, "solver": "sampled-linear", "samples": 25, "tol": 1e-2}),
    "sampled-constant, classes": Training(
        "classes, no weights", {**_RBF, **_CLASSES, "solver": "sampled-constant", "samples": 25, "tol": 5e-2}
    ),
}

# --- what they minimise: losses of scores s and targets y -----------------------------------------------------------------------


def _smoothed(t: np.ndarray) -> np.ndarray:
    """½t² up to t = 1, then linear."""
    return np.where(t <= 1, 0.5 * t**2, t - 0.5)


ROW_LOSSES = {
    "hinge": lambda s, y: np.maximum(0, 1 - s * y),
    "squared-hinge": lambda s, y: np.maximum(0, 1 - s * y) ** 2,
    "smoothed-hinge": lambda s, y: _smoothed(np.maximum(0, 1 - s * y)),
    "logistic": lambda s, y: np.logaddexp(0, -s * y),
    "squared": lambda s, y: 0.5 * (s - y) ** 2,
    "huber": lambda s, y: _smoothed(abs(s - y)),
    "epsilon-insensitive": lambda s, y: np.maximum(0, abs(s - y) - 0.1),
    "squared-epsilon-insensitive": lambda s, y: np.maximum(0, abs(s - y) - 0.1) ** 2,
    "quantile": lambda s, y: np.where(y > s, 0.3 * (y - s), 0.7 * (s - y)),
    "poisson": lambda s, y: np.exp(s) - y * s + np.where(y > 0, y * np.log(np.maximum(y, 1e-300)), 0) - y,
}


def _pairs(s: np.ndarray, y: np.ndarray, qid: np.ndarray, by_query: bool = False) -> float:
    """Mean hinge of all pairs of a query whose targets differ (or the mean of the queries' means), times the number of rows."""
    means, counts = [], []
    for q in np.unique(qid):
        i, j = np.nonzero((qid == q) & (qid == q)[:, None] & (y[:, None] > y))
        if len(i):
            means.append(np.mean(np.maximum(0, 1 - (s[i] - s[j]))))
            counts.append(len(i))
    return len(y) * np.average(means, weights=None if by_query else counts)


_DELTAS = {  # of a labelling with a true and b false positives of p positives and n rows: its loss, NaN where it is not allowed
    "f1": lambda a, b, p, n, k: 1 - 2 * a / (a + b + p),
    "error": lambda a, b, p, n, k: (p - a + b) / n,
    "prec@k": lambda a, b, p, n, k: np.where(a + b == k, 1 - a / k, np.nan),
}


def _labelling(name: str, s: np.ndarray, y: np.ndarray, k: int) -> float:
    """The worst labelling: n·Δ less the scores of what it labels wrongly. For each (a, b) the worst rows are the extreme ones."""
    up, down = np.sort(s[y > 0]), np.sort(s[y < 0])[::-1]
    a, b = np.arange(len(up) + 1)[:, None], np.arange(len(down) + 1)[None, :]
    lost = np.concatenate(([0.0], np.cumsum(up)))[len(up) - a]  # the len(up) − a positives of the least scores
    gained = np.concatenate(([0.0], np.cumsum(down)))[b]
    delta = _DELTAS[name](a, b, len(up), len(y), k)
    return max(0.0, np.nanmax(len(y) * delta - lost + gained))


def _chains(S: np.ndarray, T: np.ndarray, y: np.ndarray, qid: np.ndarray) -> float:
    """Hamming hinge of the labels of each query, a chain with emissions S and transitions T: Viterbi."""
    total = 0.0
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        t, s = (y[rows] - 1).astype(int), S[rows]
        right = s[np.arange(len(t)), t].sum() + sum(T[a, b] for a, b in itertools.pairwise(t))
        best = s[0] + (np.arange(3) != t[0])
        for k in range(1, len(t)):
            best = (best[:, None] + T).max(axis=0) + s[k] + (np.arange(3) != t[k])
        total += best.max() - right
    return total


def _several(S: np.ndarray, y: np.ndarray, u: np.ndarray, options: dict[str, Any]) -> float:
    """Losses of several classes with scores S (n, K)."""
    one = y[:, None] == np.unique(y)
    right = S[one]
    if options.get("strategy") == "one-vs-rest":
        return np.sum(u[:, None] * ROW_LOSSES[options.get("loss", "hinge")](S, np.where(one, 1.0, -1.0)))
    if options.get("loss") == "softmax":
        return np.sum(u * (np.logaddexp.reduce(S, axis=1) - right))
    return np.sum(u * ((S + ~one).max(axis=1) - right))


def objective(model, rows: Rows, options: dict[str, Any]) -> float:
    """F of the model's weights: the penalty and C times the losses of the rows."""
    X, y, qid, weight = rows
    C, loss, task = options.get("C", 1.0), options.get("loss", "hinge"), options.get("task", "binary")
    u = (np.ones(len(y)) if weight is None else weight) * np.where(y > 0, options.get("positive_weight", 1.0), 1.0)
    if options.get("solver") == "smo":
        s = model.decision_function(X)
        S = model.support.toarray()
        inner = S @ S.T
        squares = np.diag(inner)[:, None] + np.diag(inner) - 2 * inner
        K = np.exp(-0.5 * squares) if options["kernel"] == "rbf" else (0.5 * inner) ** options["degree"]
        return 0.5 * model.coefficients @ K @ model.coefficients + C * np.sum(u * ROW_LOSSES[loss](s, y))
    w = model.weights
    b = model.intercept
    s = X @ w + b
    if task == "one-class":  # C̄ only sets the length of w, and training chooses it
        return 0.5 * w @ w + model.certificate.c_bar * max(0.0, 1 - np.mean(np.sort(X @ w)[: round(options["nu"] * len(y))]))
    weights = np.append(w, [] if options.get("intercept") == "free" else b)  # those that are penalised
    if "l1_only" in options:
        penalty = options["l1_only"] * np.sum(np.abs(weights))
    else:
        penalty = 0.5 * np.sum(weights**2) + options.get("l1", 0.0) * np.sum(np.abs(weights))
    if task == "ranking":
        return penalty + C * _pairs(s, y, qid, options.get("normalisation") == "queries")
    if task == "roc-area":
        return penalty + C * _pairs(s, y, np.zeros(len(y)))
    if task == "sequence":
        return penalty + 0.5 * np.sum(model.transitions**2) + C * _chains(s, model.transitions, y, qid)
    if task == "multiclass":
        return penalty + C * _several(s, y, u, options)
    if loss in _DELTAS:
        return penalty + C * _labelling(loss, s, y, round(0.2 * len(y)))
    return penalty + C * np.sum(u * ROW_LOSSES[loss](s, y))
