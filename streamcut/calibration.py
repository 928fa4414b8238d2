"""Probabilities from scores of held-out rows: Platt scaling for two classes, a softmax for several.

Two classes. Given scores s_i, classes and weights u_i: the (A, B) that minimise −Σ u_i (t_i log p_i + (1 − t_i) log(1 − p_i)),
where p_i = 1 / (1 + exp(A s_i + B)) and t_i = (N₊ + 1)/(N₊ + 2) for positive rows, 1/(N₋ + 2) for negative ones.

    start at A = 0, B = log((N₋ + 1)/(N₊ + 1)); then, until the gradient is below 10⁻⁵ of a row's weight:
        Newton direction with 10⁻¹² on the diagonal of the Hessian
        halve the step from 1 until the value has fallen by 10⁻⁴ of what the slope predicts

Lin, Lin & Weng, A note on Platt's probabilistic outputs for support vector machines (2007), Algorithm 1; log p_i without overflow
as in Section 3 (logaddexp). With weights, N₊ and N₋ are sums of weights, as if rows were repeated.

Several classes. P(k) ∝ exp(a·s_k + b_k): temperature scaling (Guo et al. 2017) with an offset for each class: the (a, b) of
maximum likelihood, with a penalty of 10⁻⁶ of a row's weight times ½‖b‖² so that it exists; by L-BFGS.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from streamcut.data.datasets import labelled
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.kept_rows import BLOCK_BYTES, HELD_BYTES, KeptRows
from streamcut.foundation.shown import warn
from streamcut.io.dataset import Dataset
from streamcut.models.files import as_model
from streamcut.models.link import Link, Sigmoid, Softmax
from streamcut.models.model import Model
from streamcut.prediction import scored_chunks

_FITTING = 12 * BLOCK_BYTES  # a block being filled, one being read, what is computed from it
_MOST_STEPS = 100
_GRADIENT = 1e-5
_RIDGE = 1e-12
_SMALLEST_STEP = 1e-10
_DECREASE = 1e-4


def calibrate(model: Model | str | os.PathLike, data: Any, *, memory: str = "auto") -> Model:
    """See streamcut.api."""
    ceiling = Ceiling(memory)
    model = as_model(model, ceiling.expect_model)
    if model.task not in ("binary", "multiclass"):
        raise UsageError(f"probabilities are for classifiers, not for models of task {model.task}")
    rows: KeptRows | None = None
    with labelled(model, data, memory) as labelled_rows:
        if _of_training(model, data, labelled_rows):
            warn("these are the training rows: probabilities fitted on them are overconfident")
        ceiling.beside("rows kept, block by block", _FITTING)
        for chunk, scores in scored_chunks(model, labelled_rows, ceiling=ceiling):
            rows = KeptRows(_row_type(scores), held=min(HELD_BYTES, ceiling.left)) if rows is None else rows
            classes = model.is_positive if model.task == "binary" else model.classes_of  # type: ignore[attr-defined]
            weight = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
            _keep(rows, scores, classes(chunk.y, chunk.first_row), weight)
    if rows is None:
        raise BadInputError("there are no rows to fit probabilities to")
    fitted = _linked(model, rows)
    ceiling.keep()
    return fitted


def _keep(rows: KeptRows, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> None:
    counts = weights > 0.0  # a row of weight 0 counts as absent
    rows.add(scores=scores[counts], truth=truth[counts], weight=weights[counts])


def _row_type(scores: np.ndarray) -> np.dtype:
    return np.dtype([("scores", np.float64, scores.shape[1:]), ("truth", np.int64), ("weight", np.float64)])


def _blocks(rows: KeptRows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(scores, classes, weights), block by block."""
    for block in rows:
        yield tuple(np.ascontiguousarray(block[name]) for name in ("scores", "truth", "weight"))  # type: ignore[misc]


def _linked(model: Model, rows: KeptRows) -> Model:
    link: Link = Sigmoid(*platt(rows), len(rows)) if model.task == "binary" else Softmax(*tempered(rows), len(rows))
    return replace(model, link=link)


def _of_training(model: Model, data: Any, rows: Dataset) -> bool:
    """Whether `data`, opened as `rows`, are the training data of `model`: the same rows, or the same place (features that were
    scaled or mapped in training have a fingerprint of their own)."""
    if rows.manifest.fingerprint == model.fingerprint:
        return True
    place = model.parameters.get("data")
    return place is not None and isinstance(data, str | os.PathLike) and os.path.realpath(place) == os.path.realpath(data)


