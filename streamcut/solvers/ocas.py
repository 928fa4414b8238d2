"""OCAS: the optimised cutting plane algorithm (Franc & Sonnenburg 2008, Algorithm 1), in two forms.

Problem   min F(w) = ½‖w‖² + C̄ R(w), R the mean risk of an oracle.
Given     the oracle, a bundle size, a stopping rule, μ (the paper's λ), and the place of the cut.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    w_b = 0, first cut at 0
    repeat
        solve the master problem: its value is the bound, its solution w
        k = argmin_{k ≥ 0} F(w_b + k(w − w_b));   w_b ← w_b + k(w − w_b)
        add the cut at w_c = w_b + μ(w − w_b)

"exact" is the paper: a pass for the scores of w, the line search, a pass for the cut at w_c.
"predicted" guesses the step before the pass, κ = k_prev + μ(1 − k_prev), and computes scores of w and the cut at
w_b + κ(w − w_b) in one pass: a subgradient at any point is a valid cut, so only its position is a guess.

The line search is the oracle's. Losses that are not sums over rows (GlobalOracle) need exact cuts.
"""

from __future__ import annotations

from typing import Any, Literal

from streamcut.solvers.loop import Begin, begun, iterated
from streamcut.solvers.progress import Progress, Solution
from streamcut.solvers.state import BundleState

MU = 0.1  # "works consistently well in all experiments" (paper, section 3)


def solve(
    oracle: Any,
    progress: Progress,
    *,
    max_cuts: int,
    cut: Literal["predicted", "exact"] = "predicted",
    mu: float = MU,
    begin: Begin = BundleState.at_zero,
) -> Solution:
    """Run OCAS to the stopping rule of `progress`: one pass an iteration with predicted cuts, two with exact ones.

    `begin` makes the initial state, by default by a pass at w = 0. Raises Interrupted before there is a solution.
    """
    s, rule = begun(oracle, progress, max_cuts, begin)

    def iterate() -> None:
        place = 1.0 if progress.still else mu  # the cut at w itself always improves the bundle, which a full one may need
        if not s.stepped:
            if cut == "predicted":
                new = oracle.score_and_cut(s.w, s.k + place * (1.0 - s.k))
            else:
                oracle.score(s.w)
            s.move(s.search(oracle), oracle)
            s.level(oracle)
            s.stepped = True
        if cut == "exact":
            if rule.reason(s.best.F, s.bound, oracle.c_bar, 0, 0.0) is not None:
                return  # converged: its second pass is not needed
            new = oracle.cut_between(place)
        s.improve(new, rule)

    return iterated(s, oracle, progress, rule, iterate)
