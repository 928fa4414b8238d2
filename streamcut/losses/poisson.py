"""The Poisson loss: half the deviance of counts y whose mean is e^s, ℓ(s) = e^s − y s − (y − y log y), 0 at the best s."""

from __future__ import annotations

import math

import numpy as np

from streamcut.losses.residual import NoParameters, ResidualLoss
from streamcut.rounding import LossRounding

_STEPS = 60  # of Newton's method; three to six are taken


class Poisson(ResidualLoss, NoParameters):
    """z is the score itself. f ∈ (−∞, y], and with μ = y − f ≥ 0, the mean that a share stands for,
    ℓ*(−f) = μ log μ − μ + y − y log y, with 0 log 0 = 0."""

    __slots__ = ()
    smooth = True
    incremental = False
    keeps_target = True
    least_target = 0.0

    def offset(self, y):
        return 0.0

    def value(self, z, y):
        if y == 0.0:
            return np.exp(z)
        above = z - np.log(y)
        return y * (np.expm1(above) - above)

    def dual(self, z, y):
        return y - np.exp(z)

    def conjugate(self, f, y):
        mean = y - f
        if y == 0.0:
            return mean * np.log(mean) - mean if mean > 0.0 else 0.0
        whole = f - f * np.log(y)
        return mean * np.log(mean / y) + whole if mean > 0.0 else whole

    def constant(self, f, y):
        return -self.conjugate(f, y)

    def size(self, f, y):
        mean = y - f
        if y == 0.0:
            return mean * (abs(np.log(mean)) + 1.0) if mean > 0.0 else 0.0
        whole = abs(f) * (1.0 + abs(np.log(y)))
        return mean * abs(np.log(mean / y)) + whole if mean > 0.0 else whole

    def lowest(self, y):
        return -math.inf

    def highest(self, y):
        return y

    def step(self, f, z, q, y):
        # The score that a step leaves is the root v of v + q e^v = z + q(y - f): increasing and convex.
        whole = z + q * (y - f)
        v = min(whole, np.log(whole / q)) if whole > 0.0 else whole
        for _ in range(_STEPS):
            part = q * np.exp(v)
            move = (v + part - whole) / (1.0 + part)
            v -= move
            if abs(move) <= 1e-7:
                break
        return y - np.exp(v)

    def stays(self, f, z, slack, y):
        return False

    def free(self, f, y):
        return True

    def violation(self, f, z, y):
        return abs(y - np.exp(z) - f)

    def priority(self, f, z, norm, y):
        moves = norm * np.exp(z)
        return 1.0 / np.sqrt(moves) if moves > 1e-300 else math.inf

    def curvature(self, z, y):
        return np.exp(z)

    def limit(self, scale):
        return 2.0 * scale.loss_at_zero + 8.0 * scale.farthest + 1.0

    def limited(self, f, limit, u):
        return max(f, -limit / min(u, 1.0)) if u > 0.0 else 0.0

    def largest_sums(self, rows, scale):
        limit = self.limit(scale)
        shares = limit * (rows + scale.weight)
        return shares, shares * (2.0 + abs(np.log(limit + scale.farthest))), limit

    def unbounded(self):
        return True

    @property
    def rounding(self):
        return LossRounding(slope=math.inf, value=800, conjugate=800)

    def steepest(self, seen, near, scale):
        return (seen + scale.farthest) * math.exp(min(near, 700.0))

    def prediction(self, scores):
        return np.exp(scores)

    def constants(self, scale):
        """Scores of which one is near the best constant."""
        return np.log(max(scale.farthest, 1e-300)) - 0.5 * np.arange(65.0)
