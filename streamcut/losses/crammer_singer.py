"""Crammer & Singer (2001): ℓ = max_k (1[k ≠ t] + s_k − s_t), the hinge loss of the margin to the strongest rival class, as
LIBLINEAR's -s 4 has it."""

from __future__ import annotations

import numpy as np

from streamcut.compiler.jit import kernel
from streamcut.foundation.rounding import LossRounding
from streamcut.losses.joint import JointLoss, OfClasses

_TINY = 1e-200  # below this curvature the dual along a row is taken as linear


class CrammerSinger(OfClasses, JointLoss):
    """c(p) = 1 − p_t."""

    __slots__ = ()
    smooth = False

    def bounded(self):
        return True

    def margin(self, k, t):
        return 0.0 if k == t else 1.0

    def value(self, z, t):
        target, loss = z[t] - 1.0, 0.0
        for k in range(len(z)):
            if k != t:
                loss = max(loss, z[k] - target)
        return loss

    def dual(self, z, t, out):
        """Of equals the target, else the first."""
        best, rival = z[t] - 1.0, t
        for k in range(len(z)):
            out[k] = 0.0
            if k != t and z[k] > best:
                best, rival = z[k], k
        out[rival] = 1.0

    def slope(self, z_b, z, k, t):
        """Of equals the steepest."""
        target_change = z[t] - z_b[t]
        best, along = z_b[t] + k * target_change, target_change
        for y in range(len(z)):
            d = z[y] - z_b[y]
            value = z_b[y] + k * d + 1.0
            if y != t and (value > best or (value == best and d > along)):
                best, along = value, d
        return along - target_change

    def constant(self, p, t):
        total = 0.0
        for k in range(len(p)):
            if k != t:
                total += p[k]
        return total

    def step(self, p, s, q, t, out):
        """Keerthi et al. (2008) solve it in other variables. A row without features gives its whole share to a wrong class."""
        if q > _TINY:
            # Only differences matter. Unless the best value is subtracted, a short row would project numbers so large that the
            # sum 1 of its shares is lost to rounding; the others may be −∞.
            best = -np.inf
            for k in range(len(out)):
                out[k] = s[k] + (0.0 if k == t else 1.0)
                best = max(best, out[k])
            for k in range(len(out)):
                out[k] = p[k] + (out[k] - best) / q
            project(out)
        else:
            out[:] = 0.0
            out[0 if t != 0 else 1] = 1.0

    @property
    def rounding(self) -> LossRounding:
        return LossRounding(value=4, near_one=4)

    @property
    def at_zero(self) -> float:
        return 1.0


@kernel
def project(point):
    """Projects `point` on the simplex, in place (Michelot 1986: the water level rises until it is stationary).

    Its largest number is between 0 and 2; the others may be −∞.
    """
    level = -np.inf
    while True:
        total, count = -1.0, 0
        for value in point:
            if value > level:
                total += value
                count += 1
        if count == 0 or total / count <= level:
            break
        level = total / count
    for k in range(len(point)):
        point[k] = max(0.0, point[k] - level)
