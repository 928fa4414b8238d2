"""The squared loss ℓ(z) = ½z² of a residual: ridge regression."""

from __future__ import annotations

import math

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.residual import NoParameters, ResidualLoss


class Squared(ResidualLoss, NoParameters):
    """f ∈ ℝ, ℓ*(−f) = ½f²."""

    __slots__ = ()
    smooth = True

    def value(self, z, y):
        return 0.5 * z * z

    def dual(self, z, y):
        return -z

    def conjugate(self, f, y):
        return 0.5 * f * f

    def highest(self, y):
        return math.inf

    def step(self, f, z, q, y):
        return (q * f - z) / (q + 1.0)

    def stays(self, f, z, slack, y):
        return False

    def free(self, f, y):
        return True

    def violation(self, f, z, y):
        return abs(z + f)

    def curvature(self, f, z, y):
        return 1.0

    def limit(self, scale):
        return math.sqrt(2.0 * scale.loss_at_zero)

    def limited(self, f, limit, u):
        most = limit / math.sqrt(u) if u > 0.0 else 0.0
        return min(max(f, -most), most)

    def unbounded(self):
        return True

    @property
    def rounding(self):
        return LossRounding(slope=math.inf, value=4, conjugate=4)

    def steepest(self, seen, near, scale):
        return seen + near
