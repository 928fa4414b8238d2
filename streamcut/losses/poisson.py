"""The Poisson loss: half the deviance of counts y whose mean is e^s, ℓ(s) = e^s − y s − (y − y log y), 0 at the best s."""

from __future__ import annotations

import math

import numpy as np

from streamcut.foundation.rounding import LossRounding
from streamcut.losses.residual import NoParameters, ResidualLoss

_STEPS = 60  # of Newton's method; three to six are taken
_TERMS = 16  # of a series that ends at a^15 / 16!, a 2⁻⁵⁶th of a² / 2 where |a| ≤ ½
_LARGEST_LOG = 746.0  # greatest |log| of a float64


class Poisson(ResidualLoss, NoParameters):
    """z is the score itself. f ∈ (−∞, y], and with μ = y − f ≥ 0, the mean of a share,
    ℓ*(−f) = μ log μ − μ + y − y log y, with 0 log 0 = 0."""

    __slots__ = ()
    smooth = True
    keeps_target = True
    least_target = 0.0

    def offset(self, y):
        return 0.0

    def value(self, z, y):
        if y == 0.0:
            return np.exp(z)
        a = z - np.log(y)
        if abs(a) > 0.5:
            return y * (np.expm1(a) - a)
        series = 1.0  # near a = 0 the difference would cancel
        for n in range(_TERMS, 2, -1):
            series = 1.0 + a / n * series
        return y * (0.5 * a * a * series)

    def dual(self, z, y):
        return y - np.exp(z)

    def conjugate(self, f, y):
        mean = y - f
        if y == 0.0:
            return mean * np.log(mean) - mean if mean > 0.0 else 0.0
        log_y = np.log(y)
        whole = f - f * log_y
        if mean <= 0.0:
            return whole
        # Times `mean` either is off by roundings of itself and of |f| (1 + |log y|): no larger terms cancel.
        return mean * (np.log1p(-f / y) if abs(f) <= 0.5 * y else np.log(mean) - log_y) + whole

    def constant(self, f, y):
        return -self.conjugate(f, y)

    def size(self, f, y):
        mean = y - f
        if y == 0.0:
            return mean * (abs(np.log(mean)) + 1.0) if mean > 0.0 else 0.0
        return abs(self.conjugate(f, y)) + 2.0 * abs(f) * (1.0 + abs(np.log(y)))

    def target_size(self, y):
        return abs(np.log(y)) if y > 0.0 else 0.0

    def largest_target_size(self, scale):
        return _LARGEST_LOG

    def lowest(self, y):
        return -math.inf

    def highest(self, y):
        return y

    def step(self, f, z, q, y):
        # The score after a step is the root v of v + q e^v = z + q(y - f): increasing and convex.
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

    def curvature(self, f, z, y):
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
        # The rounding of a = z − log y is relative; the loss changes by that fraction times a(e^a − 1)/(e^a − 1 − a) ≤ |a| + 2.
        return LossRounding(slope=math.inf, value=800, conjugate=32)

    def steepest(self, seen, near, scale):
        # |y − e^(s + d)| ≤ |y − e^s| + e^s |e^d − 1|, and e^s ≤ y + |y − e^s|
        return seen + (seen + scale.farthest) * (math.expm1(min(near, 700.0)) + 2.0**-40)

    def prediction(self, scores):
        with np.errstate(over="ignore"):  # a mean beyond float64 is infinite
            return np.exp(scores)

    def constants(self, scale):
        """Scores of which one is near the best constant."""
        return np.log(max(scale.farthest, 1e-300)) - 0.5 * np.arange(65.0)

    def middle(self, scale):
        return math.log(max(super().middle(scale), 1e-300))
