"""Kernels by sampled cuts in linear time (Yu & Joachims 2008, Algorithm 3), with OCAS's best point and line search.

Problem   min F(w) = ½‖w‖² + C̄ R(w) in the space of a kernel, R the mean loss.
Given     an oracle, r (the size of samples), ε.
Returns   the best point w_b as a mixture of cuts, each from at most r examples, and F(w_b) from scores kept as float32.
Stops     when F(w_b) ≤ ½‖w‖² + C̄ (ξ + ε), w the solution of the master problem and ξ the value of its model there. That the model
          of sampled cuts lies nowhere far above R, hence F(w_b) within C̄ε of the optimum, holds with high probability only
          (Theorem 2). The certificate of w_b is computed afterwards, in one pass (streamcut.papers.sampled_proof).

    w = w_b = 0, ξ = 0, κ = 1
    repeat
        one pass: scores of all examples by the new cut; F at some points of the line from w_b to w, mixtures of the same cuts, so
        that no kernel value is needed for them; ŷ_i, I = {i: Δ_i > 0} at w_c = w_b + (κ + μ(1 − κ)) (w − w_b)
        w_b ← the best of these points, κ ← its position on the line
        stop if F(w_b) is small enough
        repeat: sample r of I;  c = mean Δ,  g = (|I| / (m r)) Σ_sample (Ψ(x, ŷ) − Ψ(x, y))   until c + ⟨w, g⟩ > ξ + ε
        add the cut (c, g), solve the master problem: w, ξ; drop cuts that neither w nor w_b has used for 20 iterations

The paper cuts at w itself and returns the last one. Every F above is over all examples, so w_b is truly the best point
tried; only the model is sampled. A cut at w_c may leave w unchanged: then the next one is taken
at w. Samples are drawn without replacement, where the paper leaves that open: with r = |I| the cut is the exact one. They come
from the 4r wrong examples with the smallest pseudo-random keys, a uniform sample that the pass collects; should no
draw out of many be violated, another pass collects others.

Its gains, and the failure of unequal sampling rates: sampled_cuts.md.
"""

from __future__ import annotations

import numpy as np

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.papers.sampled_oracle import SampledOracle
from streamcut.papers.sampled_run import SampledRun, SampledSolution, SampledState, add_cut

MU = 0.1  # as in OCAS
TRIED = (0.03, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0)  # times κ: steps at which F is evaluated
LEAST = 0.01  # of κ
_MOST_DRAWS = 20


def solve(oracle: SampledOracle, run: SampledRun, *, epsilon: float) -> SampledSolution:
    """Run to the stopping rule or a limit of `run`. One pass an iteration. Raises Interrupted before the first cut."""
    s = run.start(oracle)
    moved = 0.0
    try:
        while True:
            run.begin(s, oracle)
            moved = 0.0
            number = len(run.history)
            steps, place = points(s)
            found = oracle.measure(s.bundle, steps, place, number, s.new)
            risk = found.loss.sum(axis=1) / oracle.total_weight
            F = 0.5 * s.bundle.squares(steps) + oracle.c_bar * risk
            best = int(np.argmin(F))
            moved = float(steps[best])
            redraws, limit = 0, s.master.xi + epsilon
            enough = F[best] <= 0.5 * s.master.square + oracle.c_bar * limit
            if not enough:
                cut = oracle.cut_from(found, s.bundle, 0, number)
                while cut.value <= limit and redraws < _MOST_DRAWS:
                    redraws += 1
                    cut = oracle.cut_from(found, s.bundle, redraws, number)
            reason = run.note(oracle, float(F[best]), s.master.dual, float(risk[-1]) - s.master.xi, len(s.bundle), redraws)
            if enough:
                reason = StopReason.CONVERGED
            if reason is not None:
                break
            s.bundle.move_best(moved)
            s.step = max(moved or TRIED[0] * s.step, LEAST)
            s.new, s.calm = None, s.calm + 1
            if cut.value > limit:
                s.new, s.master = add_cut(s.bundle, oracle, cut, epsilon)
                s.calm = 0
    except Interrupted:
        if len(s.bundle) == 0:
            raise
        reason = StopReason.INTERRUPTED
    return run.ended(s, oracle, reason, moved)


def points(s: SampledState) -> tuple[np.ndarray, int]:
    """Steps from w_b (the first, 0) to w (the last, 1) at which F is evaluated, float64; and the index of the next cut's step."""
    cut_at = 1.0 if s.calm else s.step + MU * (1.0 - s.step)
    steps = np.unique([0.0, 1.0, cut_at, *(min(part * s.step, 1.0) for part in TRIED)])
    return steps, int(np.searchsorted(steps, cut_at))
