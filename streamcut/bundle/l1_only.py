"""λ‖w‖₁ without ½‖w‖² (Tibshirani 1996): a bound on F from the box that contains the optimum, and a ridge for searches only.

As λ‖w*‖₁ ≤ F* ≤ F(w_b), the optimum has ‖w*‖₁ ≤ B = F(w_b)/λ. There a cut (a, b) of the mean loss says

    F* ≥ C̄ b + min over ‖w‖₁ ≤ B of λ‖w‖₁ + C̄⟨a, w⟩  =  C̄ b − B·max(0, C̄‖a‖∞ − λ),

for any cut, so bounds need nothing else. A vector with an error of norm δ has no larger error in any number: that costs BC̄δ.

The master problem, line searches and Newton's model have ½ρ‖w‖² in addition to λ‖w‖₁, so that each has one solution; the bound
loses at most B ρ‖w‖∞ by that. ρ is so small that this is a thousandth of the remaining gap.

Passes of Newton's method to 1e-2 / 1e-4 / 1e-6 of F (bench_cases.py --options l1_only=1), λ = 1, C = 0.1, 1, 10: a9a logistic
7 / 8 / 9, 8 / 8 / 9, 9 / 10 / 11, squared hinge 7 / 7 / 9, 7 / 9 / 10, 7 / 9 / 17; ijcnn1 7 to 9 / 8 to 9 / 9 to 11; spambase
5 to 12 / 6 to 13 / 7 to 14; four regression sets, squared loss, 1 % to 50 % of λmax, found by a pass: 3 / 3 to 4 / 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from streamcut.bundle.intercept import Interval, Plane
from streamcut.bundle.penalty import L2, ElasticNet
from streamcut.bundle.verified_master import solve_verified
from streamcut.compiled import vectors
from streamcut.foundation.rounding import CutError, above, absolute_above, below, gamma

_PART = 1e-3  # of the gap: the cost of ρ
_ROUNDINGS = 16.0
_LOOSE = 1e-9  # of the sum of sizes, far more than rounding


@dataclass(frozen=True, slots=True)
class L1Only(ElasticNet):
    """λ‖w‖₁ with λ = `l1` > 0: ‖w*‖₁ ≤ most / λ; ridge: ρ."""

    def weights(self, v: np.ndarray) -> np.ndarray:
        return ElasticNet.weights(self, v) / self.ridge

    def value(self, w: np.ndarray) -> float:
        return self.l1 * vectors.absolute_sum(w)

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        total = absolute_above(self.l1, vectors.absolute_sum(w), len(w)) + C * loss
        return above(total, gamma(_ROUNDINGS) * total)

    def line(self, w_b: np.ndarray, w: np.ndarray) -> tuple[float, float]:
        square, across = L2.line(self, w_b, w)
        return self.ridge * square, self.ridge * across

    def bound(self, c_bar: float, a: np.ndarray, b: float, error: CutError) -> tuple[float, float]:
        if not math.isfinite(self.most):
            return 0.0, 0.0
        steepest = c_bar * float(np.abs(a).max(initial=0.0))
        over, box = max(0.0, steepest - self.l1), self.most / self.l1
        price = box * (over + gamma(_ROUNDINGS) * steepest * (over > 0.0) + c_bar * error.slope)
        value = c_bar * b
        rounding = gamma(_ROUNDINGS) * (abs(value) + price + c_bar * error.offset)
        return below(value, price + c_bar * error.offset + rounding), value - box * over

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> Self:
        longest = float(np.abs(w_b).max(initial=0.0)) or F_b / self.l1
        gap = max(F_b - bound, 1e-12 * F_b)
        ridge = _PART * (gap / F_b) * (self.l1 / longest) if F_b > 0.0 else 1.0
        return replace(self, most=F_b, ridge=ridge)

    def solve_master(
        self, rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float,
    ) -> float:  # fmt: skip
        rho = self.ridge
        beta /= rho
        gap = solve_verified(rows, gram, b, total / rho, beta, tolerance / rho, self.l1 / rho)
        beta *= rho
        if len(b) > 1 and self._bound_of_mixture(rows, b, -beta) < self._bound_of_mixture(rows[-1:], b[-1:], np.array([-total])):
            beta[:] = 0.0  # the newest cut alone proves more
            beta[-1] = total
        return gap * rho

    def _bound_of_mixture(self, rows: np.ndarray, b: np.ndarray, coefficients: np.ndarray) -> float:
        """The bound of a mixture, approximately."""
        steepest = float(np.abs(coefficients @ rows).max(initial=0.0))
        return -float(coefficients @ b) - self.most / self.l1 * max(0.0, steepest - self.l1)


@dataclass(frozen=True, slots=True)
class L1OfMany(L1Only):
    """The same for many features, using the newest cut alone; `free`: the last number of w is unpenalised."""

    def weights(self, v: np.ndarray) -> np.ndarray:
        return v  # not used to find the next w

    def _costly(self, w: np.ndarray) -> np.ndarray:
        return w[:-1] if self.free else w

    def value(self, w: np.ndarray) -> float:
        return L1Only.value(self, self._costly(w))

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        return L1Only.objective(self, self._costly(w), C, loss)

    def bound(self, c_bar: float, a: np.ndarray, b: float, error: CutError) -> tuple[float, float]:
        if not math.isfinite(b):  # nothing is known yet of a free intercept
            return 0.0, 0.0
        return L1Only.bound(self, c_bar, a, b, error)

    def settled(self, b: float, error: CutError, pull: float) -> tuple[float, CutError]:
        return self.within.settled(b, error, pull) if self.free else (b, error)

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> Self:
        within = self.within
        if self.free:
            within = within.within(best_intercept_in_box(self.sides, c_bar, self.l1, F_b))
        return replace(self, most=F_b, within=within)

    def solve_master(
        self, rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float,
    ) -> float:  # fmt: skip
        """The newest cut alone, or the largest part of it with no slope above λ."""
        beta[:] = 0.0
        if len(b) > 1:
            parts = np.array([total, min(total, self.l1 / max(float(np.abs(rows[-1]).max(initial=0.0)), 1e-300))])
            beta[-1] = max(parts, key=lambda part: self._bound_of_mixture(rows[-1:], b[-1:], np.array([-part])))
        beta[0] = total - beta[-1] if len(b) > 1 else total
        return 0.0


def best_intercept_in_box(cuts: Iterable[Plane], c_bar: float, l1: float, primal: float) -> Interval:
    """An interval for b*, from cuts whose last number is a₀, with F* ≤ `primal`: as ‖w*‖₁ ≤ B = F*/λ,

        C̄ a₀ b* ≤ F* − C̄ c + B·max(0, C̄‖a‖∞ − λ).

    Ends not bounded by any cut are infinite.
    """
    low, high = -math.inf, math.inf
    for cut in cuts:
        pull, slope, offset = float(cut.a[-1]), *cut.error
        steepest = c_bar * (float(np.abs(cut.a[:-1]).max(initial=0.0)) + slope)
        parts = primal, -c_bar * cut.b, c_bar * offset, primal / l1 * max(0.0, steepest * (1.0 + _LOOSE) - l1)
        reach = math.fsum(parts) + _LOOSE * math.fsum(map(abs, parts))
        firm = abs(pull) * (1.0 - _LOOSE) - slope
        if firm <= 0.0:
            continue
        far = reach / (c_bar * (firm if reach >= 0.0 else (abs(pull) + slope) * (1.0 + _LOOSE)))
        far += _LOOSE * abs(far)
        if pull > 0.0:
            high = min(high, far)
        else:
            low = max(low, -far)
    return Interval(low, high)
