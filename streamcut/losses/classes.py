"""Crammer & Singer's risk of rows with K classes, and the mapping of labels to classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.crammer_singer import CrammerSinger


@dataclass(frozen=True, slots=True)
class ClassesRisk:
    """Class k has the label labels[k]; labels are increasing."""

    labels: tuple[float, ...]

    @property
    def loss(self) -> CrammerSinger:
        return CrammerSinger(self.classes)

    @property
    def classes(self) -> int:
        return len(self.labels)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""
        classes = np.minimum(np.searchsorted(self.labels, y), self.classes - 1)
        return np.where(np.asarray(self.labels)[classes] == y, classes, -1).astype(np.int32)

    @property
    def rounding(self) -> LossRounding:
        """What streamcut.foundation.rounding needs of a loss."""
        return self.loss.rounding
