"""Base of losses of K classes: the mapping of labels to classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
