"""The ε-insensitive loss ℓ(z) = max(0, |z| − ε) of a residual: support vector regression (Ho & Lin 2012)."""

from __future__ import annotations

from typing import NamedTuple

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.residual import ResidualLoss


class EpsilonParameters(NamedTuple):
    """ε: residuals up to it cost nothing."""

    epsilon: float = 0.1


class EpsilonInsensitive(ResidualLoss, EpsilonParameters):
    """f ∈ [−1, 1], ℓ*(−f) = ε|f|."""

    __slots__ = ()
    smooth = False

    def value(self, z, y):
        return max(0.0, abs(z) - self.epsilon)

    def dual(self, z, y):
        if z < -self.epsilon:
            return 1.0
        return 0.0 if z < self.epsilon else -1.0

    def conjugate(self, f, y):
        return self.epsilon * abs(f)

    def highest(self, y):
        return 1.0

    def step(self, f, z, q, y):
        after = f - z / q
        shrunk = max(abs(after) - self.epsilon / q, 0.0)
        return min(max(shrunk if after > 0.0 else -shrunk, -1.0), 1.0)

    def stays(self, f, z, slack, y):
        if f == 0.0:
            return abs(z) < self.epsilon - slack
        return (f == 1.0 and z < -self.epsilon - slack) or (f == -1.0 and z > self.epsilon + slack)

    def free(self, f, y):
        return f != 0.0 and abs(f) < 1.0

    def violation(self, f, z, y):
        if f == 0.0:
            return abs(abs(z) - self.epsilon)
        return abs(z + self.epsilon) if f > 0.0 else abs(z - self.epsilon)

    def kinks(self):
        return 2

    def kink(self, j):
        return -self.epsilon if j == 0 else self.epsilon

    @property
    def rounding(self):
        return LossRounding(value=4, near_one=2.0 * self.epsilon, conjugate=4)
