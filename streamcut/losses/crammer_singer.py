"""The loss of Crammer & Singer (2001) for K classes: ℓ_i = max_y (1[y ≠ y_i] + s_i,y − s_i,y_i), as LIBLINEAR's -s 4 has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import multiclass, vectors
from streamcut.rounding import LossRounding


@dataclass(frozen=True, slots=True)
class CrammerSinger:
    """Class k has the label labels[k]; labels are increasing. Row weights u are None when all are 1."""

    labels: tuple[float, ...]
    rounding: ClassVar[LossRounding] = LossRounding(value=4, near_one=4)

    @property
    def classes(self) -> int:
        return len(self.labels)

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for a label that is not known."""
        places = np.minimum(np.searchsorted(self.labels, y), self.classes - 1)
        return np.where(np.asarray(self.labels)[places] == y, places, -1).astype(np.int32)

    def losses(self, target: np.ndarray, u: np.ndarray | None, z: np.ndarray, sums: np.ndarray) -> int:
        """Add Σ u_i ℓ_i at scores z (n, K) to `sums`; returns the first row with a score that is not finite, or −1."""
        losses = np.empty(len(z))
        bad = multiclass.losses(target, z, losses)
        vectors.accumulate(losses if u is None else u * losses, sums)
        return bad
