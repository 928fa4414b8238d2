"""λ‖w‖₁ without ½‖w‖² (Tibshirani 1996): a bound on F by the box that the optimum is in, and a ridge that only searches need.

As λ‖w*‖₁ ≤ F* ≤ F(w_b), the optimum has ‖w*‖₁ ≤ B = F(w_b)/λ. There a cut (a, b) of the mean loss says

    F* ≥ C̄ b + min over ‖w‖₁ ≤ B of λ‖w‖₁ + C̄⟨a, w⟩  =  C̄ b − B·max(0, C̄‖a‖∞ − λ),

for any cut, so bounds rest on nothing else. A vector that is off by δ in length is so by no more in any number: that costs BC̄δ.

The master problem, line searches and Newton's model have ½ρ‖w‖² beside λ‖w‖₁, so that each has one solution; what the bound
loses by that is B ρ‖w‖∞ at most. ρ is so small that this is a thousandth of the gap that is left.

Passes of Newton's method to 1e-2 / 1e-4 / 1e-6 of F (scripts/benchmarks/bench_l1.py), λ = 1, C = 0.1, 1, 10: a9a logistic
7 / 8 / 9, 8 / 8 / 9, 9 / 10 / 11, squared hinge 7 / 7 / 9, 7 / 9 / 10, 7 / 9 / 17; ijcnn1 7 to 9 / 8 to 9 / 9 to 11; spambase
5 to 12 / 6 to 13 / 7 to 14; four sets of numbers, squared loss, 1 % to 50 % of λmax, which a pass finds: 3 / 3 to 4 / 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from streamcut.bundle.penalty import L2, ElasticNet
from streamcut.bundle.verified_master import Verified, solve_verified
from streamcut.compiled import thresholds
from streamcut.foundation.rounding import CutError, above, absolute_above, below, gamma

_PART = 1e-3  # of the gap: what ρ costs
_ROUNDINGS = 16.0


@dataclass(frozen=True, slots=True)
class L1Only(ElasticNet):
    """λ‖w‖₁ with λ = `l1` > 0. most: at least F at some point that is known, so that ‖w*‖₁ ≤ most / λ; ridge: ρ."""

    most: float = math.inf
    ridge: float = 1.0  # type: ignore[misc]

    def weights(self, v: np.ndarray) -> np.ndarray:
        return ElasticNet.weights(self, v) / self.ridge

    def value(self, w: np.ndarray) -> float:
        return self.l1 * thresholds.absolute_sum(w)

    def objective(self, w: np.ndarray, C: float, loss: float, square: float | None = None) -> float:
        total = absolute_above(self.l1, thresholds.absolute_sum(w), len(w)) + C * loss
        return above(total, gamma(_ROUNDINGS) * total)

    def longest(self, F: float) -> float:
        return F / self.l1

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

    def narrowed(self, c_bar: float, w_b: np.ndarray, F_b: float, bound: float) -> L1Only:
        longest = float(np.abs(w_b).max(initial=0.0)) or F_b / self.l1
        gap = max(F_b - bound, 1e-12 * F_b)
        ridge = _PART * (gap / F_b) * (self.l1 / longest) if F_b > 0.0 else 1.0
        return replace(self, most=F_b, ridge=ridge)

    def solve_master(
        self, rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float,
        matters: float = 0.0,
    ) -> Verified:  # fmt: skip
        rho = self.ridge
        beta /= rho
        found = solve_verified(rows, gram, b, total / rho, beta, tolerance / rho, self.l1 / rho, matters / rho)
        beta *= rho
        v = None if found.v is None else found.v * rho
        if len(b) > 1 and self._worth(rows, b, -beta) < self._worth(rows[-1:], b[-1:], np.array([-total])):
            beta[:] = 0.0  # the newest cut by itself proves more
            beta[-1], v = total, None
        return Verified(found.gap * rho, v)

    def _worth(self, rows: np.ndarray, b: np.ndarray, coefficients: np.ndarray) -> float:
        """The bound of a mixture, nearly."""
        steepest = float(np.abs(coefficients @ rows).max(initial=0.0))
        return -float(coefficients @ b) - self.most / self.l1 * max(0.0, steepest - self.l1)
