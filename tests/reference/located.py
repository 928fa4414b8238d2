"""The optimum of small problems with a smooth loss, in 300 bits: Newton's method from weights near it, halving steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from flint import arb, arb_mat, ctx

BITS = 300


@contextmanager
def precision() -> Iterator[None]:
    before, ctx.prec = ctx.prec, BITS
    try:
        yield
    finally:
        ctx.prec = before


def _parts(loss: str, own: dict[str, float], y: float, s: arb, positive: float) -> tuple[arb, arb, arb]:
    """(ℓ, ℓ′, ℓ″) with respect to the score s."""
    zero, one, two = arb(0), arb(1), arb(2)
    if loss in ("logistic", "squared-hinge", "smoothed-hinge"):
        sign = one if y == positive else -one
        z = sign * s
        below = one - z
        if loss == "logistic":
            small = (-z).exp()
            f = small / (one + small)
            return (one + small).log(), -sign * f, f * (one - f)
        if not below > 0:
            return zero, zero, zero
        if loss == "squared-hinge":
            return below * below, -two * sign * below, two
        return (below * below / 2, -sign * below, one) if below < 1 else (below - one / 2, -sign, zero)
    if loss == "poisson":
        mean, target = s.exp(), arb(y)
        return mean - target * s, mean - target, mean
    z = s - arb(y)
    if loss == "squared":
        return z * z / 2, z, one
    sign = one if z > 0 else -one
    if loss == "huber":
        delta = arb(own["delta"])
        return (z * z / 2, z, one) if abs(z) < delta else (delta * (abs(z) - delta / 2), delta * sign, zero)
    beyond = abs(z) - arb(own["epsilon"])
    return (beyond * beyond, two * sign * beyond, two) if beyond > 0 else (zero, zero, zero)


class Exact:
    """½ Σ_j ridge_j v_j² + C Σ u_i ℓ_i(⟨v, x_i⟩); rows X (n, D) have their bias feature."""

    def __init__(self, loss: str, own: dict[str, float], X, y, u, C: float, ridge, positive: float = 1.0) -> None:
        self._loss, self._own, self._positive = loss, own, positive
        self._X = [[(j, arb(float(x))) for j, x in enumerate(row) if x != 0.0] for row in np.asarray(X, float)]
        self._y, self._u = [float(v) for v in y], [arb(float(v)) for v in u]
        self._C, self._ridge = arb(C), [arb(float(r)) for r in ridge]

    def score(self, row: int, v: list[arb]) -> arb:
        return sum((x * v[j] for j, x in self._X[row]), arb(0))

    def at(self, v: list[arb], bends: bool = True) -> tuple[arb, list[arb], list[list[arb]]]:
        """(F, its gradient, its second derivative)."""
        D = len(v)
        value = sum((r * w * w / 2 for r, w in zip(self._ridge, v, strict=True)), arb(0))
        g = [r * w for r, w in zip(self._ridge, v, strict=True)]
        H = [[self._ridge[j] if j == k else arb(0) for k in range(D)] for j in range(D)]
        for row, entries in enumerate(self._X):
            loss, slope, bend = _parts(self._loss, self._own, self._y[row], self.score(row, v), self._positive)
            c = self._C * self._u[row]
            value += c * loss
            for j, x in entries:
                g[j] += c * slope * x
                if bends:
                    for k, other in entries:
                        H[j][k] += c * bend * x * other
        return value, g, H

    def optimum(self, start: np.ndarray) -> list[arb] | None:
        """None where 100 steps were too few."""
        v = [arb(float(w)) for w in start]
        for _ in range(100):
            value, g, H = self.at(v)
            size = sum((abs(a) for a in g), arb(0))
            if float(size) <= 1e-60 * max(1.0, abs(float(value))):
                return v
            try:
                step = arb_mat(H).solve(arb_mat([[a] for a in g]))
            except ZeroDivisionError:
                return None
            moves, part = [step[j, 0].mid() for j in range(len(v))], arb(1)
            for _ in range(60):
                new = [(w - part * m).mid() for w, m in zip(v, moves, strict=True)]
                if self.at(new, bends=False)[0] < value or float(size) < 1e-30:
                    break
                part = part / 2
            v = new
        return None

    def inverse_diagonal(self, v: list[arb]) -> list[arb]:
        inverse = arb_mat(self.at(v)[2]).inv()
        return [inverse[j, j] for j in range(len(v))]

    def slopes(self, v: list[arb]) -> list[list[arb]]:
        """C u_i ℓ_i′ x_i of each row, dense."""
        found = []
        for row, entries in enumerate(self._X):
            line = [arb(0)] * len(v)
            c = self._C * self._u[row] * _parts(self._loss, self._own, self._y[row], self.score(row, v), self._positive)[1]
            for j, x in entries:
                line[j] = c * x
            found.append(line)
        return found
