"""The squared ε-insensitive loss ℓ(z) = max(0, |z| − ε)² of a residual: LIBLINEAR's -s 11 and 12 (Ho & Lin 2012)."""

from __future__ import annotations

import math

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.epsilon_insensitive import EpsilonParameters
from streamcut.losses.residual import ResidualLoss


class SquaredEpsilonInsensitive(ResidualLoss, EpsilonParameters):
    """f ∈ ℝ, ℓ*(−f) = ε|f| + f²/4."""

    __slots__ = ()
    smooth = True

    def value(self, z, y):
        beyond = max(0.0, abs(z) - self.epsilon)
        return beyond * beyond

    def dual(self, z, y):
        beyond = max(0.0, abs(z) - self.epsilon)
        return -2.0 * beyond if z > 0.0 else 2.0 * beyond

    def conjugate(self, f, y):
        return self.epsilon * abs(f) + 0.25 * f * f

    def highest(self, y):
        return math.inf

    def step(self, f, z, q, y):
        after = q * f - z
        shrunk = max(abs(after) - self.epsilon, 0.0) / (q + 0.5)
        return shrunk if after > 0.0 else -shrunk

    def stays(self, f, z, slack, y):
        return f == 0.0 and abs(z) < self.epsilon - slack

    def free(self, f, y):
        return f != 0.0

    def violation(self, f, z, y):
        if f == 0.0:
            return abs(abs(z) - self.epsilon)
        return abs(z + 0.5 * f + (self.epsilon if f > 0.0 else -self.epsilon))

    def curvature(self, f, z, y):
        return 2.0 if abs(z) > self.epsilon else 0.0

    def limit(self, scale):
        return 2.0 * math.sqrt(scale.loss_at_zero)

    def limited(self, f, limit, u):
        most = limit / math.sqrt(u) if u > 0.0 else 0.0
        return min(max(f, -most), most)

    def unbounded(self):
        return True

    @property
    def rounding(self):
        return LossRounding(slope=math.inf, value=8, near_one=2.0 * self.epsilon**2, conjugate=6)

    def steepest(self, seen, near, scale):
        return seen + 2.0 * (near + 2.0**-50 * self.epsilon)
