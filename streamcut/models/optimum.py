"""Where the exact optimum of a model's problem is: an ellipsoid around its weights."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from streamcut.foundation.fields import Fields
from streamcut.models.stated import checked

_OWN = ("gap", "distance", "half", "rows", "passes", "weights", "errors")


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """|⟨w_b − w*, x⟩| ≤ distance · √(xᵀQx) and |⟨w_b − step − w*, x⟩| ≤ half · √(xᵀQx) for every row x, with the model's
    weights w_b and the exact optimum w*, the bias feature's weight or a free intercept last in both.

    spread    Q ⪰ 0, its lower triangle row after row, float64 (D(D + 1)/2,); D counts the features and the bias feature, if any
    step      float64 (D,): half of Newton's step
    low, high  float64 (D,) each: bounds on the standard errors of w*; None where the loss has none
    gap       upper bound on F(w_b) − F(w*), from the rows
    rows, passes  numbers read
    weights   SHA-256 of w_b: the ellipsoid is valid for these weights only
    """

    spread: np.ndarray
    step: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    gap: float
    distance: float
    half: float
    rows: int
    passes: int
    weights: str

    @property
    def dimension(self) -> int:
        """D."""
        return (math.isqrt(8 * len(self.spread) + 1) - 1) // 2

    @property
    def diagonal(self) -> np.ndarray:
        """The diagonal of Q, float64 (D,)."""
        j = np.arange(self.dimension)
        return self.spread[j * (j + 3) // 2]

    def parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(JSON fields, arrays by name)."""
        errors = {} if self.low is None or self.high is None else {"errors_low": self.low, "errors_high": self.high}
        numbers = {name: getattr(self, name) for name in _OWN[:-1]} | {"errors": bool(errors)}
        return numbers, {"optimum": self.spread, "optimum_step": self.step, **errors}

    @classmethod
    def from_parts(cls, given: Fields, arrays: dict[str, np.ndarray], dimension: int) -> Self:
        """The inverse of `parts`, for a model whose weights have this dimension. Raises ValueError or KeyError."""
        given.expect_only(_OWN)
        ends = (
            [checked(arrays, name, dimension) for name in ("errors_low", "errors_high")] if given.flag("errors") else [None] * 2
        )
        found = cls(
            spread=checked(arrays, "optimum", dimension * (dimension + 1) // 2),
            step=checked(arrays, "optimum_step", dimension),
            low=ends[0],
            high=ends[1],
            gap=given.number("gap", 0.0),
            distance=given.number("distance", 0.0),
            half=given.number("half", 0.0),
            rows=given.integer("rows"),
            passes=given.integer("passes"),
            weights=given.text("weights"),
        )
        if (found.diagonal < 0.0).any():
            raise ValueError("optimum: its diagonal has a negative number")
        return found


def digest(weights: np.ndarray) -> str:
    """SHA-256 of float64 numbers."""
    return hashlib.sha256(np.ascontiguousarray(weights, "<f8").tobytes()).hexdigest()
