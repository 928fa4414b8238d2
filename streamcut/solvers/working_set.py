"""λ‖w‖₁ without ½‖w‖², many features: solved on the columns that can matter, held in memory, and certified by full passes.

Problem   min F(w) = λ‖w‖₁ + C Σ u_i ℓ(z_i), ℓ with a derivative; an intercept penalised like any weight, or free.
Given     the oracle, which holds a limited number of entries, and a stopping rule.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    one pass at w = 0: the slopes of the loss
    repeat
        if a feature without a column is steeper than λ or has a weight:
            one pass: the columns of all features with a weight, and of the steepest, as many as fit
        w = argmin F over these, the other weights fixed (streamcut.solvers.proximal_newton)
        one pass at w: F, the slopes of all features, the cut there, which bounds F

If the columns of all features fit, that is three passes. If even those that matter do not fit, blocks of them take
turns: F still falls, in more passes. Slopes do not depend on λ and C, so a path continues with the present columns, and most of
its values take one pass. No feature is discarded for good: every pass checks the slopes of all features, so no rule has to
prove that one stays 0 (as those of Fercoq, Gramfort & Salmon 2015 do).

The bound uses only the cut at w (streamcut.bundle.l1_only): once columns are solved, slopes of those with a
weight are λ up to a residual, and that residual is the loss of the bound. (Johnson & Guestrin 2015 and Massias, Gramfort &
Salmon 2018 choose working sets that way, in memory.)
"""

from __future__ import annotations

import numpy as np

from streamcut.compiled.chosen_columns import Price
from streamcut.oracles.chosen_columns import ColumnsOracle
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution
from streamcut.solvers.proximal_newton import minimise
from streamcut.solvers.state import BundleState

_GOAL = 0.3  # of the requested gap: the part of the bound that slope residuals may cost
_LEAST = 1e-12  # of λ: the smallest residual
_AGAIN = 0.1  # of that, if it was not enough
_OTHERS = 0.1  # of the violation of features without a column: those with one need not be solved further


def solve(oracle: ColumnsOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """Run to the stopping rule of `progress`: an iteration takes one pass, for the columns or at a w.

    Raises Interrupted before there is a solution.
    """
    s, rule = begun(oracle, progress, max_cuts)
    s.w = s.w_b.copy()  # the master problem does not set the next w

    def iterate() -> None:
        if not s.stepped and oracle.wanting(s.w_b) > 0.0:
            oracle.choose(s.w_b)
            oracle.take()
            s.stepped = True  # next: solve on the present columns
            return
        allowed = rule.allowed_gap(s.F_b, oracle.c_bar)
        s.w = w = _solved(s, oracle, allowed * _AGAIN ** max(0, progress.still - s.stepped))
        cut = oracle.expand(w)
        s.move(1.0, oracle)
        s.improve(cut, rule)
        s.w = w

    return iterated(s, oracle, progress, rule, iterate)


def _solved(s: BundleState, oracle: ColumnsOracle, allowed: float) -> np.ndarray:
    """The best w among those that differ from w_b only in weights with columns, for an `allowed` gap."""
    columns, features, rows = oracle.in_memory()
    l1, w, free = s.penalty.l1, s.w_b.copy(), int(s.penalty.free)
    goal = max(_GOAL * allowed / s.F_b, _LEAST) * l1 if s.F_b > 0.0 else _LEAST * l1
    goal = max(goal, _OTHERS * oracle.wanting(s.w_b))
    interval = s.penalty.within
    reach = interval.half if free and interval.bounded else 1.0
    weights = np.ascontiguousarray(w[features])
    price = Price(oracle.C, l1, free, max(1.0, reach * l1 / s.F_b) if s.F_b > 0.0 else 1.0)
    minimise(columns, rows, weights, oracle.loss, price, goal, oracle.going)
    w[features] = weights
    return w
