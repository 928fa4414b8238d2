"""The binary hinge loss ℓ_i = max(0, 1 − y_i s_i): what it needs of a row, its cut, and its share of a line search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import hinge
from streamcut.rounding import Grids, LossRounding


@dataclass(frozen=True, slots=True)
class Hinge:
    """y_i = +1 for the label `positive`, −1 for every other; rows of `positive` weigh `positive_weight` times their own weight.

    A row's state is its margin z_i = y_i s_i. Row weights u are None when all are 1.
    """

    positive: float
    positive_weight: float = 1.0
    rounding: ClassVar[LossRounding] = LossRounding()

    def weighted(self, rows_have_weights: bool) -> bool:
        return rows_have_weights or self.positive_weight != 1.0

    def weights(self, y: np.ndarray, weight: np.ndarray | None, rounder: float, out: np.ndarray) -> float:
        """u of each row into `out`; returns their sum."""
        return hinge.row_weights(y, self.positive, weight, self.positive_weight, rounder, out)

    def margins(self, y: np.ndarray, u: np.ndarray | None, scores: np.ndarray, sums: np.ndarray) -> int:
        """Turn scores into margins, in place, and add Σ u_i ℓ_i to `sums`; returns the first row that is not finite, or −1."""
        return hinge.margins(y, self.positive, u, scores, sums)

    def cut(self, y, z_b, z, kappa: float, u, grids: Grids, out, sums) -> None:
        """Coefficients of the rows in the cut at z_b + κ(z − z_b) into `out`; sums (2) += Σ u 1[z_c < 1]. Neither is over M."""
        hinge.cut_coefficients(y, self.positive, z_b, z, kappa, u, grids, out, sums)
