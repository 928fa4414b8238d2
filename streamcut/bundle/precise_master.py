"""The master problem where float64 cannot resolve it: columns or cuts of very different sizes.

One column of 10⁹ among small ones makes G = ⟨a_s, a_t⟩ of 10¹⁸, whose last digit is a thousand times what small columns add;
and β in float64 cannot resolve how cuts balance in the large one. The values b and the cuts a themselves are accurate
enough, and so is w, whose numbers each have their own scale. So, from the known β, in 50 decimal digits,

    repeat
        v = −Σ β_t a_t, summed in two float64 and then rounded; w = S(v, λ); the gradient g_t = b_t + ⟨a_t, w⟩ in float64
        the gap Σ_k Σ_t β_t (max g − g_t) over blocks k, and a bound on its rounding error
        the face: all β > 0, and in each block the one with the largest g
        a Newton step on the face, truncated where a β reaches 0, which then leaves; repeated until a full step
        with λ > 0: only as far as the value rises

as in streamcut.compiled.simplex_qp and streamcut.bundle.verified_master, which are a hundred times faster and tried first.
Products of cuts on the face are summed in two float64 (Dekker 1971; Ogita, Rump & Oishi 2005).
"""

from __future__ import annotations

from decimal import Context, Decimal, DecimalException, localcontext
from typing import NamedTuple

import numpy as np

from streamcut.bundle.kinks import longest_step
from streamcut.compiled import pairs_of_floats, thresholds, vectors
from streamcut.foundation.rounding import EPSILON

_DIGITS = 50
_FLAT = Decimal(2) ** -98  # of the products whose difference is a pivot: anything smaller is rounding
_LEAST = Decimal("1e-300")
_ROUNDINGS = 4.0  # roundings of a gradient's terms: the typical error of their sum
_TURNS = 300
_PATIENCE = 8  # turns without a smaller gap
_FIRST, _LEAST_PART, _FACTOR, _SHORT = 1e-3, 1e-9, 10.0, 0.3  # as in streamcut.bundle.verified_master


class Precise(NamedTuple):
    """gap: upper bound on the distance to the optimal value; v (D,) = −Σ β_t a_t, more precise than float64 β can express."""

    gap: float
    v: np.ndarray


