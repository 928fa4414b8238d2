"""Probabilities from scores of held-out rows: Platt scaling for two classes, a softmax for several.

Two classes. Given scores s_i, classes and weights u_i: the (A, B) that minimise −Σ u_i (t_i log p_i + (1 − t_i) log(1 − p_i)),
where p_i = 1 / (1 + exp(A s_i + B)) and t_i = (N₊ + 1)/(N₊ + 2) for positive rows, 1/(N₋ + 2) for negative ones (Lin, Lin & Weng,
A note on Platt's probabilistic outputs for support vector machines, 2007; log p_i without overflow as in its Section 3). With
weights, N₊ and N₋ are sums of weights, as if rows were repeated.

Several classes. P(k) ∝ exp(a·s_k + b_k): temperature scaling (Guo et al. 2017) with an offset for each class: the (a, b) of
maximum likelihood, with a penalty of 10⁻⁶ of a row's weight times ½‖b‖² so that it exists.

Both by L-BFGS.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from streamcut.data.datasets import labelled
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.foundation.shown import warn
from streamcut.io.dataset import Dataset
from streamcut.models.files import as_model
from streamcut.models.link import Link, Sigmoid, SoftmaxLink
from streamcut.models.model import Model
from streamcut.prediction import scored_chunks

_RIDGE = 1e-6  # of ½‖b‖²
_A_ROW, _A_SCORE = 64, 64  # bytes: what is kept of a row, in parts and then whole, and what is computed from all rows at once
_Likelihood = Callable[[float, np.ndarray], tuple[float, float, np.ndarray]]  # −log, its slopes by the factor and the offsets


def calibrate(model: Model | str | os.PathLike, data: object, *, memory: str = "auto") -> Model:
    """See streamcut.api."""
    ceiling = Ceiling(memory)
    model = as_model(model, ceiling.expect_model)
    if model.task not in ("binary", "multiclass"):
        raise UsageError(f"probabilities are for classifiers, not for models of task {model.task}")
    two, kept, parts = model.task == "binary", _A_ROW + _A_SCORE * model.scores_per_row, list[tuple[np.ndarray, ...]]()
    with labelled(model, data, memory) as rows:
        if _of_training(model, data, rows):
            warn("these are the training rows: probabilities fitted on them are overconfident")
        for chunk, scores in scored_chunks(model, rows, ceiling=ceiling, kept=(kept, kept)):
            classes = (model.is_positive if two else model.classes_of)(chunk.y, chunk.first_row).astype(np.int64)
            weights = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
            counts = weights > 0.0  # a row of weight 0 counts as absent
            parts.append((scores[counts], classes[counts], weights[counts]))
    if not parts:
        raise BadInputError("there are no rows to fit probabilities to")
    scores, classes, weights = (np.concatenate(column) for column in zip(*parts, strict=True))
    del parts
    rest = scores, classes, weights
    link: Link = Sigmoid(*platt(*rest), len(scores)) if two else SoftmaxLink(*tempered(*rest), len(scores))
    ceiling.keep()
    return replace(model, link=link)


def _of_training(model: Model, data: object, rows: Dataset) -> bool:
    """Whether `data`, opened as `rows`, are the training data of `model`: the same rows, or the same path (features that were
    scaled or mapped in training have another fingerprint)."""
    if rows.manifest.fingerprint == model.fingerprint:
        return True
    path = model.parameters.get("data")
    return isinstance(path, str) and isinstance(data, str | os.PathLike) and os.path.realpath(path) == os.path.realpath(data)


def tempered(scores: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> tuple[float, tuple[float, ...]]:
    """(a, b) for scores float64 (n, K), classes int64 (n,) and weights. Raises BadInputError for a single class."""
    n, K = np.arange(len(scores)), scores.shape[1]
    if np.count_nonzero(np.bincount(classes, weights, K)) < 2:
        raise BadInputError("probabilities need rows of at least two classes")

    def likelihood(a: float, b: np.ndarray) -> tuple[float, float, np.ndarray]:
        f = a * scores + b
        log_sum = logsumexp(f, axis=1)
        value = float(weights @ (log_sum - f[n, classes])) + 0.5 * _RIDGE * float(b @ b)
        off = np.exp(f - log_sum[:, None])
        off[n, classes] -= 1.0
        off *= weights[:, None]
        return value, float((off * scores).sum()), off.sum(axis=0) + _RIDGE * b

    a, b = _minimum(scores, weights, likelihood, 1.0, np.zeros(K))
    return a, tuple(b.tolist())


def platt(scores: np.ndarray, classes: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """(A, B) for scores float64 (n,), classes (1: positive) and weights. Raises BadInputError for a single class."""
    negative, positive = np.bincount(classes, weights, 2).tolist()
    if not (negative and positive):
        raise BadInputError("probabilities need rows of both classes")
    t = np.array([1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)])[classes]

    def likelihood(A: float, B: np.ndarray) -> tuple[float, float, np.ndarray]:
        f = A * scores + B
        value = float(weights @ (t * np.logaddexp(0.0, f) + (1.0 - t) * np.logaddexp(0.0, -f)))
        off = weights * (t - Sigmoid(A, B[0])(scores))
        return value, float(off @ scores), off.sum()

    A, B = _minimum(scores, weights, likelihood, 0.0, np.array([np.log((negative + 1.0) / (positive + 1.0))]))
    return A, float(B[0])


def _minimum(
    scores: np.ndarray, weights: np.ndarray, likelihood: _Likelihood, factor: float, offsets: np.ndarray
) -> tuple[float, np.ndarray]:
    """(factor of the scores, offsets) that minimise `likelihood`, from `factor` times the scores' spread."""
    spread, total = float(np.std(scores)) or 1.0, float(weights.sum())

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, by_factor, by_offsets = likelihood(x[0] / spread, x[1:])
        return value / total, np.append(by_factor / spread, by_offsets) / total

    precise = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    optimum = minimize(objective, np.append(factor, offsets), jac=True, method="L-BFGS-B", options=precise)
    return float(optimum.x[0] / spread), optimum.x[1:]