def tempered(rows: KeptRows) -> tuple[float, tuple[float, ...]]:
    """(a, b) for rows of several classes. Raises BadInputError for a single class."""
    (K,) = rows.dtype["scores"].shape
    classes, total, moments = np.zeros(K), 0.0, np.zeros(2)
    for scores, target, weights in _blocks(rows):
        classes += np.bincount(target, weights, K)
        total += float(weights.sum())
        moments += scores.sum(), scores.size
    if np.count_nonzero(classes) < 2:
        raise BadInputError("probabilities need rows of at least two classes")
    mean = moments[0] / moments[1]
    off_mean = sum(float(((scores - mean) ** 2).sum()) for scores, _, _ in _blocks(rows))
    spread = float(np.sqrt(off_mean / moments[1])) or 1.0

    def negative_likelihood(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = 0.5e-6 * float(x[1:] @ x[1:]), np.concatenate([[0.0], 1e-6 * x[1:]])
        for scores, target, weights in _blocks(rows):
            n = np.arange(len(scores))
            f = x[0] / spread * scores + x[1:]
            log_sum = logsumexp(f, axis=1)
            value += float(weights @ (log_sum - f[n, target]))
            off = np.exp(f - log_sum[:, None])
            off[n, target] -= 1.0
            off *= weights[:, None]
            slope[0] += float((off * scores).sum()) / spread
            slope[1:] += off.sum(axis=0)
        return value / total, slope / total

    start = np.zeros(K + 1)
    start[0] = 1.0
    precise = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(negative_likelihood, start, jac=True, method="L-BFGS-B", options=precise)
    return float(found.x[0] / spread), tuple(found.x[1:].tolist())


def platt(rows: KeptRows) -> tuple[float, float]:
    """(A, B) for rows of two classes. Raises BadInputError for a single class."""
    n_positive = n_negative = 0.0
    for _, positive, weights in _blocks(rows):
        n_positive += float(weights[positive != 0].sum())
        n_negative += float(weights[positive == 0].sum())
    if n_positive == 0.0 or n_negative == 0.0:
        raise BadInputError("probabilities need rows of both classes")
    targets = np.array([1.0 / (n_negative + 2.0), (n_positive + 1.0) / (n_positive + 2.0)])
    A, B = 0.0, float(np.log((n_negative + 1.0) / (n_positive + 1.0)))
    value = _value(A, B, rows, targets)
    for _ in range(_MOST_STEPS):
        g_A, g_B, h_AA, h_AB, h_BB = _slopes(A, B, rows, targets)
        if abs(g_A) < _GRADIENT and abs(g_B) < _GRADIENT:
            break
        determinant = h_AA * h_BB - h_AB * h_AB
        d_A, d_B = -(h_BB * g_A - h_AB * g_B) / determinant, -(h_AA * g_B - h_AB * g_A) / determinant
        slope, step = g_A * d_A + g_B * d_B, 1.0
        while step >= _SMALLEST_STEP:
            found = _value(A + step * d_A, B + step * d_B, rows, targets)
            if found < value + _DECREASE * step * slope:
                A, B, value = A + step * d_A, B + step * d_B, found
                break
            step /= 2.0
        else:
            break  # rounding allows no further progress
    return A, B


def _slopes(A: float, B: float, rows: KeptRows, targets: np.ndarray) -> tuple[float, ...]:
    """The gradient (by A, by B) and the Hessian (AA, AB, BB) of the value."""
    found = np.array([0.0, 0.0, _RIDGE, 0.0, _RIDGE])
    for scores, positive, weights in _blocks(rows):
        p = Sigmoid(A, B)(scores)
        off, curvature = weights * (targets[positive] - p), weights * p * (1.0 - p)
        found += off @ scores, off.sum(), curvature @ (scores * scores), curvature @ scores, curvature.sum()
    return tuple(found.tolist())


def _value(A: float, B: float, rows: KeptRows, targets: np.ndarray) -> float:
    """−log likelihood: t·log(1 + e^f) + (1 − t)·log(1 + e^−f) with f = A s + B."""
    value = 0.0
    for scores, positive, weights in _blocks(rows):
        f, target = A * scores + B, targets[positive]
        value += float(weights @ (target * np.logaddexp(0.0, f) + (1.0 - target) * np.logaddexp(0.0, -f)))
    return value
