"""The loss of multinomial logistic regression for K classes: ℓ_i = log Σ_y exp(s_i,y) − s_i,y_i, −log P(y_i) of the softmax.

Its dual variables are a point p of the simplex for each row, −ℓ*(p − e_t) = H(p) = −Σ p log p, so that at any scores

    ℓ(s) ≥ ⟨p − e_t, s⟩ + H(p),    with equality for p = softmax(s).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import softmax, vectors
from streamcut.foundation.rounding import LossRounding
from streamcut.losses.classes import JointLoss


@dataclass(frozen=True, slots=True)
class Softmax(JointLoss):
    """K weight vectors, one redundant except for the regulariser, as in scikit-learn."""

    entropic: ClassVar[bool] = True

    @property
    def rounding(self) -> LossRounding:
        # A term exp(−d) has relative error (d + 2)ε, and is 0 for d > 746. The remaining share of the target is off by an ε for
        # each other class, which changes its −p log p by at most 40 times that (if it is about ε itself).
        K = self.classes
        return LossRounding(value=760 + K, conjugate=8 + 40 * K)

    @property
    def at_zero(self) -> float:
        return math.log(self.classes)

    def losses(self, target: np.ndarray, u: np.ndarray | None, z: np.ndarray, sums: np.ndarray) -> int:
        losses = np.empty(len(z))
        bad = softmax.losses(target, z, losses)
        vectors.accumulate(losses if u is None else u * losses, sums)
        return bad
