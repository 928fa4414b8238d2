"""Base of losses of a residual z = s − y, whose targets are numbers."""

from __future__ import annotations

from typing import NamedTuple

from streamcut.losses.loss import FloatShares

BOUNDED_LAST = 1e15  # factor on the priorities of rows whose share is at a bound: they come after all free rows


class NoParameters(NamedTuple):
    """For losses without parameters. The record needs a field: Numba cannot call methods of an empty one."""

    unused: float = 0.0


class ResidualLoss(FloatShares):
    """Base of losses ℓ(s − y)."""

    __slots__ = ()
    targets = "numbers"
    free_below = BOUNDED_LAST

    def sign(self, y):
        return 1.0

    def offset(self, y):
        return y

    def constant(self, f, y):
        return f * y - self.conjugate(f, y)

    def size(self, f, y):
        return abs(f * y) + abs(self.conjugate(f, y))

    def lowest(self, y):
        return -self.highest(y)

    def priority(self, f, z, norm, y):
        far = self.violation(f, z, y)
        return far if self.free(f, y) else BOUNDED_LAST * (1.0 + far)

    def largest_sums(self, rows, scale):
        """For bounded shares; unbounded ones are limited by a row's loss at w = 0."""
        if not self.unbounded():
            most = self.highest(0.0)
            return most * scale.weight, most * scale.targets + self.conjugate(most, 0.0) * scale.weight, float("inf")
        limit = self.limit(scale)
        shares = limit * (rows * scale.weight) ** 0.5
        return shares, shares * scale.farthest + rows * self.conjugate(limit, 0.0), limit
