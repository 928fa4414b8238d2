"""Newton's method on the primal, certified by cutting planes: losses with a curvature, few features.

Problem   min F(w) = R(w) + C Σ u_i ℓ(z_i), R(w) = ½‖w‖² or an elastic net, ℓ with a derivative (streamcut.losses.loss).
Given     the oracle, a bundle size, a stopping rule.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    one pass at w = 0
    repeat
        w = argmin R + C·(the quadratic model of the loss at the last w); w = w_b where the last step was far too long, and the
            solution of the master problem where that model has none in float64
        one pass at w: margins, the cut there, H = Σ u_i ℓ″(z_i) x_i x_iᵀ
        k = argmin_{k ≥ 0} F(w_b + k(w − w_b));   w_b ← w_b + k(w − w_b)
        add the cut, solve the master problem: its value is the bound

The slopes of the loss at any w are feasible dual variables, so the cut there is a bound regardless of the model's quality, and
the bundle finds the best mixture of the last few. For a quadratic loss the first w is the optimum, and one more pass proves
it. A pass sums H lane by lane, in row order: several workers take the same steps as one. With another C or λ the model of
the last pass is reused, so a path takes one or two passes per value.

(Lin, Weng & Keerthi 2008 have a Newton method for many features, without H.)
"""

from __future__ import annotations

from streamcut.oracles.second_order import SecondOrderOracle
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution

_TOO_LONG = 0.4  # of a full step: with a shorter one from the line search, the model is not that of the best point
_INSIDE = 0.05  # of the requested gap: accuracy to which models with λ‖w‖₁ are minimised


def solve(oracle: SecondOrderOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """Run Newton's method to the stopping rule of `progress`. One pass an iteration.

    Raises Interrupted before there is a solution.
    """
    s, rule = begun(oracle, progress, max_cuts)

    def iterate() -> None:
        back = s.k < _TOO_LONG
        s.narrow()
        if back:
            s.w = s.w_b.copy()
        elif (w := oracle.newton(_INSIDE * rule.allowed_gap(s.best.F, oracle.c_bar), s.penalty.ridge)) is not None:
            s.w = w
        cut = oracle.expand(s.w)
        s.move(1.0 if back else s.search(oracle), oracle)
        s.improve(cut, rule)

    return iterated(s, oracle, progress, rule, iterate)
