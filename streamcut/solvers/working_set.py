"""λ‖w‖₁ without ½‖w‖², many features: solved on the columns that can matter, which are in memory, and proved by whole passes.

Problem   min F(w) = λ‖w‖₁ + C Σ u_i ℓ(z_i), ℓ with a derivative; an intercept that is a weight as any other, or free.
Given     the oracle, which has room for so many entries, and a stopping rule.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    one pass at w = 0: the slopes of the loss
    repeat
        if a feature without a column is steeper than λ, or has a weight:
            one pass: the columns of all with a weight, and of the steepest, as many as there is room for
        w = argmin F over these, the other weights as they are (streamcut.solvers.proximal_newton)
        one pass at w: F, the slopes of all features, the cut there, which bounds F

Where the columns of all features have room that is three passes. Where even those that matter have none, blocks of them take
turns: F still falls, in more passes. Slopes know nothing of λ and C, so a path goes on with the columns there are, and most of
its values take a pass. Nothing is ever left out for good: every pass looks at the slopes of all features, so no rule has to
prove that one stays 0 (as those of Fercoq, Gramfort & Salmon 2015 do).

The cut at w is all that the bound is made of (streamcut.bundle.l1_only): when columns are solved, slopes of those that have a
weight are λ, but for what is left, and what is left is what the bound loses. (Johnson & Guestrin 2015 and Massias, Gramfort &
Salmon 2018 choose working sets that way, in memory.)
"""

from __future__ import annotations

import numpy as np

from streamcut.compiled.chosen_columns import Price
from streamcut.oracles.chosen_columns import ColumnsOracle
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution
from streamcut.solvers.proximal_newton import minimise
from streamcut.solvers.state import CAREFUL, BundleState

_GOAL = 0.3  # of the gap that is asked for: what slopes that are off may cost of the bound
_LEAST = 1e-12  # of λ: they are off by no less
_AGAIN = 0.1  # of that, where it was not enough
_OTHERS = 0.1  # of how far off features without a column are: those that have one need not be solved further


def solve(oracle: ColumnsOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """Run to the stopping rule of `progress`: an iteration takes one pass, for the columns or at a w.

    Raises Interrupted before there is a solution.
    """
    s, rule = begun(oracle, progress, max_cuts)
    s.v = s.w = s.w_b.copy()  # the master problem has no idea of the next

    def iterate() -> None:
        if not s.stepped and oracle.wanting(s.w_b) > 0.0:
            oracle.choose(s.w_b)
            oracle.take()
            s.stepped = True  # on to the columns there are
            return
        allowed = rule.allowed_gap(s.F_b, oracle.c_bar)
        s.w = w = _solved(s, oracle, allowed * _AGAIN ** max(0, progress.still - s.stepped))
        if s.taken > CAREFUL * allowed:
            oracle.refine()
        cut = oracle.expand(w)
        s.move(1.0, oracle)
        s.improve(cut, rule)
        s.v = s.w = w

    return iterated(s, oracle, progress, rule, iterate)


def _solved(s: BundleState, oracle: ColumnsOracle, allowed: float) -> np.ndarray:
    """The best w among those that differ from w_b in weights that have columns, for an `allowed` gap."""
    columns, features, rows = oracle.in_memory()
    l1, w, free = s.penalty.l1, s.w_b.copy(), int(s.penalty.free)
    goal = max(_GOAL * allowed / s.F_b, _LEAST) * l1 if s.F_b > 0.0 else _LEAST * l1
    goal = max(goal, _OTHERS * oracle.wanting(s.w_b))
    known = s.penalty.within
    reach = known.half if free and known.known else 1.0
    weights = np.ascontiguousarray(w[features])
    price = Price(oracle.C, l1, free, max(1.0, reach * l1 / s.F_b) if s.F_b > 0.0 else 1.0)
    minimise(columns, rows, weights, oracle.loss, price, goal, oracle.going)
    w[features] = weights
    return w
