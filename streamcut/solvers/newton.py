"""Newton's method on the primal, certified by cutting planes: losses of single rows, few features.

Problem   min F(w) = R(w) + C Σ u_i ℓ(z_i), R(w) = ½‖w‖² or an elastic net, ℓ convex (streamcut.losses.loss).
Given     the oracle, a bundle size, a stopping rule.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    one pass at w = 0
    repeat
        w = argmin R + C·(the quadratic model of the loss at the last w); w = w_b where the last step was far too long, and the
            solution of the master problem where that model has none in float64, or one from which F does not fall
        one pass at w: margins, the cut there, H = Σ u_i ℓ″(z_i) x_i x_iᵀ
        k = argmin_{k ≥ 0} F(w_b + k(w − w_b));   w_b ← w_b + k(w − w_b)
        add the cut, solve the master problem: its value is the bound

The slopes of the loss at any w are feasible dual variables, so the cut there is a bound regardless of the model's quality, and
the bundle finds the best mixture of the last few. For a quadratic loss the first w is the optimum, and one more pass proves
it. A pass sums H lane by lane, in row order: several workers take the same steps as one. With another C or λ the model of
the last pass is reused, so a path takes one or two passes per value.

A loss with kinks (hinge, ε-insensitive, quantile) gets a slope that rises linearly near them (streamcut.losses.smoothed); F stays
as it is. A width costs the cut at w a slack, by which the rows' parts of the cut are below their losses. Once Newton's step
promises less than that, and the slack is more than half the allowed gap, the width becomes 0.35 of itself. So a training begins
with a width of 2 margins and ends with 0.1 to 0.01, without a row cache: what dual ascent does by sweeps over cached rows.
Huber's loss, without curvature beyond δ, gets a wider δ where targets are large (800 unscaled rows: 29 to 44 passes, not never).

Passes to the default stop, C = 1, and those of dual ascent with all rows cached, a fifth of them, none: covtype (54 features,
unscaled) hinge 15; 12, 82, > 100; ε 24; 12, > 100, > 100; computer ε 12; 11, 45, > 100; susy hinge 7; 6, 7, 16. With all rows
cached dual ascent takes 2.4 to 30 times the processor time. Passes of 28 cases of four sets, one thing changed at a time: width
to a half, 0.35, a quarter 627, 568, 614; first width 2, 4 551, 576; cost 0.15, 0.3, 0.5 of the gap 803, 711, 699; wider again
by 1.4 after a step far too long 664, not 572; the curvature of a window twice as wide 729, not 576; slopes at a predicted
step, as OCAS, 693, not 654.

(Lin, Weng & Keerthi 2008 have a Newton method for many features, without H. Chapelle 2007 smooths the hinge for Newton's method,
with a fixed width.)
"""

from __future__ import annotations

import numpy as np

from streamcut.oracles.second_order import SecondOrderOracle
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution

_LOST = -1.0  # k after a step from the best point that does not fall: its model has too few digits (one column of 10⁹)
_TOO_LONG = 0.4  # of a full step: with a shorter one from the line search, the model is not that of the best point


def solve(oracle: SecondOrderOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """Run Newton's method to the stopping rule of `progress`. One pass an iteration.

    Raises Interrupted before there is a solution.
    """
    s, rule = begun(oracle, progress, max_cuts)

    def iterate() -> None:
        lost, at_best = s.k < 0.0, np.array_equal(oracle.at, s.w_b)
        back = not lost and s.k < _TOO_LONG
        s.narrow()
        if back:
            s.w = s.w_b.copy()
        elif not lost and (w := oracle.newton(rule.allowed_gap(s.best.F, oracle.c_bar), s.penalty.ridge)) is not None:
            s.w = w
        cut = oracle.expand(s.w)
        s.move(1.0 if back else s.search(oracle), oracle)
        s.improve(cut, rule)
        if s.k == 0.0 and at_best and not lost:
            s.k = _LOST

    solution = iterated(s, oracle, progress, rule, iterate)
    oracle.widen()  # for the next of a path
    return solution
