"""Losses of K classes, and the mapping of labels to classes.

Multinomial logistic regression: ℓ_i = log Σ_y exp(s_i,y) − s_i,y_i, −log P(y_i) of the softmax. Its dual variables are a point p
of the simplex for each row, −ℓ*(p − e_t) = H(p) = −Σ p log p, so that at any scores

    ℓ(s) ≥ ⟨p − e_t, s⟩ + H(p),    with equality for p = softmax(s).

Crammer & Singer (2001): ℓ_i = max_y (1[y ≠ y_i] + s_i,y − s_i,y_i), as LIBLINEAR's -s 4 has it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import multiclass, softmax, vectors
from streamcut.foundation.rounding import Grids, LossRounding


@dataclass(frozen=True, slots=True)
class JointLoss(ABC):
    """Base of losses of all classes together. Class k has the label labels[k]; labels are increasing.

    Row weights u are None when all are 1. No constant of a cut exceeds the loss at scores that are all 0, or 1.
    """

    labels: tuple[float, ...]
    entropic: ClassVar[bool] = False  # the dual contains entropies of shares

    @property
    def classes(self) -> int:
        return len(self.labels)

    @property
    def largest_target(self) -> int:
        """The largest number that `targets` returns."""
        return self.classes - 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""
        places = np.minimum(np.searchsorted(self.labels, y), self.classes - 1)
        return np.where(np.asarray(self.labels)[places] == y, places, -1).astype(np.int32)

    @property
    @abstractmethod
    def rounding(self) -> LossRounding:
        """What streamcut.foundation.rounding needs of a loss."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """The loss of a row whose scores are all 0."""

    def grids(self, rows: int, weight_sum: float | None, largest: float) -> Grids:
        """The grids of sums over `rows` rows of total weight `weight_sum` (None: 1 each), with |values| up to `largest`."""
        weight = rows if weight_sum is None else weight_sum
        return Grids.holding(vector=largest * weight, weight=max(1.0, self.at_zero) * weight)

    @abstractmethod
    def losses(self, target: np.ndarray, u: np.ndarray | None, z: np.ndarray, sums: np.ndarray) -> int:
        """Add Σ u_i ℓ_i at scores z (n, K) to `sums`; returns the first row with a score that is not finite, or −1."""


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


@dataclass(frozen=True, slots=True)
class CrammerSinger(JointLoss):
    """The hinge loss of the margin to the strongest rival class."""

    @property
    def rounding(self) -> LossRounding:
        return LossRounding(value=4, near_one=4)

    @property
    def at_zero(self) -> float:
        return 1.0

    def losses(self, target: np.ndarray, u: np.ndarray | None, z: np.ndarray, sums: np.ndarray) -> int:
        losses = np.empty(len(z))
        bad = multiclass.losses(target, z, losses)
        vectors.accumulate(losses if u is None else u * losses, sums)
        return bad
