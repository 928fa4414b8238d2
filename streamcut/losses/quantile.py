"""The pinball loss of a residual, whose best constant is a quantile (Koenker & Bassett 1978)."""

from __future__ import annotations

from typing import NamedTuple

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.residual import ResidualLoss


class QuantileParameters(NamedTuple):
    """τ, 0 < τ < 1: targets above the score cost τ per unit, those below it 1 − τ."""

    quantile: float = 0.5


class Quantile(ResidualLoss, QuantileParameters):
    """f ∈ [τ − 1, τ], ℓ*(−f) = 0."""

    __slots__ = ()
    smooth = False

    def value(self, z, y):
        return -self.quantile * z if z < 0.0 else (1.0 - self.quantile) * z

    def dual(self, z, y):
        return self.quantile if z < 0.0 else self.quantile - 1.0

    def conjugate(self, f, y):
        return 0.0

    def lowest(self, y):
        return self.quantile - 1.0

    def highest(self, y):
        return self.quantile

    def step(self, f, z, q, y):
        return min(max(f - z / q, self.quantile - 1.0), self.quantile)

    def stays(self, f, z, slack, y):
        return (f == self.quantile and z < -slack) or (f == self.quantile - 1.0 and z > slack)

    def free(self, f, y):
        return self.quantile - 1.0 < f < self.quantile

    def violation(self, f, z, y):
        return abs(z)

    def kinks(self):
        return 1

    def kink(self, j):
        return 0.0

    def largest_sums(self, rows, scale):
        return scale.weight, scale.targets, float("inf")

    @property
    def rounding(self):
        return LossRounding(value=4, conjugate=4)
