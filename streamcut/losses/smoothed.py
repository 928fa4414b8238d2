"""A piecewise linear loss with the slopes of a smooth one, and Huber's with those of a wider one, for Newton's method.

Within a `width` of a kink the slope rises linearly: it is that of the loss averaged uniformly over z ± width, as in Chapelle 2007
for the hinge. Values are those of the loss itself, and shares are feasible for it: a cut from them is a lower bound whatever the
width, and touches the loss except near kinks, where it is below by at most a quarter of the width.
"""

from __future__ import annotations

from typing import NamedTuple

from streamcut.losses.loss import Loss


class Smoothed(NamedTuple):
    """`inner`, a loss with kinks (streamcut.losses.loss.Loss), and what kernels of cuts, slopes and curvatures call of one."""

    inner: Loss
    width: float

    def sign(self, y):
        return self.inner.sign(y)

    def offset(self, y):
        return self.inner.offset(y)

    def target_size(self, y):
        return self.inner.target_size(y)

    def value(self, z, y):
        return self.inner.value(z, y)

    def dual(self, z, y):
        f = self.inner.highest(y)
        for j in range(self.inner.kinks()):
            f -= min(1.0, max(0.0, 0.5 + 0.5 * (z - self.inner.kink(j)) / self.width))
        return f

    def curvature(self, f, z, y):
        total = 0.0
        for j in range(self.inner.kinks()):
            if abs(z - self.inner.kink(j)) < self.width:
                total += 0.5 / self.width
        return total

    def kinks(self):
        return 0

    def kink(self, j):
        return 0.0

    def conjugate(self, f, y):
        return self.inner.conjugate(f, y)

    def constant(self, f, y):
        return self.inner.constant(f, y)

    def sized(self):
        return self.inner.sized()

    def size(self, f, y):
        return self.inner.size(f, y)

    def unbounded(self):
        return False

    def limited(self, f, limit, u):
        return f


class Widened(Smoothed):
    """Huber's loss: its slope rises linearly within `width`, at least δ, of 0. Rows farther than δ have no curvature, and where
    most are, as with prices, Newton's steps would be those of gradient descent."""

    __slots__ = ()

    def dual(self, z, y):
        return min(max(-z / self.width, -1.0), 1.0) * self.inner.highest(y)

    def curvature(self, f, z, y):
        return self.inner.highest(y) / self.width if abs(z) < self.width else 0.0
