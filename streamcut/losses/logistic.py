"""The logistic loss ℓ(z) = log(1 + e^−z) of the margin (Yu, Huang & Lin 2011 for its dual coordinate step)."""

from __future__ import annotations

import math

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.loss import MarginLoss, OfLabels, UnitShares

_STEPS = 60  # of Newton's method; one to three are taken
_CLOSE = 1e-3  # of v: a move that small leaves an error of its square, a hundredth of what codes tell apart
_FLAT = 1e-300


class Logistic(UnitShares, MarginLoss, OfLabels):
    """f ∈ [0, 1], ℓ*(−f) = f log f + (1 − f) log(1 − f)."""

    __slots__ = ()
    smooth = True
    least_curvature = 4.0

    def value(self, z, y):
        return math.log1p(math.exp(-abs(z))) - min(z, 0.0)

    def dual(self, z, y):
        small = math.exp(-abs(z))  # no branch: the sign is nearly random from row to row
        return (small if z > 0.0 else 1.0) / (1.0 + small)

    def size(self, f, y):
        return abs(self.conjugate(f, y)) + 2.0 * f  # near 1 rounding f has 37 times the effect

    def conjugate(self, f, y):
        return f * math.log(f) + (1.0 - f) * math.log1p(-f) if 0.0 < f < 1.0 else 0.0

    def step(self, f, z, q, y):
        # The share f' is sigma(-v) of the margin v that a step leaves: v = z + q(f' - f) is the root of an increasing function,
        # v - z - q(sigma(-v) - f), whose slope is between 1 and 1 + q/4. Newton in v needs no logarithm and no bounds.
        low, high = z - q * f, z + q * (1.0 - f)
        share = self.dual(z, y)
        v = min(max(z + q * (share - f) / (1.0 + q * share * (1.0 - share)), low), high)
        last = high - low
        for _ in range(_STEPS):
            share = self.dual(v, y)
            error = v - z - q * (share - f)
            if error > 0.0:
                high = v
            else:
                low = v
            slope = share * (1.0 - share)
            move = error / (1.0 + q * slope)
            if not low <= v - move <= high or abs(move) > 0.5 * last:  # it may oscillate: then the middle of the bracket
                move = v - 0.5 * (low + high)
            v -= move
            last = abs(move)
            if last <= _CLOSE:
                return share + slope * move
        return self.dual(v, y)

    @property
    def rounding(self):
        return LossRounding(value=8, conjugate=8)

    def stays(self, f, z, slack, y):
        return False

    def free(self, f, y):
        return True

    def violation(self, f, z, y):
        return abs(self.dual(z, y) - f)

    def priority(self, f, z, norm, y):
        moves = norm * self.curvature(self.dual(z, y), z, y)
        return 1.0 / math.sqrt(moves) if moves > _FLAT else math.inf

    def curvature(self, f, z, y):
        return f * (1.0 - f)