def solve_precisely(
    rows: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float, l1: float = 0.0
) -> Precise | None:
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or as far as 50 digits go.

    rows (T, D) are the a_t, l1 is λ; b and total as in streamcut.bundle.verified_master. None where a number is too
    large, or β not a mixture.
    """
    with localcontext(Context(prec=_DIGITS)):
        try:
            return _Problem(rows, b, total, l1).solved(beta, tolerance)
        except DecimalException:  # products of cuts are not finite, or β is not a mixture
            return None


class _Problem:
    def __init__(self, rows: np.ndarray, b: np.ndarray, total: float, l1: float) -> None:
        self._rows, self._b, self._total, self._l1 = rows, b, total, l1
        self._products: dict[tuple[int, int], Decimal] = {}  # of cuts ever on the face
        self._part = _FIRST

    def solved(self, start: np.ndarray, tolerance: float) -> Precise | None:
        beta, late = self._feasible(start), 0
        best: tuple[float, np.ndarray, np.ndarray] | None = None
        for _ in range(_TURNS):
            v = self._combined(-beta)
            w = self._thresholded(v)
            gradient, gap, doubt = self._gradient(w, beta)
            if not np.isfinite(gap + doubt):
                break
            late = 0 if best is None or gap + doubt < best[0] else late + 1
            if late == 0:
                best = gap + doubt, beta, v
            if gap <= max(tolerance, doubt) or late == _PATIENCE:
                break
            target = self._on_face(beta, gradient, w)
            beta = target if self._l1 == 0.0 else self._towards(target, beta, v)
        if best is None:
            return None
        start[:] = [float(x) for x in best[1]]
        return Precise(best[0], best[2])

    def _feasible(self, start: np.ndarray) -> np.ndarray:
        """`start` as Decimals, scaled to add up to the total."""
        beta = np.array([Decimal(x) for x in np.maximum(start, 0.0).tolist()], object)
        return beta * (Decimal(self._total) / sum(beta, Decimal(0)))

    def _combined(self, coefficients: np.ndarray) -> np.ndarray:
        """Σ_t coefficients[t] · cut t."""
        high = np.array([float(x) for x in coefficients])
        low = np.array([float(x - Decimal(y)) for x, y in zip(coefficients, high.tolist(), strict=True)])
        v = np.empty(self._rows.shape[1])
        pairs_of_floats.combine(self._rows, high, low, v)
        return v

    def _thresholded(self, v: np.ndarray) -> np.ndarray:
        if self._l1 == 0.0:
            return v
        w = np.empty_like(v)
        thresholds.shrink(v, self._l1, w)
        return w

    def _gradient(self, w: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, float, float]:
        """(b + ⟨a, w⟩, the gap, a bound on its rounding)."""
        products, sizes = np.empty(len(beta)), np.empty(len(beta))
        vectors.dots(self._rows, w, products)
        pairs_of_floats.absolute_dots(self._rows, w, sizes)
        gradient = self._b + products
        gap = float(beta.astype(float) @ (gradient.max() - gradient))
        doubt = self._total * float((sizes + np.abs(self._b)).max())
        return gradient, gap, _ROUNDINGS * EPSILON * doubt

    def _on_face(self, beta: np.ndarray, slopes: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Newton steps on the face until a full one; `slopes` are the gradient."""
        beta = beta.copy()
        face = sorted({*np.flatnonzero(beta > 0).tolist(), int(np.argmax(slopes))})
        cuts = np.array(face)
        G = self._curvature(face, w)
        own = beta[cuts]
        gradient = np.array([Decimal(x) for x in slopes[cuts].tolist()], object)
        on = np.ones(len(face), np.bool_)
        while True:
            lead = max(np.flatnonzero(on), key=own.__getitem__)
            free = np.flatnonzero(on & (lead != np.arange(len(face))))
            if len(free) == 0:
                break
            step = _newton(G, gradient, free, np.full(len(free), lead))
            unwanted = (own[free] == 0) & (step <= 0)
            if unwanted.any():
                on[free[unwanted]] = False
                continue
            direction = np.array([Decimal(0)] * len(face), object)
            direction[free] = step
            for move in step:
                direction[lead] -= move
            falls = [t for t in np.flatnonzero(on) if own[t] + direction[t] < 0]
            last = min(falls, key=lambda t: own[t] / -direction[t], default=None)
            if last is not None:
                direction = direction * (own[last] / -direction[last])
            own = np.array([max(x, Decimal(0)) for x in own + direction], object)
            if last is None:
                break
            own[last] = Decimal(0)
            gradient = gradient - G @ direction
            on &= own > 0
        beta[cuts] = own
        return beta

    def _curvature(self, face: list[int], w: np.ndarray) -> np.ndarray:
        """Products of the cuts on the face (m, m); where λ > 0, those of the nonzero features, and a part of the others'."""
        G = np.array([[self._product(min(s, t), max(s, t)) for t in face] for s in face], object)
        if self._l1 == 0.0:
            return G
        active = np.ascontiguousarray(self._rows[face][:, w != 0.0])
        m, part, own = len(face), Decimal(self._part), np.empty_like(G)
        for i in range(m):
            for j in range(i + 1):
                own[i, j] = own[j, i] = _exact(pairs_of_floats.dot(active[i], active[j]))
        return own + part * (G - own)

    def _product(self, s: int, t: int) -> Decimal:
        if (s, t) not in self._products:
            self._products[s, t] = _exact(pairs_of_floats.dot(self._rows[s], self._rows[t]))
        return self._products[s, t]

    def _towards(self, target: np.ndarray, beta: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The best point between β and `target`."""
        direction = target - beta
        gain = float(direction @ np.array([Decimal(x) for x in self._b.tolist()], object))
        k = longest_step(v, self._combined(-direction), gain, self._l1)
        if k < _SHORT:
            self._part = min(1.0, self._part * _FACTOR)
        elif k == 1.0:
            self._part = max(_LEAST_PART, self._part / _FACTOR)
        return beta + Decimal(k) * direction


def _exact(pair: tuple[float, float]) -> Decimal:
    return Decimal(pair[0]) + Decimal(pair[1])


def _newton(G: np.ndarray, gradient: np.ndarray, free: np.ndarray, lead: np.ndarray) -> np.ndarray:
    """The step of the β at `free` (m,) to where the gradient equals that at `lead` (m,), which balance it."""
    step = gradient[free] - gradient[lead]
    H = G[np.ix_(free, free)] - G[np.ix_(lead, free)] - G[np.ix_(free, lead)] + G[np.ix_(lead, lead)]
    least = [max(_FLAT * (G[s, s] + G[p, p]), _LEAST) for s, p in zip(free, lead, strict=True)]
    for i in range(len(free)):  # LDLᵀ: H's columns become those of L, its diagonal D
        flat = H[i, i] <= least[i]
        pivot = H[i, i] = least[i] if flat else H[i, i]
        column = H[i + 1 :, i] * Decimal(not flat) / pivot
        H[i + 1 :, i + 1 :] -= column[:, None] * (column * pivot)[None, :]
        H[i + 1 :, i] = column
        step[i + 1 :] -= column * step[i]
    step = step / np.diagonal(H)
    for i in range(len(free) - 1, 0, -1):
        step[:i] -= H[i, :i] * step[i]
    return step
