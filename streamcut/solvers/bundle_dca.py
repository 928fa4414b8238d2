"""Bundle-accelerated dual coordinate ascent: cutting planes and streamed dual ascent in one bundle.

Problem   min F(w) = ½‖w‖² + C Σ u_i ℓ(z_i), ℓ a convex loss of a margin or a residual (streamcut.losses.loss).
Given     the oracle, a bundle size, a stopping rule.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

For any shares f_i in the domain of the conjugate loss, 0 ≤ f_i ≤ 1 for the hinge, the pair a = −(1/M) Σ u_i f_i y_i x_i,
b = −(1/M) Σ u_i ℓ*(−f_i) is a cut, and α_i = f_i C u_i the dual point behind it. So a sweep of dual coordinate ascent (Hsieh et
al. 2008) yields a cut, and the master problem over such cuts is the dual over their mixtures, or, where ℓ* is not linear,
a lower bound on it: its β is the mixture from which the next sweep starts.

    w = 0, all shares 0
    repeat
        one pass: margins of w; the cut at w_b + κ(w − w_b), κ the step that OCAS predicts;
                  from the mixed shares a sweep on a running w′ over the rows that w does not hold at a bound, those that stay
                  free twice while their group is in cache; then sweeps over the rows in the row cache: a cut
        k = argmin_{k ≥ 0} F(w_b + k(w − w_b));   w_b ← w_b + k(w − w_b)
        add both cuts, solve the master problem: its value is the bound, its solution w, its β the mixture
        in one lane: a different start for the next pass, and different steps (streamcut.solvers.acceleration)

Experiments and measurements are in bundle_dca.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.bundle.intercept import Interval
from streamcut.oracles.dual.ascent import DualOracle
from streamcut.oracles.dual.passes import Ascent
from streamcut.solvers.acceleration import Course
from streamcut.solvers.loop import iterated
from streamcut.solvers.ocas import MU
from streamcut.solvers.progress import Progress, Solution, StoppingRule
from streamcut.solvers.state import BundleState

ENOUGH = 0.0005  # sweeps over cached rows end when one gains no more than this part of the gap


Begin = Callable[[Any, int, StoppingRule], BundleState]


def solve(oracle: DualOracle, progress: Progress, *, max_cuts: int, begin: Begin | None = None) -> Solution:
    """Run bundle-dca to the stopping rule of `progress`: one pass an iteration. `max_cuts`, at least 3, must equal the oracle's.

    `begin` creates the initial state, by default by a pass from w = 0. Raises Interrupted before there is a solution.
    """
    found = progress.resume(oracle)
    first = (begin or _at_zero)(oracle, max_cuts, progress.rule) if found is None else found
    rule = progress.measure_for(oracle)
    course = Course.restored(first, oracle)
    s = course.state

    def iterate() -> None:
        mu = 1.0 if progress.still else MU
        merges, (cut, dual) = s.bundle.make_room(2, keep=2)
        oracle.follow(merges)
        kappa = s.k + mu * (1.0 - s.k)
        enough = ENOUGH * (s.F_b - s.bound)
        plain = Ascent(s.w, s.bundle.mixture(), cut, dual, kappa, enough, s.value, start=s.v)
        ascent = course.next(plain, oracle)
        predicted, ascended = oracle.ascend(ascent)
        s.move(s.search(oracle), oracle)
        s.level(oracle)
        s.add(predicted)
        s.add(ascended)
        shares = ascended.a * -oracle.c_bar
        del predicted, ascended  # dense vectors
        s.solve_master(rule, _near(ascent, shares) if s.penalty.proximal else None)
        course.advance(ascent, shares, oracle, stuck=progress.still > 0)

    return iterated(s, oracle, progress, rule, iterate, kept=course)


def _at_zero(oracle: DualOracle, max_cuts: int, rule: StoppingRule) -> BundleState:
    """One pass from w = 0 and no shares: the cut there, and that of the first sweep."""
    zero = np.zeros(oracle.dimension)
    # no gap is known yet: sweeps continue until one gains little compared with the loss of a single row
    start = Ascent(zero, np.zeros(max_cuts), 0, 1, 0.0, ENOUGH * oracle.C, at_once=not oracle.accelerated)
    if oracle.penalty.free:
        start = replace(start, start=oracle.constant())
    predicted, ascended = oracle.ascend(start, first=True)
    state = BundleState.at(zero, oracle.loss_at_zero, oracle, max_cuts)
    state.add(predicted)
    state.add(ascended)
    near = _near(start, ascended.a * -oracle.c_bar) if state.penalty.free else None
    del predicted, ascended  # dense vectors
    state.solve_master(rule, near)
    return state


def _near(ascent: Ascent, shares: np.ndarray) -> Interval:
    """The search interval of a free intercept: no further from the start of a pass than its steps have pulled it, the steps of
    a proximal point method. The intercept from the cuts alone jumps from pass to pass."""
    begin, pull = float(ascent.running[-1]), abs(float(shares[-1]))
    return Interval(begin - pull, begin + pull)
