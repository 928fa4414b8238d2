"""Probabilities from the scores of rows that were held out: Platt scaling for two classes, a softmax for several.

Two classes. Given scores s_i, classes and weights u_i: the (A, B) that minimise −Σ u_i (t_i log p_i + (1 − t_i) log(1 − p_i)),
where p_i = 1 / (1 + exp(A s_i + B)) and t_i = (N₊ + 1)/(N₊ + 2) for positive rows, 1/(N₋ + 2) for negative ones.

    start at A = 0, B = log((N₋ + 1)/(N₊ + 1)); then, until the gradient is below 10⁻⁵ of the weight of a row:
        Newton direction with 10⁻¹² on the diagonal of the Hessian
        halve the step from 1 on until the value has fallen by 10⁻⁴ of what the slope promises

Lin, Lin & Weng, A note on Platt's probabilistic outputs for support vector machines (2007), Algorithm 1; log p_i without overflow
as in Section 3 (logaddexp). With weights, N₊ and N₋ are sums of them, as if rows were repeated.

Several classes. P(k) ∝ exp(a·s_k + b_k): temperature scaling (Guo et al. 2017) with an offset for each class, the (a, b) of
greatest likelihood with 10⁻⁶ of a row's weight times ½‖b‖² against it, so that there is one; by L-BFGS.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from streamcut.errors import BadInputError, UsageError
from streamcut.models.files import as_model
from streamcut.models.link import Link, Sigmoid, Softmax
from streamcut.models.model import Model
from streamcut.prediction import scored_chunks

_MOST_STEPS = 100
_GRADIENT = 1e-5
_RIDGE = 1e-12
_SMALLEST_STEP = 1e-10
_DECREASE = 1e-4


def calibrate(model: Model | str | os.PathLike, data: Any) -> Model:
    """`model` with probabilities fitted on `data`: a store (path or opened), svmlight file, (X, y) or (X, y, row weights).

    The rows should not be those of training, whose scores lie too far out: a UserWarning says so where the data is known to be
    the same. Keeps 17 bytes a row for two classes (25 with weights), 8 more for each of several.
    Raises UsageError for models of other tasks, BadInputError for labels that the model does not know, and for one class only.

    >>> model = calibrate(streamcut.train("rows.zarr"), "rows.zarr")  # made in the example of `convert`
    >>> (streamcut.predict(model, "rows.zarr", output="probabilities") > 0.5).tolist()
    [True, False, True, False]
    """
    model = as_model(model)
    if model.task not in ("binary", "multiclass"):
        raise UsageError(f"probabilities are for models of classes, not of task {model.task}")
    if _of_training(model, data):
        warnings.warn("these are the rows of training: probabilities fitted on them are too sure of themselves", stacklevel=2)
    scores, truth, weights = [], [], []
    for chunk, values in scored_chunks(model, data):
        scores.append(values.copy())
        classes = model.is_positive if model.task == "binary" else model.classes_of  # type: ignore[attr-defined]
        truth.append(classes(chunk.y, chunk.first_row))
        weights.append(np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight.copy())
    if not scores:
        raise BadInputError("there are no rows to fit probabilities on")
    return _linked(model, np.concatenate(scores), np.concatenate(truth), np.concatenate(weights))


def with_probabilities(model: Model, scores: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Model:
    """`model` with probabilities fitted on `scores` (n,) or (n, K) that rows with labels `y` (n) got without being trained on."""
    truth = model.is_positive(y) if model.task == "binary" else model.classes_of(y)  # type: ignore[attr-defined]
    return _linked(model, scores, truth, np.ones(len(y)) if weight is None else weight)


def _linked(model: Model, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> Model:
    counts = weights > 0.0  # a row of weight 0 is a row that is not there
    found, rows = (scores[counts], truth[counts], weights[counts]), int(np.count_nonzero(counts))
    link: Link = Sigmoid(*platt(*found), rows) if model.task == "binary" else Softmax(*tempered(*found), rows)
    return replace(model, link=link)


def _of_training(model: Model, data: Any) -> bool:
    """Whether `data` is known to be what `model` was trained on."""
    if isinstance(data, str | os.PathLike):
        trained_on = model.parameters.get("data")
        return trained_on is not None and os.path.realpath(trained_on) == os.path.realpath(data)
    manifest = getattr(data, "manifest", None)
    return manifest is not None and bool(model.fingerprint) and manifest.fingerprint == model.fingerprint


def tempered(scores: np.ndarray, target: np.ndarray, weights: np.ndarray) -> tuple[float, tuple[float, ...]]:
    """(a, b) for scores float64 (n, K), classes int (n,) and weights float64 (n,). Raises BadInputError for one class only."""
    if len(np.unique(target[weights > 0.0])) < 2:
        raise BadInputError("probabilities need rows of two classes at least")
    n, K = scores.shape
    own = np.zeros((n, K))
    own[np.arange(n), target] = 1.0
    total, spread = float(weights.sum()), float(scores.std()) or 1.0

    def negative_likelihood(x: np.ndarray) -> tuple[float, np.ndarray]:
        f = x[0] / spread * scores + x[1:]
        log_sum = logsumexp(f, axis=1)
        off = weights[:, None] * (np.exp(f - log_sum[:, None]) - own)
        value = float(weights @ (log_sum - f[np.arange(n), target])) + 0.5e-6 * float(x[1:] @ x[1:])
        slope = np.concatenate([[float((off * scores).sum()) / spread], off.sum(axis=0) + 1e-6 * x[1:]])
        return value / total, slope / total

    start = np.zeros(K + 1)
    start[0] = 1.0
    precise = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(negative_likelihood, start, jac=True, method="L-BFGS-B", options=precise)
    return float(found.x[0] / spread), tuple(found.x[1:].tolist())


def platt(scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """(A, B) for scores float64 (n,), classes bool (n,) and weights float64 (n,). Raises BadInputError for one class only."""
    n_positive, n_negative = float(weights[positive].sum()), float(weights[~positive].sum())
    if n_positive == 0.0 or n_negative == 0.0:
        raise BadInputError("probabilities need rows of both classes")
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    A, B = 0.0, float(np.log((n_negative + 1.0) / (n_positive + 1.0)))
    value = _value(A, B, scores, target, weights)
    for _ in range(_MOST_STEPS):
        p = Sigmoid(A, B)(scores)
        off, curvature = weights * (target - p), weights * p * (1.0 - p)
        g_A, g_B = float(off @ scores), float(off.sum())
        if abs(g_A) < _GRADIENT and abs(g_B) < _GRADIENT:
            break
        h_AA, h_BB = float(curvature @ (scores * scores)) + _RIDGE, float(curvature.sum()) + _RIDGE
        h_AB = float(curvature @ scores)
        determinant = h_AA * h_BB - h_AB * h_AB
        d_A, d_B = -(h_BB * g_A - h_AB * g_B) / determinant, -(h_AA * g_B - h_AB * g_A) / determinant
        slope, step = g_A * d_A + g_B * d_B, 1.0
        while step >= _SMALLEST_STEP:
            found = _value(A + step * d_A, B + step * d_B, scores, target, weights)
            if found < value + _DECREASE * step * slope:
                A, B, value = A + step * d_A, B + step * d_B, found
                break
            step /= 2.0
        else:
            break  # rounding allows no further progress
    return A, B


def _value(A: float, B: float, scores: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    """−log likelihood: t·log(1 + e^f) + (1 − t)·log(1 + e^−f) with f = A s + B."""
    f = A * scores + B
    return float(weights @ (target * np.logaddexp(0.0, f) + (1.0 - target) * np.logaddexp(0.0, -f)))
