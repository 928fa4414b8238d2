"""The loss of Crammer & Singer (2001) for K classes: ℓ_i = max_y (1[y ≠ y_i] + s_i,y − s_i,y_i), as LIBLINEAR's -s 4 has it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.compiled import multiclass, vectors
from streamcut.foundation.rounding import LossRounding
from streamcut.losses.classes import JointLoss


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
