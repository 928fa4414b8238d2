"""The smoothed hinge loss of the margin: ½(1 − z)² for 0 ≤ z ≤ 1, linear below, 0 above (Shalev-Shwartz & Zhang 2013).

With squares of twice the width it is scikit-learn's modified Huber loss.
"""

from __future__ import annotations

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.loss import FREE_FIRST, MarginLoss, OfLabels, UnitShares


class SmoothedHinge(UnitShares, MarginLoss, OfLabels):
    """f ∈ [0, 1], ℓ*(−f) = ½f² − f."""

    __slots__ = ()
    smooth = True

    def value(self, z, y):
        below = max(0.0, 1.0 - z)
        return 0.5 * below * below if below < 1.0 else below - 0.5

    def dual(self, z, y):
        return min(1.0, max(0.0, 1.0 - z))

    def conjugate(self, f, y):
        return 0.5 * f * f - f

    def step(self, f, z, q, y):
        return min(1.0, max(0.0, (1.0 - z + q * f) / (q + 1.0)))

    def stays(self, f, z, slack, y):
        return (f == 0.0 and z - 1.0 > slack) or (f == 1.0 and z < -slack)

    def free(self, f, y):
        return 0.0 < f < 1.0

    def violation(self, f, z, y):
        return abs(1.0 - z - f)

    def priority(self, f, z, norm, y):
        return abs(1.0 - z - f) + (FREE_FIRST if f == 0.0 or f == 1.0 else 0.0)

    def curvature(self, f, z, y):
        return 1.0 if 0.0 < z < 1.0 else 0.0

    @property
    def rounding(self):
        return LossRounding(value=4, conjugate=4)

    def size(self, f, y):
        return f + 0.5 * f * f
