"""Intervals of the scores of the exact optimum, for any rows: round those of the model, or of the middle of a ball.

Ball. ½‖w_b − w*‖² ≤ F(w_b) − F* as F is 1-strongly convex, and ½‖w_D − w*‖² ≤ F* − D for the dual point w_D = −C̄a of the witness
(a, b), whose value is D: added up, w* is within √(G − ¼‖w_b − w_D‖²) of the middle of w_b and w_D, and within √(2G) of w_b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import above, dual_value, gamma
from streamcut.locating.problem import is_scaled
from streamcut.locating.sums import lengths, magnitudes, row_gamma, scores, widths
from streamcut.models.linear import LinearModel
from streamcut.models.optimum import Optimum, digest

_SPARE = 64


class Region(Protocol):
    """Bounds on the scores of the optimum."""

    def within(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high), float64 (n,): bounds on the scores of the rows; the model's are `found`."""


def region_of(model: LinearModel) -> Region:
    """The best region that the model itself records. Raises UsageError if there is none."""
    if model.optimum is not None:
        if model.optimum.weights != digest(model.augmented_weights):
            raise UsageError("the model's weights are not those that were located; locate it again")
        own = Ellipsoid(model.augmented_weights, model.bias, model.optimum)
        return own if is_scaled(model) or model.free else Meet(own, Ball(model))
    if is_scaled(model):
        raise UsageError(
            "the model was trained on scaled features, and its gap says how far it is from the optimum in these; give the rows "
            "that it was trained on (trained_on, --trained-on)"
        )
    if model.free:
        raise UsageError(
            "the model's gap does not say where the optimum's free intercept is; give the rows that it was trained on "
            "(trained_on, --trained-on)"
        )
    return Ball(model)


class Nowhere:
    """Nothing is known."""

    def within(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(found), -np.inf), np.full(len(found), np.inf)


@dataclass(frozen=True, slots=True)
class Meet:
    """The intersection of two regions."""

    one: Region
    other: Region

    def within(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (low, high), (least, greatest) = self.one.within(chunk, found), self.other.within(chunk, found)
        return np.maximum(low, least), np.minimum(high, greatest)


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """Round weights, the bias feature's last if `bias` is not 0."""

    weights: np.ndarray
    bias: float
    optimum: Optimum

    def within(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        known = self.optimum
        width = widths(chunk, known.spread, known.diagonal, self.bias)
        off = doubt(chunk, np.abs(self.weights) + np.abs(known.step), self.bias)
        middle = found - scores(chunk, known.step, self.bias)
        far, near = known.distance * width + off, known.half * width + off
        low, high = np.maximum(found - far, middle - near), np.minimum(found + far, middle + near)
        return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


class Ball:
    """Round the model's weights, and round the middle between them and the dual point; for the weights alone if the intercept
    is free, which `within` leaves out.

    dual     float64, as long as the weights: the dual point; None: the model has none
    middle   radius round the middle between both, rounding included
    """

    def __init__(self, model: LinearModel) -> None:
        w = model.weights if model.free else model.augmented_weights
        self._w, self._bias = np.ascontiguousarray(w, np.float64), model.bias
        c = model.certificate
        size = float(np.linalg.norm(self._w)) * (1.0 + gamma(len(self._w)))
        own = gamma(4.0) * size  # of the bias feature's weight, which is the intercept divided by its value
        gap = above(c.gap, gamma(4.0) * c.primal)
        self.radius = math.sqrt(2.0 * gap) * (1.0 + gamma(8.0)) + own
        self.dual: np.ndarray | None = None
        self.middle = math.inf
        witness = model.witness
        if witness is None or model.l1 != 0.0 or model.task == "one-class" or len(witness.a) != len(self._w):
            return
        dimension = len(self._w)
        own_gamma = gamma(dimension + _SPARE)
        square = float(witness.a @ witness.a)
        bound = dual_value(c.c_bar, square * (1.0 + own_gamma), witness.b, witness.error, dimension)
        dual = -c.c_bar * witness.a
        off = c.c_bar * witness.error.slope + own_gamma * float(np.linalg.norm(dual)) + own
        apart = max(0.0, float(np.linalg.norm(self._w - dual)) * (1.0 - own_gamma) - off)
        left = above(c.primal - bound, gamma(4.0) * c.primal) - 0.25 * apart * apart * (1.0 - gamma(8.0))
        self.dual, self.middle = dual, math.sqrt(max(left, 0.0)) * (1.0 + gamma(8.0)) + 0.5 * off + own

    def within(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        length = lengths(chunk, self._bias)
        near = doubt(chunk, np.abs(self._w), self._bias)
        low, high = found - (self.radius * length + near), found + (self.radius * length + near)
        if self.dual is not None:
            middle = 0.5 * (found + scores(chunk, self.dual, self._bias))
            near = self.middle * length + near + doubt(chunk, np.abs(self.dual), self._bias)
            low, high = np.maximum(low, middle - near), np.minimum(high, middle + near)
        return np.nextafter(low, -np.inf), np.nextafter(high, np.inf)


def doubt(chunk: Chunk, size: np.ndarray, bias: float) -> np.ndarray:
    """How far a computed score of each row may be off; `size` are |w|."""
    return 2.0 * row_gamma(chunk) * magnitudes(chunk, size, bias)
