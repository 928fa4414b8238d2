"""Predictions with a proof: which labels are those of the exact optimum, and bounds on its scores.

F = ½‖w‖² + … is 1-strongly convex, so the optimum w* lies in a ball round the model's weights: ‖w − w*‖ ≤ r = √(2 gap). Its
scores are within s ± r‖(x, bias)‖, with a kernel s ± r√k(x, x). A joint loss of classes has one ball, in which two scores differ
by √2 r‖x‖ more or less at most; one against the rest has a ball for each class.

A free intercept b is in no ball; the rows of the training bound it. At the optimum F has no slope along b: Σ u_i σ_i f_i = 0 with
f = −ℓ′, a sum that falls with b and with every score. So it changes its sign between a b where it is above 0 with the highest
scores that the ball allows, and one where it is below 0 with the lowest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from streamcut.data.datasets import labelled
from streamcut.errors import UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.views import as_trained
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import above, gamma
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.kernel import KernelModel
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.oracles.kernel_columns import squared_norms

if TYPE_CHECKING:
    from streamcut.io.dataset import Dataset

_TASKS = ("binary", "multiclass", "regression")
_SPARE = 64  # roundings besides those of sums over a row's entries
_HALVINGS, _FARTHEST, _PART = 60, 1e6, 1e-9  # of the intercept's search: steps, spreads of scores, a sum that may be rounding


class CertifiedAnswers(NamedTuple):
    """What a model predicts for n rows, and what is proved of the exact optimum of its problem.

    labels    float64 (n,), or words (object, n): the model's, whether proved or not; for numbers, its predictions
    proved    bool (n,): the exact optimum gives the row the same label; for numbers: it is bounded by `low` and `high`
    low, high float64 (n,): between them is the optimum's score, of several classes that of the label; a prediction for numbers
    """

    labels: np.ndarray
    proved: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Certifier:
    """Proves the answers of `model` for blocks of rows; `trained_on`: its training rows, for a free intercept or `scale`.

    Raises UsageError for models without a ball and for other rows, MemoryBudgetError.
    """

    def __init__(self, model: Model, trained_on: object = None, memory: str = "auto") -> None:
        self._model = model
        self._joint = model.scores_per_row > len(model.certificates)
        if model.map is not None or not model.certificates or model.task not in _TASKS:
            raise UsageError(f"a {model.kind} model of task {model.task} by {model.solver} has no proved predictions")
        problem = model.problem
        if problem.l1_only:
            raise UsageError("l1 alone is not strongly convex, so the gap proves no prediction; an elastic net (l1) has proofs")
        gaps = np.array([above(c.gap, gamma(4.0) * c.primal) for c in model.certificates])
        self._radii = np.sqrt(2.0 * np.maximum(gaps, 0.0)) * (1.0 + gamma(8.0))
        self._divisors: np.ndarray | None = None
        self._below = self._above = 0.0
        self._bias, free = problem.constant, problem.free
        if free or problem.scale != "none":
            if free and model.scores_per_row > 1:
                raise UsageError("free intercepts of several classes are not bounded; regularised ones have proofs")
            if trained_on is None:
                why = "intercept is free" if free else "features were scaled"
                raise UsageError(f"the model's {why}: proofs need the rows that it was trained on (--trained-on)")
            with labelled(model, trained_on, memory) as rows:
                self._read(rows, free, Ceiling(memory))

    def _read(self, data: Dataset, free: bool, ceiling: Ceiling) -> None:
        """What the rows of the training say: divisors of features, the interval of a free intercept."""
        model = self._model
        _, self._divisors = as_trained(model.problem, data, model.n_features, model.fingerprint)
        if not free:
            return
        ceiling.expect_rows(model, data.manifest, (24, 32))
        risk, kept, buffers = PointwiseRisk.of(model.problem), list[tuple[np.ndarray, ...]](), data.buffers()
        for chunk in (data.read(shard, buffers) for shard in range(len(data.manifest.shards))):
            ends = self._ends(chunk, model.score_chunk(chunk)[:, None])
            kept.append((*ends, chunk.y.copy(), risk.weights_of(chunk.y, chunk.weight)))
        low, high, y, u = (np.concatenate(column) for column in zip(*kept, strict=True))
        self._below, self._above = (_reach(risk, ends[:, 0], y, u, sign) for ends, sign in ((high, 1.0), (low, -1.0)))
        ceiling.keep()

    def answers(self, chunk: Chunk, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(proved, low, high) of CertifiedAnswers for rows with these `scores`, float64 (n,) or (n, K)."""
        model, matrix, rows = self._model, scores.reshape(chunk.n_rows, -1), np.arange(chunk.n_rows)
        low, high = self._ends(chunk, matrix)
        label = matrix.argmax(axis=1)
        ends = [low[rows, label] - self._below, high[rows, label] + self._above]
        if matrix.shape[1] > 1:
            share = math.sqrt(0.5) * (1.0 + gamma(8.0)) if self._joint else 1.0  # of both half widths, for a difference
            rivals = matrix + share * (high - matrix)
            rivals[rows, label] = -np.inf
            proved = matrix[rows, label] - share * (matrix - low)[rows, label] > rivals.max(axis=1)
        elif model.task == "regression":
            proved = np.isfinite(ends[0]) & np.isfinite(ends[1])
            with np.errstate(over="ignore", invalid="ignore"):
                values = [model.labels_of(end) for end in ends]
            ends = [
                np.nextafter(v - gamma(8.0) * np.abs(v) * sign, sign * -np.inf)
                for v, sign in zip(values, (1.0, -1.0), strict=True)
            ]
        else:
            proved = np.where(scores > 0.0, ends[0] > 0.0, ends[1] <= 0.0)
        return proved, ends[0], ends[1]

    def _ends(self, chunk: Chunk, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high), float64 (n, K): the optimum's scores, up to a free intercept's interval."""
        model = self._model
        if isinstance(model, KernelModel):
            support, rows = model.near.moved(model.support_rows), model.near.moved(chunk)
            most = max(int(np.diff(part.indptr).max(initial=0)) for part in (support, rows))
            length = np.sqrt(model.kernel.diagonal(squared_norms(chunk)) + self._bias**2) * (1.0 + gamma(most + _SPARE))
            sizes = squared_norms(rows), squared_norms(support)
            doubt = model.near.rounding(*sizes, model.coefficients, most, self._bias**2)[:, None]
        else:
            first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
            values = np.ones(last - first) if chunk.data is None else chunk.data[first:last].astype(np.float64)
            values = values if self._divisors is None else values / self._divisors[chunk.indices[first:last]]
            row = np.repeat(np.arange(chunk.n_rows), np.diff(chunk.indptr))
            rounding = 2.0 * gamma(int(np.diff(chunk.indptr).max(initial=0)) + model.n_features + _SPARE)
            length = np.sqrt(np.bincount(row, values * values, chunk.n_rows) + self._bias**2) * (1.0 + rounding)
            linear = cast(LinearModel, model)
            w = linear.weights if self._divisors is None else (linear.weights.T * self._divisors).T
            norms = np.sqrt((w.reshape(len(w), -1) ** 2).sum(axis=0)) + np.abs(np.atleast_1d(linear.augmented_weights[-1]))
            doubt = rounding * ((length + 1.0)[:, None] * norms + np.abs(scores))
        half = length[:, None] * self._radii + doubt
        return np.nextafter(scores - half, -np.inf), np.nextafter(scores + half, np.inf)


def _reach(risk: PointwiseRisk, ends: np.ndarray, y: np.ndarray, u: np.ndarray, sign: float) -> float:
    """A t ≥ 0 beyond which no optimal intercept lies: moved by −sign·t, the scores `ends` give a slope of this sign."""
    width, inside, outside = float(np.ptp(ends)) + 1.0, 0.0, 0.0

    def beyond(t: float) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            terms = u * risk.duals(y, ends - sign * t)[0]
        return sign * float(terms.sum()) > _PART * float(np.abs(terms).sum())

    while not beyond(outside):
        inside, outside = outside, 4.0 * outside + width
        if outside > _FARTHEST * width:
            return math.inf
    for _ in range(_HALVINGS if outside > 0.0 else 0):
        middle = 0.5 * (inside + outside)
        inside, outside = (inside, middle) if beyond(middle) else (middle, outside)
    return outside * (1.0 + gamma(8.0))
