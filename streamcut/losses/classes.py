"""The risk of rows under a joint loss of K classes, and the mapping of labels to classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from streamcut.compiled import multiclass, vectors
from streamcut.foundation.rounding import Grids, LossRounding
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.losses.joint import JointLoss


@dataclass(frozen=True, slots=True)
class ClassesRisk:
    """The loss of each row, of a kind: Crammer & Singer's unless given. Class k has the label labels[k]; labels are increasing.

    Row weights u are None when all are 1. No constant of a cut exceeds the loss at scores that are all 0, or 1.
    """

    labels: tuple[float, ...]
    kind: Callable[[int], JointLoss] = CrammerSinger  # made of the number of classes

    @property
    def loss(self) -> JointLoss:
        return self.kind(self.classes)

    @property
    def classes(self) -> int:
        return len(self.labels)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""
        places = np.minimum(np.searchsorted(self.labels, y), self.classes - 1)
        return np.where(np.asarray(self.labels)[places] == y, places, -1).astype(np.int32)

    @property
    def rounding(self) -> LossRounding:
        """What streamcut.foundation.rounding needs of a loss."""
        return self.loss.rounding

    @property
    def at_zero(self) -> float:
        """The loss of a row whose scores are all 0."""
        return self.loss.at_zero

    def grids(self, rows: int, weight_sum: float | None, largest: float) -> Grids:
        """The grids of sums over `rows` rows of total weight `weight_sum` (None: 1 each), with |values| up to `largest`."""
        weight = rows if weight_sum is None else weight_sum
        return Grids.holding(vector=largest * weight, weight=max(1.0, self.at_zero) * weight)

    def losses(self, target: np.ndarray, u: np.ndarray | None, z: np.ndarray, sums: np.ndarray) -> int:
        """Add Σ u_i ℓ_i at scores z (n, K) to `sums`; returns the first row with a score that is not finite, or −1."""
        losses = np.empty(len(z))
        bad = multiclass.losses(self.loss, target, z, losses)
        vectors.accumulate(losses if u is None else u * losses, sums)
        return bad
