"""The hinge loss ℓ(z) = max(0, 1 − z) of the margin (Hsieh et al. 2008 for its dual coordinate step)."""

from __future__ import annotations

from streamcut.losses.loss import FREE_FIRST, MarginLoss, OfLabels, UnitShares


class Hinge(UnitShares, MarginLoss, OfLabels):
    """f ∈ [0, 1], ℓ*(−f) = −f."""

    __slots__ = ()
    smooth = False

    def value(self, z, y):
        return max(0.0, 1.0 - z)

    def dual(self, z, y):
        return 1.0 if z < 1.0 else 0.0

    def conjugate(self, f, y):
        return -f

    def step(self, f, z, q, y):
        return min(1.0, max(0.0, f + (1.0 - z) / q))

    def stays(self, f, z, slack, y):
        ahead = 1.0 - z
        return (f == 0.0 and ahead < -slack) or (f == 1.0 and ahead > slack)

    def free(self, f, y):
        return 0.0 < f < 1.0

    def violation(self, f, z, y):
        return abs(1.0 - z)

    def priority(self, f, z, norm, y):
        return abs(1.0 - z) + (FREE_FIRST if f == 0.0 or f == 1.0 else 0.0)

    def sized(self):
        return False

    def kinks(self):
        return 1

    def kink(self, j):
        return 1.0


class Inside(Hinge):
    """The same for rows of one class: labels are ignored (streamcut.bundle.one_class)."""

    __slots__ = ()

    def sign(self, y):
        return 1.0
