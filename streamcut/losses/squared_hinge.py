"""The squared hinge loss ℓ(z) = max(0, 1 − z)² of the margin: LIBLINEAR's default, and that of scikit-learn's LinearSVC."""

from __future__ import annotations

import math

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.loss import FREE_FIRST, FloatShares, MarginLoss, OfLabels


class SquaredHinge(FloatShares, MarginLoss, OfLabels):
    """f ≥ 0, ℓ*(−f) = −f + f²/4."""

    __slots__ = ()
    smooth = True

    def value(self, z, y):
        below = max(0.0, 1.0 - z)
        return below * below

    def dual(self, z, y):
        return max(0.0, 2.0 * (1.0 - z))

    def conjugate(self, f, y):
        return 0.25 * f * f - f

    def lowest(self, y):
        return 0.0

    def highest(self, y):
        return math.inf

    def step(self, f, z, q, y):
        return max(0.0, f + (1.0 - z - 0.5 * f) / (q + 0.5))

    def stays(self, f, z, slack, y):
        return f == 0.0 and z - 1.0 > slack

    def free(self, f, y):
        return f > 0.0

    def violation(self, f, z, y):
        return abs(1.0 - z - 0.5 * f)

    def priority(self, f, z, norm, y):
        return abs(1.0 - z - 0.5 * f) + (FREE_FIRST if f == 0.0 else 0.0)

    def curvature(self, f, z, y):
        return 2.0 if z < 1.0 else 0.0

    @property
    def rounding(self):
        return LossRounding(slope=math.inf, value=4, conjugate=4)

    def size(self, f, y):
        return f + 0.25 * f * f

    def unbounded(self):
        return True

    def steepest(self, seen, near, scale):
        return seen + 2.0 * near

    def limited(self, f, limit, u):
        return min(f, limit / math.sqrt(u)) if u > 0.0 else 0.0

    def largest_sums(self, rows, scale):
        limit = 2.0 * math.sqrt(scale.loss_at_zero)  # at the optimum no row has more loss than all rows at w = 0
        shares = limit * math.sqrt(rows * scale.weight)
        return shares, shares + 0.25 * rows * limit * limit, limit
