"""What rows alone say of a linear model with a loss of single rows: lower bounds of min F, and how exact a computed F is.

All of it is true for real numbers, as in streamcut.rounding: what ordinary sums in float64 may have lost is counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2, penalty_of
from streamcut.chunk import Chunk
from streamcut.compiled import vectors
from streamcut.compiled.linear import scatter
from streamcut.io.manifest import Statistics
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import Witness
from streamcut.models.linear import LinearModel
from streamcut.models.multiclass import MulticlassModel
from streamcut.rounding import UNSEEN, CutError, Grids, dot_gamma, gamma, mixed

PLAIN = Grids(0.0, 0.0)  # for ordinary sums: a bound needs no equal bits
_SPARE = 32  # roundings beside those that are counted
_LONGER = 1.0 + 1e-6  # squares of rows were added in float64

Point = tuple[np.ndarray, float, CutError]  # of the dual: Σ α_i σ_i x_i, the constants that α brings, how far both may be off


def _longest(model: LinearModel | MulticlassModel, statistics: Statistics) -> float:
    """At least ‖x_i‖ of every row, its bias feature included."""
    return math.sqrt(statistics.max_squared_norm + model.bias**2) * _LONGER + UNSEEN


class ScoreDoubt:
    """`loss`: a computed Σ u ℓ may be off by so much, as each score may be by a part γ of ‖x‖‖w‖.

    A convex loss is farthest from ℓ(s) at one end of where s may be.
    """

    def __init__(self, model: LinearModel, statistics: Statistics) -> None:
        w = model.augmented_weights
        self._near = gamma(statistics.max_row_nnz + _SPARE) * _longest(model, statistics) * math.sqrt(float(w @ w)) * _LONGER
        self.loss = 0.0

    def add(self, risk: PointwiseRisk, y: np.ndarray, scores: np.ndarray, u: np.ndarray) -> None:
        """Take rows with targets y, their scores and weights."""
        near = self._near + 2.0 * np.spacing(np.abs(scores))
        if risk.loss.targets == "numbers":
            near += 2.0 * np.spacing(risk.target_sizes(y))
        far = np.maximum(risk.values(y, scores - near), risk.values(y, scores + near))
        off = np.where(far < math.inf, far, 0.0) - np.where(far < math.inf, risk.values(y, scores), -math.inf)
        counts = u > 0.0  # what is far from others may be infinite
        self.loss += float(u[counts] @ off[counts]) + gamma(risk.rounding.near_one) * float(u.sum())


class ClassesDoubt:
    """`losses` (problems,): a computed Σ u ℓ may be off by so much, as the score of each class by a part γ of ‖x‖‖w_k‖."""

    def __init__(self, model: MulticlassModel, statistics: Statistics, problems: int) -> None:
        lengths = np.sqrt((model.augmented_weights**2).sum(axis=0)) * _LONGER
        self._near = gamma(statistics.max_row_nnz + _SPARE) * _longest(model, statistics) * lengths * _LONGER
        self.losses = np.zeros(problems)

    def add(self, loss: Any, target: np.ndarray, scores: np.ndarray, values: np.ndarray, u: np.ndarray) -> None:
        """Take rows of classes `target`, their scores (n, K), their losses (n, problems) by a LossOfClasses, and weights."""
        near = self._near + 2.0 * np.spacing(np.abs(scores))
        far, counts = loss.farthest(target, scores, near), u > 0.0  # what is far from others may be infinite
        self.losses += u[counts] @ (far - values)[counts] + gamma(loss.near_one) * float(u.sum())


class OwnCuts:
    """The cuts at a model's weights: the dual point α_i = −C u_i ℓ′ of each of its problems, by Σ α_i x_iᵀ and constants.

    columns    of weights, of which each problem has one, or the only problem all
    conjugate  roundings in a constant, as parts of its size (streamcut.rounding.LossRounding)
    """

    def __init__(
        self, model: LinearModel | MulticlassModel, statistics: Statistics, columns: int, problems: int, conjugate: float
    ) -> None:
        self._model, self._conjugate, self._rows = model, conjugate, 0
        self._longest = _longest(model, statistics)
        self._columns = columns // problems  # of a problem
        self._slope = np.zeros((columns, len(model.augmented_weights)))
        self._offset, self._length, self._size = np.zeros((3, problems))

    def add(self, chunk: Chunk, u: np.ndarray, signed: np.ndarray, constants: np.ndarray, sizes: np.ndarray) -> None:
        """Take rows of weight u (n,), with −ℓ′ (n, columns), constants and their sizes (n, problems) at their scores."""
        C, bias = self._model.C, self._model.bias
        counts = (u > 0.0)[:, None]  # no weight times what is infinite is nothing
        signed, constants, sizes = (np.where(counts, each, 0.0) for each in (signed, constants, sizes))
        self._rows += chunk.n_rows
        self._offset += C * (u @ constants)
        self._size += C * (u @ sizes)
        for k in range(len(self._slope)):
            alpha = C * u * signed[:, k]
            self._length[k // self._columns] += float(np.abs(alpha).sum()) * self._longest
            scatter(chunk.indptr, chunk.indices, chunk.data, alpha, bias, PLAIN, self._slope[k : k + 1])

    def bounds(self) -> list[float]:
        """Of the best multiple of each dual point: by t ∈ [0, 1] it stays in its box."""
        return [best_mixture((np.zeros_like(own[0]), 0.0, CutError(0.0, 0.0)), own, self._penalty) for own in self._own]

    def bounds_with(self, witnesses: Sequence[Witness], c_bars: Sequence[float]) -> list[float]:
        """Of the best mixtures with the dual points of witnesses, or with none, whichever is better."""
        if self._model.l1:  # its witnesses are none for a mixture
            others = [witness.bound(c_bar, self._model.l1) for witness, c_bar in zip(witnesses, c_bars, strict=True)]
        else:
            known = [_point(witness, c_bar) for witness, c_bar in zip(witnesses, c_bars, strict=True)]
            others = [best_mixture(each, own, self._penalty) for each, own in zip(known, self._own, strict=True)]
        return [max(pair) for pair in zip(self.bounds(), others, strict=True)]

    @property
    def _own(self) -> list[Point]:
        # what a class's α lacks of the sum of the others', or of the simplex, is a rounding for each of them
        part, found = gamma(self._rows + _SPARE + 2 * self._columns), []
        for k, (offset, length, size) in enumerate(zip(self._offset, self._length, self._size, strict=True)):
            slope = self._slope[k * self._columns : (k + 1) * self._columns]
            vector = slope[0] if self._columns == 1 else slope.T.reshape(-1)  # as witnesses have the weights
            found.append((vector, float(offset), CutError(part * length, (part + gamma(self._conjugate)) * size)))
        return found

    @property
    def _penalty(self) -> L2:
        return penalty_of(self._model.l1)


def _point(witness: Witness, c_bar: float) -> Point:
    """Its dual point."""
    a, b, error, own = -c_bar * witness.a, c_bar * witness.b, witness.error, gamma(_SPARE)
    slope = c_bar * error.slope * _LONGER + own * math.sqrt(float(a @ a)) * _LONGER
    return a, b, CutError(slope, c_bar * error.offset * _LONGER + own * abs(b))


def best_mixture(one: Point, other: Point, penalty: L2) -> float:
    """max over t ∈ [0, 1] of D(t) = e + t(offset − e) − R*(g + t(slope − g)), of points (g, e) and (slope, offset) of the dual,
    less what rounding may have done. It is 0 at least, as losses are not negative."""
    (g, e, error), (slope, offset, other_error) = one, other
    step = slope - g
    lengths = sum(math.sqrt(vectors.dot(x, x) * (1.0 + dot_gamma(len(x)))) for x in (g, slope))
    found = 0.0
    for t in (penalty.step(g, step, offset - e)[0], 1.0):  # a step of 0 has no best t
        doubt = mixed(error, other_error, t, lengths, abs(e) + abs(offset))
        found = max(found, penalty.bound(1.0, g + t * step, e + t * (offset - e), doubt)[0])
    return found
