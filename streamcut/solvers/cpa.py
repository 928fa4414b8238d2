"""CPA: the cutting plane algorithm (Joachims 2006, Algorithm 1; Teo et al. 2007 in the notation used here).

Problem   min F(w) = ½‖w‖² + C̄ R(w), R the mean risk of an oracle.
Given     the oracle, a bundle size, a stopping rule.
Returns   the best iterate, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough. The paper stops on R(w) ≤ ξ + ε at the current w; with C̄ε = gap that is the
          same rule at the last iterate instead of the best one.

    w = 0
    repeat
        one pass: F(w) and the cut (a, b) at w          w_b = w if F(w) is the best so far
        add the cut to the bundle
        solve the master problem: its value is the bound, its solution the next w
"""

from __future__ import annotations

from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution


def solve(oracle: DecomposableOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """Run CPA to the stopping rule of `progress`. One pass an iteration. Raises Interrupted before there is a solution."""
    s, rule = begun(oracle, progress, max_cuts)

    def iterate() -> None:
        cut, loss = oracle.cut_at(s.w)
        F = oracle.penalty.objective(s.w, oracle.C, loss)
        s.take(s.w, loss, F, oracle.C * oracle.raised)
        s.sharpen(oracle)
        s.improve(cut, rule)

    return iterated(s, oracle, progress, rule, iterate)
