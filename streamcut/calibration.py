"""Probabilities from scores of held-out rows: Platt scaling for two classes, a softmax for several.

Two classes. Given scores s_i, classes and weights u_i: the (A, B) that minimise −Σ u_i (t_i log p_i + (1 − t_i) log(1 − p_i)),
where p_i = 1 / (1 + exp(A s_i + B)) and t_i = (N₊ + 1)/(N₊ + 2) for positive rows, 1/(N₋ + 2) for negative ones (Lin, Lin & Weng,
A note on Platt's probabilistic outputs for support vector machines, 2007; log p_i without overflow as in its Section 3). With
weights, N₊ and N₋ are sums of weights, as if rows were repeated.

Several classes. P(k) ∝ exp(a·s_k + b_k): temperature scaling (Guo et al. 2017) with an offset for each class: the (a, b) of
maximum likelihood, with a penalty of 10⁻⁶ of a row's weight times ½‖b‖² so that it exists.

Both by L-BFGS over the rows in blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
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
_Likelihood = Callable[..., tuple[float, float, np.ndarray]]  # −log of a block's, its slopes by the factor and the offsets


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

    def likelihood(a: float, b: np.ndarray, scores: np.ndarray, target: np.ndarray, weights: np.ndarray) -> Any:
        n, f = np.arange(len(scores)), a * scores + b
        log_sum = logsumexp(f, axis=1)
        value = float(weights @ (log_sum - f[n, target]))
        off = np.exp(f - log_sum[:, None])
        off[n, target] -= 1.0
        off *= weights[:, None]
        return value, float((off * scores).sum()), off.sum(axis=0)

    (K,) = rows.dtype["scores"].shape
    if np.count_nonzero(_class_weights(rows, K)) < 2:
        raise BadInputError("probabilities need rows of at least two classes")
    a, b = _minimum(rows, likelihood, 1.0, np.zeros(K), ridge=1e-6)
    return a, tuple(b.tolist())


def platt(rows: KeptRows) -> tuple[float, float]:
    """(A, B) for rows of two classes. Raises BadInputError for a single class."""
    negative, positive = _class_weights(rows, 2).tolist()
    if not (negative and positive):
        raise BadInputError("probabilities need rows of both classes")
    targets = np.array([1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)])

    def likelihood(A: float, B: np.ndarray, scores: np.ndarray, truth: np.ndarray, weights: np.ndarray) -> Any:
        f, t = A * scores + B, targets[truth]
        value = float(weights @ (t * np.logaddexp(0.0, f) + (1.0 - t) * np.logaddexp(0.0, -f)))
        off = weights * (t - Sigmoid(A, B[0])(scores))
        return value, float(off @ scores), off.sum()

    A, B = _minimum(rows, likelihood, 0.0, np.array([np.log((negative + 1.0) / (positive + 1.0))]))
    return A, float(B[0])


def _class_weights(rows: KeptRows, classes: int) -> np.ndarray:
    return sum((np.bincount(truth, weights, classes) for _, truth, weights in _blocks(rows)), np.zeros(classes))


def _minimum(rows: KeptRows, likelihood: _Likelihood, factor: float, offsets: np.ndarray, ridge: float = 0.0) -> Any:
    """(factor of the scores, offsets) that minimise Σ `likelihood` + `ridge` ½‖offsets‖², from `factor` times their spread."""
    moments = sum((np.array([scores.sum(), scores.size]) for scores, _, _ in _blocks(rows)), np.zeros(2))
    mean, total = moments[0] / moments[1], sum(float(weights.sum()) for _, _, weights in _blocks(rows))
    off_mean = sum(float(((scores - mean) ** 2).sum()) for scores, _, _ in _blocks(rows))
    spread = float(np.sqrt(off_mean / moments[1])) or 1.0

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = 0.5 * ridge * float(x[1:] @ x[1:]), np.concatenate([[0.0], ridge * x[1:]])
        for block in _blocks(rows):
            more, by_factor, by_offsets = likelihood(x[0] / spread, x[1:], *block)
            value += more
            slope[0] += by_factor / spread
            slope[1:] += by_offsets
        return value / total, slope / total

    precise = {"maxiter": 1000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(objective, np.append(factor, offsets), jac=True, method="L-BFGS-B", options=precise)
    return float(found.x[0] / spread), found.x[1:]
