"""What losses of K classes have in common: which label is which class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from streamcut.losses.loss import Loss, TargetScale
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.rounding import Grids, LossRounding


@dataclass(frozen=True, slots=True)
class ClassesLoss(ABC):
    """Base. Class k has the label labels[k]; labels are increasing. Row weights u are None when all are 1."""

    labels: tuple[float, ...]

    @property
    def classes(self) -> int:
        return len(self.labels)

    @property
    def largest_target(self) -> int:
        """The largest number that `targets` gives."""
        return self.classes - 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for a label that is not known."""
        places = np.minimum(np.searchsorted(self.labels, y), self.classes - 1)
        return np.where(np.asarray(self.labels)[places] == y, places, -1).astype(np.int32)

    @property
    @abstractmethod
    def rounding(self) -> LossRounding:
        """What streamcut.rounding asks of a loss."""

    @property
    @abstractmethod
    def at_zero(self) -> float:
        """The loss of a row whose scores are all 0."""

    @abstractmethod
    def grids(self, rows: int, weight_sum: float | None, largest: float) -> Grids:
        """The grids of sums over `rows` rows of whole weight `weight_sum` (None: 1 each), values up to `largest` in size."""


class JointLoss(ClassesLoss):
    """Base of losses of all classes together. No constant of a cut is more than the loss of scores that are all 0, or 1."""

    __slots__ = ()

    def grids(self, rows: int, weight_sum: float | None, largest: float) -> Grids:
        weight = rows if weight_sum is None else weight_sum
        return Grids.holding(vector=largest * weight, weight=max(1.0, self.at_zero) * weight)

    @abstractmethod
    def losses(self, target: np.ndarray, u: np.ndarray | None, z: np.ndarray, sums: np.ndarray) -> int:
        """Add Σ u_i ℓ_i at scores z (n, K) to `sums`; returns the first row with a score that is not finite, or −1."""


@dataclass(frozen=True, slots=True)
class OneVsRest(ClassesLoss):
    """`loss`, one of labels whose positive one is 1, of each class: 1 for its own rows, −1 for all others.

    others  labels of rows that are of none of the classes: classes that are trained at another time
    """

    loss: Loss
    others: tuple[float, ...] = ()

    def part(self, classes: range) -> OneVsRest:
        """Of these classes alone, in the same rows."""
        chosen = self.labels[classes.start : classes.stop]
        return replace(self, labels=chosen, others=tuple(label for label in self.labels if label not in chosen))

    @property
    def largest_target(self) -> int:
        return self.classes - (not self.others)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """As those of all classes; `classes` for one of the others."""
        numbers = ClassesLoss.targets(self, y)
        if self.others:
            numbers[(numbers < 0) & np.isin(y, self.others)] = self.classes
        return numbers

    @property
    def rounding(self) -> LossRounding:
        return self.loss.rounding

    @property
    def at_zero(self) -> float:
        return self.loss.value(0.0, 1.0)

    def grids(self, rows: int, weight_sum: float | None, largest: float) -> Grids:
        return PointwiseRisk(self.loss).grids(rows, self.scale(float(rows) if weight_sum is None else weight_sum), largest)

    def scale(self, weight: float) -> TargetScale:
        """Of rows of this whole weight."""
        return PointwiseRisk(self.loss).scale(weight, -1.0, 1.0)
