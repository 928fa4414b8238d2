"""Huber's loss of a residual: ½z² up to |z| = δ, linear beyond (Huber 1964)."""

from __future__ import annotations

from typing import NamedTuple

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.residual import ResidualLoss


class HuberParameters(NamedTuple):
    """δ: where the loss becomes linear."""

    delta: float = 1.0


class Huber(ResidualLoss, HuberParameters):
    """f ∈ [−δ, δ], ℓ*(−f) = ½f²."""

    __slots__ = ()
    smooth = True

    def value(self, z, y):
        far = abs(z)
        return 0.5 * z * z if far <= self.delta else self.delta * (far - 0.5 * self.delta)

    def dual(self, z, y):
        return min(max(-z, -self.delta), self.delta)

    def conjugate(self, f, y):
        return 0.5 * f * f

    def highest(self, y):
        return self.delta

    def step(self, f, z, q, y):
        return min(max((q * f - z) / (q + 1.0), -self.delta), self.delta)

    def stays(self, f, z, slack, y):
        return (f == self.delta and z < -self.delta - slack) or (f == -self.delta and z > self.delta + slack)

    def free(self, f, y):
        return abs(f) < self.delta

    def violation(self, f, z, y):
        return abs(z + f)

    def curvature(self, f, z, y):
        return 1.0 if abs(z) < self.delta else 0.0

    @property
    def rounding(self):
        return LossRounding(slope=self.delta, value=6, conjugate=4)
