"""The master problem of many columns at once, each with two cuts: the newest, and all older ones mixed by previous masters.

    max  C(p b_G + q b_U) − R*(C(pG + qU))    over p, q ≥ 0, p + q ≤ 1,    R*(v) = ½‖S(v, l1)‖²

is a quadratic program in two numbers, where only the three edges and the interior have to be examined; with
thresholds it is one on every piece where S(v, l1) has the same features, and Newton's method moves from piece to piece. Any
p and q give a lower bound: an inexact master makes it loose, never wrong. With free intercepts
the pull of a mixture is priced, as in streamcut.bundle.verified_master.

`minimise` searches lines for all columns at once, by slopes alone: any convex F, smooth or not (Illinois regula falsi).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamcut.bundle.intercept import Interval
from streamcut.compiled import columns_vectors

_LEVEL = 1e-6  # of the pulls of its cuts: that of a mixture which counts as none
_PIECES = 10  # Newton steps, or half steps, where there are thresholds


class PullPrice(NamedTuple):
    """half·|p·G + q·U|, the price of a mixture with pulls G and U on free intercepts; arrays (A,)."""

    G: np.ndarray
    U: np.ndarray
    half: np.ndarray

    def of(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return self.half * np.abs(p * self.G + q * self.U)

    def balance(self) -> tuple[np.ndarray, np.ndarray]:
        """The (p, q), p + q = 1, without a pull; (0, 0) where there are none."""
        apart = self.G * self.U < 0.0
        p = np.where(apart, np.abs(self.U), 0.0) / np.where(apart, np.abs(self.G) + np.abs(self.U), 1.0)
        return p, np.where(apart, 1.0 - p, 0.0)


class Quadratic(NamedTuple):
    """linear·(p, q) − ½ (p, q) H (p, q)ᵀ of every column, H = [[gg, gu], [gu, uu]]; arrays (A,)."""

    p: np.ndarray
    q: np.ndarray
    gg: np.ndarray
    gu: np.ndarray
    uu: np.ndarray

    def value(self, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return p * self.p + q * self.q - 0.5 * (p * p * self.gg + 2.0 * p * q * self.gu + q * q * self.uu)

    def best(self) -> tuple[np.ndarray, np.ndarray]:
        """(p, q) that maximise it on the triangle."""
        lp, lq, gg, gu, uu = self
        nothing = np.zeros_like(lp)
        with np.errstate(all="ignore"):
            edge = np.clip((lp - lq - gu + uu) / (gg - 2.0 * gu + uu), 0.0, 1.0)
            determinant = gg * uu - gu * gu
            inside = (lp * uu - lq * gu) / determinant, (lq * gg - lp * gu) / determinant
            points = [
                (nothing, nothing),
                (nothing + 1.0, nothing),
                (np.clip(lp / gg, 0.0, 1.0), nothing),
                (nothing, np.clip(lq / uu, 0.0, 1.0)),
                (edge, 1.0 - edge),
                (inside[0], np.minimum(inside[1], 1.0 - inside[0])),
            ]
        best, P, Q = np.full(len(lp), -np.inf), nothing, nothing
        for p, q in points:
            p, q = np.where(np.isfinite(p), p, 0.0), np.where(np.isfinite(q), q, 0.0)
            fits = (p >= 0.0) & (q >= 0.0) & (p + q <= 1.0)
            value = np.where(fits, self.value(p, q), -np.inf)
            better = value > best
            best, P, Q = np.where(better, value, best), np.where(better, p, P), np.where(better, q, Q)
        return P, Q

    def best_priced(self, price: PullPrice) -> tuple[np.ndarray, np.ndarray]:
        """As `best`, less the price: a quadratic on either side of zero pull, and another on the line between."""
        up, down = (self._replace(p=self.p + s * price.half * price.G, q=self.q + s * price.half * price.U) for s in (-1.0, 1.0))
        p, q = price.balance()
        slope, curvature = p * self.p + q * self.q, p * p * self.gg + 2.0 * p * q * self.gu + q * q * self.uu
        with np.errstate(all="ignore"):
            t = np.nan_to_num(np.clip(slope / curvature, 0.0, 1.0), posinf=0.0, neginf=0.0)
        best, P, Q = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for candidate in (up.best(), down.best(), (t * p, t * q)):
            value = self.value(*candidate) - price.of(*candidate)
            better = value > best
            best, P, Q = np.where(better, value, best), np.where(better, candidate[0], P), np.where(better, candidate[1], Q)
        return P, Q


def mix(
    U: np.ndarray, G: np.ndarray, b: np.ndarray, b_G: np.ndarray, C: np.ndarray, l1: np.ndarray | None, squares: np.ndarray,
    price: PullPrice | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(p, q) of every problem. `squares` (3, P) are ‖G‖², ⟨G, U⟩, ‖U‖²; U and G (D, A), all others (P): A is P, or P groups.

    With a `price`, b and b_G are for intercepts in the middle of their intervals.
    """
    gg, gu, uu = squares
    if l1 is None:
        quadratic = Quadratic(C * b_G, C * b, C * C * gg, C * C * gu, C * C * uu)
        return quadratic.best() if price is None else quadratic.best_priced(price)
    p, q, cuts = np.ones_like(b), np.zeros_like(b), (U, G, b, b_G, C, l1, price)
    best, step = _Piece.at(p, q, *cuts), np.ones(len(b))
    other = _Piece.at(q, p, *cuts)
    best = best.where(other.value > best.value, other)
    goal = best.goal(b, b_G, C, price)
    for _ in range(_PIECES):
        tried = _Piece.at(best.p + step * (goal[0] - best.p), best.q + step * (goal[1] - best.q), *cuts)
        better = tried.value > best.value
        best = best.where(better, tried)
        step = np.where(better, 1.0, 0.5 * step)  # the quadratic changes beyond a kink of R*
        goal = best.goal(b, b_G, C, price)
    return np.where(best.value > 0.0, best.p, 0.0), np.where(best.value > 0.0, best.q, 0.0)


