"""Multinomial logistic regression: ℓ = log Σ_k exp(s_k) − s_t, −log P(t) of the softmax.

Its dual is H(p) = −Σ p log p. Along a row, at scores s and with the share p at present, the shares

    max H(p′) + ⟨p′, s⟩ − ½Q‖p′ − p‖²    satisfy    log p′_k + Q p′_k = c_k − λ,    c = s + Q p,    Σ p′ = 1,

so p′_k = ω(c_k − λ + log Q) / Q with Wright's ω, ω + log ω = v (Lawrence, Corless & Jeffrey 2012). log Σ p′_k(λ) is decreasing,
and its root is found by Newton's method in a bracket (Yu, Huang & Lin 2011 solve the same subproblem pair by pair of classes).
"""

from __future__ import annotations

import math

import numpy as np

from streamcut.compiler.jit import helper, inlined, kernel
from streamcut.foundation.rounding import LossRounding
from streamcut.losses.joint import JointLoss, OfClasses

_TINY = 1e-200  # below this curvature the dual along a row is taken as linear
_CLOSE = 1e-12  # of Σ p′; normalisation removes the rest
_STEPS = 60  # of Newton's method; three to six are taken


class Softmax(OfClasses, JointLoss):
    """K weight vectors, one redundant except for the regulariser, as in scikit-learn."""

    __slots__ = ()
    smooth = True

    def bounded(self):
        return False

    def margin(self, k, t):
        return 0.0

    def value(self, z, t):
        """Small where the target leads by far."""
        best = 0
        for k in range(len(z)):
            if z[k] > z[best]:
                best = k
        others = 0.0
        for k in range(len(z)):
            if k != best:
                others += math.exp(z[k] - z[best])
        return math.log1p(others) + (z[best] - z[t])

    def dual(self, z, t, out):
        _normalised(z, out)

    def constant(self, p, t):
        """H(p), with p_t = 1 − Σ of the others."""
        total, others = 0.0, 0.0
        for k in range(len(p)):
            if k != t and p[k] > 0.0:
                others += p[k]
                total -= p[k] * math.log(p[k])
        if 0.0 < others < 1.0:
            total -= (1.0 - others) * math.log1p(-others)
        return total

    def slope(self, z_b, z, k, t):
        most, total, mean = -np.inf, 0.0, 0.0
        for y in range(len(z)):
            most = max(most, z_b[y] + k * (z[y] - z_b[y]))
        for y in range(len(z)):
            d = z[y] - z_b[y]
            part = math.exp(z_b[y] + k * d - most)
            total += part
            mean += part * d
        return mean / total - (z[t] - z_b[t])

    def step(self, p, s, q, t, out):
        _balance(p, s, q, out)

    @property
    def rounding(self) -> LossRounding:
        # A term exp(−d) has relative error (d + 2)ε, and is 0 for d > 746. The remaining share of the target is off by an ε for
        # each other class, which changes its −p log p by at most 40 times that (if it is about ε itself).
        return LossRounding(value=760 + self.classes, conjugate=8 + 40 * self.classes)

    @property
    def at_zero(self) -> float:
        return math.log(self.classes)


@helper
def _normalised(z, out):
    """out (K,) = exp(z) / Σ exp(z)."""
    most = -np.inf
    for value in z:
        most = max(most, value)
    total = 0.0
    for k in range(len(z)):
        out[k] = math.exp(z[k] - most)
        total += out[k]
    for k in range(len(z)):
        out[k] /= total


@inlined
def _omega(v):
    """Wright's ω: ω + log ω = v, to a few units in the last place (the iteration is of order four)."""
    if v < -2.0:
        if v < -700.0:
            return 0.0
        x = math.exp(v)
        w = x * (1.0 - x * (1.0 - 1.5 * x))
        if v < -18.0:
            return w
    elif v < 4.0:
        d = v - 1.0
        w = 1.0 + d * (0.5 + d * (0.0625 - d / 192.0))
    else:
        low = math.log(v)
        w = v - low + low / v
    for _ in range(4):
        r = v - w - math.log(w)
        one = w + 1.0
        both = 2.0 * one * (one + 2.0 / 3.0 * r)
        w *= 1.0 + r / one * (both - r) / (both - 2.0 * r)
        if abs(r) < 1e-3:
            break
    return w


@kernel
def _balance(share, scores, q, new):
    """new (K,) = p′ above, at any scores; q = Q."""
    K = len(new)
    if not q > _TINY:
        _normalised(scores, new)
        return
    root, most, total = math.log(q), -np.inf, 0.0
    for k in range(K):
        most = max(most, scores[k] + q * share[k])
    low, high = most - q, most - q / K + math.log(K)  # the largest share is between 1 / K and 1
    top = -np.inf
    for k in range(K):
        top = max(top, scores[k])
    for k in range(K):
        total += math.exp(scores[k] - top)
    level = min(max(top + math.log(total), low), high)  # its value if share is the softmax of scores
    last = high - low
    for _ in range(_STEPS):
        total, slope = 0.0, 0.0
        for k in range(K):
            new[k] = _omega(scores[k] + q * share[k] - level + root) / q
            total += new[k]
            slope += new[k] / (1.0 + q * new[k])
        if abs(total - 1.0) <= _CLOSE:
            break
        if total > 1.0:
            low = level
        else:
            high = level
        move = math.log(total) * total / slope if total > 0.0 and slope > 0.0 else 0.0
        if not low < level + move < high or abs(move) > 0.5 * last:
            move = 0.5 * (low + high) - level
        if level + move == level:
            break
        level += move
        last = abs(move)
    if not 0.0 < total < np.inf:  # of absurdly large scores
        _normalised(scores, new)
        return
    for k in range(K):
        new[k] /= total
