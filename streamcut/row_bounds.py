"""What rows alone say of a linear model with a loss of single rows: a lower bound of min F, and how exact a computed F is.

All of it is true for real numbers, as in streamcut.rounding: what ordinary sums in float64 may have lost is counted.
"""

from __future__ import annotations

import math

import numpy as np

from streamcut.bundle.penalty import L2, penalty_of
from streamcut.chunk import Chunk
from streamcut.compiled import vectors
from streamcut.compiled.linear import scatter
from streamcut.io.manifest import Statistics
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import Witness
from streamcut.models.linear import LinearModel
from streamcut.rounding import UNSEEN, CutError, Grids, dot_gamma, gamma, mixed

PLAIN = Grids(0.0, 0.0)  # for ordinary sums: a bound needs no equal bits
_SPARE = 32  # roundings beside those that are counted
_LONGER = 1.0 + 1e-6  # squares of rows were added in float64

Point = tuple[np.ndarray, float, CutError]  # of the dual: Σ α_i σ_i x_i, the constants that α brings, how far both may be off


def _longest(model: LinearModel, statistics: Statistics) -> float:
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
            near += 2.0 * np.spacing(np.abs(y))
        far = np.maximum(risk.values(y, scores - near), risk.values(y, scores + near))
        self.loss += float(u @ (far - risk.values(y, scores))) + gamma(risk.rounding.near_one) * float(u.sum())


class OwnCut:
    """The cut at the model's weights: the dual point α_i = −C u_i ℓ′(z_i), by Σ α_i σ_i x_i and the constants it brings."""

    def __init__(self, model: LinearModel, risk: PointwiseRisk, statistics: Statistics) -> None:
        self._model, self._risk = model, risk
        self._longest = _longest(model, statistics)
        self._slope = np.zeros((1, len(model.augmented_weights)))
        self._offset = self._length = self._size = 0.0
        self._rows = 0

    def add(self, chunk: Chunk, scores: np.ndarray, u: np.ndarray) -> None:
        """Take rows, their scores and weights."""
        C, bias = self._model.C, self._model.bias
        signed, constants, sizes = self._risk.duals(chunk.y, scores)
        alpha = C * u * signed
        self._rows += chunk.n_rows
        self._offset += C * float(u @ constants)
        self._length += float(np.abs(alpha).sum()) * self._longest
        self._size += C * float(u @ sizes)
        scatter(chunk.indptr, chunk.indices, chunk.data, alpha, bias, PLAIN, self._slope)

    def bound(self) -> float:
        """Of the best multiple of the dual point: by t ∈ [0, 1] it stays in its box."""
        return best_mixture((np.zeros_like(self._slope[0]), 0.0, CutError(0.0, 0.0)), self._own, self._penalty)

    def bound_with(self, witness: Witness, c_bar: float) -> float:
        """Of the best mixture with the dual point of a witness, or with none, whichever is better."""
        if self._model.l1:  # its witness is none for a mixture
            return max(self.bound(), witness.bound(c_bar, self._model.l1))
        a, b, error, own = -c_bar * witness.a, c_bar * witness.b, witness.error, gamma(_SPARE)
        slope = c_bar * error.slope * _LONGER + own * math.sqrt(float(a @ a)) * _LONGER
        offset = c_bar * error.offset * _LONGER + own * abs(b)
        return max(self.bound(), best_mixture((a, b, CutError(slope, offset)), self._own, self._penalty))

    @property
    def _own(self) -> Point:
        part = gamma(self._rows + _SPARE)
        error = CutError(part * self._length, (part + gamma(self._risk.rounding.conjugate)) * self._size)
        return self._slope[0], self._offset, error

    @property
    def _penalty(self) -> L2:
        return penalty_of(self._model.l1)


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