def mix_newest(
    rows: np.ndarray, b: np.ndarray, pulls: np.ndarray, total: float, beta: np.ndarray, within: Interval, l1: float
) -> float:
    """Mix the newest of T cuts with all older ones as they are mixed by `beta` (T,), in place; Σ beta = total. Returns an
    intercept: the end to which the mixture pulls, or the middle where it does not; with no mixture the newest cut decides.

    rows (T, D), b and pulls (T,) are the cuts, of which the first is the zero cut; the pulls are on a free intercept `within`.
    """
    old = np.where(np.arange(len(b)) > 0, beta, 0.0) / total
    old[-1], offsets = 0.0, b + pulls * within.middle
    U, G = -rows[-1][:, None], -(old @ rows)[:, None]
    b_G, C, threshold = (np.array([number]) for number in (float(old @ offsets), total, l1))
    price = PullPrice(np.array([total * float(old @ pulls)]), total * pulls[-1:], np.array([within.half]))
    (p,), (q,) = mix(U, G, offsets[-1:], b_G, C, threshold, np.zeros((3, 1)), price)
    beta[:] = p * total * old
    beta[-1] = q * total
    beta[0] = max(0.0, total - float(beta[1:].sum()))
    pull, size = (float(beta @ numbers) if p + q > 0.0 else float(numbers[-1]) for numbers in (pulls, np.abs(pulls)))
    return within.middle - within.half * np.sign(pull) * (abs(pull) > _LEVEL * size)


def dual_model(U: np.ndarray, G: np.ndarray, p: np.ndarray, q: np.ndarray, C: np.ndarray, l1: np.ndarray) -> np.ndarray:
    """columns_vectors.dual_model of problems, (6, P)."""
    out, times = np.empty((6, U.shape[1])), U.shape[1] // len(p)
    columns_vectors.dual_model(U, G, *(np.repeat(coefficient, times) for coefficient in (p, q, C, l1)), out)
    return out.reshape(6, len(p), times).sum(axis=2)


