"""The penalty on weights: R(w) = ½‖w‖² (`L2`), or with λ‖w‖₁ added (`ElasticNet`; Zou & Hastie 2005).

A bundle of cuts a_t, mixed by β, is a point v = −Σ β_t a_t of the dual. A penalty defines for it:

    w = ∇R*(v)                                        the weights that minimise R(w) − ⟨v, w⟩
    F ≥ C̄ b − R*(−C̄ a)                                the bound of a cut (a, b) of the mean loss
    max_β  ⟨b, β⟩ − R*(−Σ β_t a_t)                    the master problem

L2: w = v and R*(v) = ½‖v‖². Elastic net: w = S(v, λ), v moved towards 0 by λ, and R*(v) = ½‖S(v, λ)‖². The bias feature is
penalised like all others, unless the last number is an unpenalised intercept (`FreeIntercept`, streamcut.bundle.intercept).
λ = 0 is L2, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from streamcut.bundle.intercept import EVERYWHERE, Interval, Plane, around, best_intercept
from streamcut.bundle.verified_master import solve_verified
from streamcut.compiled import vectors
from streamcut.compiled.columns_vectors import penalty_slopes
from streamcut.foundation.rounding import CutError, absolute_above, dual_value, objective, threshold_below

VECTORS = 8  # of w's length, that the elastic net needs in addition to L2: v, the w of the last pass; in searches six more


@dataclass(frozen=True, slots=True)
class L2:
    """½‖w‖²."""

    l1: float = 0.0
    ridge: float = 1.0  # ρ of the ½ρ‖w‖² used in searches
    free: bool = False  # whether the last number of w is an unpenalised intercept
    within: Interval = EVERYWHERE  # where the optimal one is proved to be
    sides: tuple[Plane, ...] = ()  # cuts of the rows that pull it either way, for any weights: they bound it
    most: float = math.inf  # upper bound on F at some known point
    priced: ClassVar[bool] = False  # whether the master problem prices the pull on it
    partial: ClassVar[bool] = True  # whether a part of a cut is a cut, as losses are not negative

    @property
    def threshold(self) -> float | None:
        """λ, as passed to kernels."""
        return None

    @property
    def centred(self) -> bool:
        """Whether an intercept in the middle of its optima is better than one at an end."""
        return False

    def weights(self, v: np.ndarray) -> np.ndarray:
        """w = ∇R*(v), which may be `v` itself."""
        return v

    def value(self, w: np.ndarray) -> float:
        """R(w), approximately."""
        return 0.5 * vectors.dot(w, w)

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        """Upper bound on F(w) for Σ u_i ℓ_i ≤ `loss`; `square` is ‖w‖² by vectors.dot; None: it is computed."""
        return objective(vectors.dot(w, w) if square is None else square, len(w), C, loss)

    def bound(self, c_bar: float, a: np.ndarray, b: float, error: CutError) -> tuple[float, float]:
        """(a rigorous lower bound on F from the cut, the same without allowance for rounding)."""
        square = vectors.dot(a, a)
        return dual_value(c_bar, square, b, error, len(a)), c_bar * b - 0.5 * c_bar * c_bar * square

    def solve_master(
        self, rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float,
    ) -> float:  # fmt: skip
        """Improve the feasible `beta` (T,) in place until the master problem's gap is at most `tolerance`; returns that gap.

        The cuts are `rows` (T, D) and b (T,), and `gram` (T, T) has their products.
        """
        return solve_verified(rows, gram, b, total, beta, tolerance, self.l1)

    def line(self, w_b: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        """(‖w − w_b‖², ⟨w_b, w − w_b⟩) over the penalised weights."""
        return vectors.line(w_b, w)

    def settled(self, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        """(b, error) of a cut with this `pull` on a free intercept, over its interval."""
        return b, error

    def feasible(self, a: np.ndarray, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        """As `settled`, for a cut whose `a` (D,) may be changed."""
        return self.settled(b, error, pull)

    def claim(self, w: np.ndarray, F: float, bound: float) -> tuple[float, float]:
        """(F, bound) as certificates state them, at w."""
        return F, bound

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> L2:
        """The penalty with the interval of the optimal intercept narrowed by F(w_b) ≤ `F_b` and a `bound` on F."""
        return self

    def near(self, w_b: np.ndarray) -> Interval | None:
        """The search interval of the next intercept, if it is free."""
        return None

    def slope_along(self, w_b: np.ndarray, w: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        """The slope of R along w_b + k(w − w_b); None: k·A0 + B0 of `line`."""
        return None


@dataclass(frozen=True, slots=True)
class ElasticNet(L2):
    """½‖w‖² + λ‖w‖₁ with λ = `l1` > 0."""

    l1: float

    @property
    def threshold(self) -> float:
        return self.l1

    def weights(self, v: np.ndarray) -> np.ndarray:
        w = np.empty_like(v)
        vectors.shrink(v, self.l1, w)
        return w

    def value(self, w: np.ndarray) -> float:
        return L2.value(self, w) + self.l1 * vectors.absolute_sum(w)

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        more = absolute_above(self.l1, vectors.absolute_sum(w), len(w))
        return objective(vectors.dot(w, w) if square is None else square, len(w), C, loss, more)

    def bound(self, c_bar: float, a: np.ndarray, b: float, error: CutError) -> tuple[float, float]:
        # S(C̄a, λ) = C̄ S(a, λ/C̄), and S is nonexpansive: an error of a is not enlarged in S(a)
        least = np.empty_like(a)
        vectors.shrink(a, threshold_below(self.l1, c_bar), least)
        square = vectors.dot(least, least)
        return dual_value(c_bar, square, b, error, len(a)), c_bar * b - 0.5 * c_bar * c_bar * square

    def slope_along(self, w_b: np.ndarray, w: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def slope(k: np.ndarray) -> np.ndarray:
            out = np.empty(1)
            penalty_slopes(w_b[:, None], w[:, None], k, np.array([self.l1 / self.ridge]), out)
            return self.ridge * out

        return slope


SQUARES = L2()


def penalty_of(l1: float) -> L2:
    """The penalty for this λ."""
    return ElasticNet(float(l1)) if l1 > 0.0 else SQUARES


FREE_VECTORS = 4  # of w's length, in addition to those of L2: two cuts that bound the intercept, and their sums


@dataclass(frozen=True, slots=True, eq=False)
class FreeIntercept(L2):
    """With an unpenalised intercept; `l1` is λ of the other weights."""

    free: bool = True
    priced: ClassVar[bool] = True

    @property
    def threshold(self) -> float | None:
        return self.l1 or None

    @property
    def centred(self) -> bool:
        return self.l1 == 0.0  # else the answer is the point scored last, which has the fewest weights

    @property
    def costs(self) -> L2:
        """The penalty on the other weights."""
        return penalty_of(self.l1)

    def weights(self, v: np.ndarray) -> np.ndarray:
        return v if self.l1 == 0.0 else np.append(self.costs.weights(v[:-1]), v[-1])

    def value(self, w: np.ndarray) -> float:
        return self.costs.value(w[:-1])

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        more = absolute_above(self.l1, vectors.absolute_sum(w[:-1]), len(w)) if self.l1 else 0.0
        return objective(vectors.dot(w[:-1], w[:-1]), len(w), C, loss, more)

    def bound(self, c_bar: float, a: np.ndarray, b: float, error: CutError) -> tuple[float, float]:
        return self.costs.bound(c_bar, a, b, error)

    def slope_along(self, w_b: np.ndarray, w: np.ndarray) -> Callable[[np.ndarray], np.ndarray] | None:
        return self.costs.slope_along(w_b[:-1], w[:-1])

    def line(self, w_b: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        return L2.line(self, w_b[:-1], w[:-1])

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> Self:
        return replace(self, within=self.within.within(best_intercept(self.sides, c_bar, w_b[:-1], F_b, bound)))

    def near(self, w_b: np.ndarray) -> Interval | None:
        """The search interval of the next intercept; None: all of `within`."""
        return around(float(w_b[-1]))

    def settled(self, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        return self.within.settled(b, error, pull)