class _Piece(NamedTuple):
    """A mixture of every column, the dual there, and its local model from columns_vectors.dual_model; arrays (A)."""

    p: np.ndarray
    q: np.ndarray
    value: np.ndarray
    out: np.ndarray

    @classmethod
    def at(cls, p: np.ndarray, q: np.ndarray, *cuts: Any) -> _Piece:
        U, G, b, b_G, C, l1, price = cuts
        out = dual_model(U, G, p, q, C, l1)
        value = C * (p * b_G + q * b) - 0.5 * out[0]
        return cls(p, q, value if price is None else value - price.of(p, q), out)

    def where(self, better: np.ndarray, other: _Piece) -> _Piece:
        """`other` in the columns where `better`, else this."""
        return _Piece(*(np.where(better, new, old) for new, old in zip(other, self, strict=True)))

    def goal(self, b: np.ndarray, b_G: np.ndarray, C: np.ndarray, price: PullPrice | None) -> tuple[np.ndarray, np.ndarray]:
        """(p, q) that maximise the quadratic of this piece."""
        _, w_G, w_U, gg, gu, uu = self.out
        H = C * C * gg, C * C * gu, C * C * uu
        lp, lq = C * b_G - C * w_G + H[0] * self.p + H[1] * self.q, C * b - C * w_U + H[1] * self.p + H[2] * self.q
        quadratic = Quadratic(lp, lq, *H)
        return quadratic.best() if price is None else quadratic.best_priced(price)


_FLAT = 0.01  # of the slope at k = 0: that at which a search ends; 1e-3 takes more evaluations and no less time
_NARROW = 1e-3  # of k: a bracket around a kink
_FAR, _FARTHER = 2.0**20, 2.0**10  # brackets grow faster beyond: almost only a free intercept moves
_MOST = 40  # slope evaluations of a search


def minimise(
    slopes: Callable[[np.ndarray], np.ndarray], columns: int, flat: float = _FLAT, narrow: float = _NARROW, farthest: float = _FAR
) -> np.ndarray:
    """k ≥ 0 (columns,) that nearly minimises each F along its line; slopes(k) are right derivatives at k (columns,).

    There the slope is at most the part `flat` of that at 0, or a kink is as close as the part `narrow` of k; or k is `farthest`.
    """
    low, k = np.zeros(columns), np.zeros(columns)
    at_low = slopes(k)
    falls = at_low < 0.0
    flat_at = flat * -at_low
    high, at_high = np.ones(columns), np.zeros(columns)
    open_ = falls.copy()
    if not open_.any():
        return k
    while open_.any() and high.max() < farthest:
        slope = slopes(np.where(falls, high, 0.0))
        at_high = np.where(open_, slope, at_high)
        on = open_ & (slope < 0.0)
        low, at_low = np.where(on, high, low), np.where(on, slope, at_low)
        high, open_ = np.where(on, np.where(high < _FAR, 2.0, _FARTHER) * high, high), on
    k = np.where(falls, np.where(at_high <= np.minimum(flat_at, -at_low), high, low), 0.0)  # a start may be flat at k = 1 already
    todo = falls & (at_high > flat_at) & (at_low < -flat_at)
    for _ in range(_MOST):
        if not todo.any():
            break
        with np.errstate(invalid="ignore"):
            secant = (low * at_high - high * at_low) / np.where(todo, at_high - at_low, 1.0)
        steep = ~(at_high <= 16.0 * -at_low)  # as exponentials are: the secant would hardly leave low
        between = np.where(todo, np.where(steep, np.where(low > 0.0, 0.5 * (low + high), 0.0625 * high), secant), k)
        slope = slopes(between)
        k = np.where(todo, between, k)
        left, right = todo & (slope < 0.0), todo & ~(slope < 0.0)
        low, at_low, at_high = np.where(left, between, low), np.where(left, slope, at_low), np.where(left, 0.5 * at_high, at_high)
        high, at_high, at_low = (
            np.where(right, between, high), np.where(right, slope, at_high), np.where(right, 0.5 * at_low, at_low),
        )  # fmt: skip
        todo &= (np.abs(slope) > flat_at) & (high - low > narrow * high)
    return k
