"""Kernels by sampled cuts in linear time (Yu & Joachims 2008, Algorithm 3).

Problem   min F(w) = ½‖w‖² + C̄ R(w) in the space of a kernel, R the mean loss.
Given     an oracle, r (the size of samples), ε.
Returns   w as a mixture of cuts, each made of at most r examples, and an estimate of F(w) by scores kept as float32.
Stops     when R(w) ≤ ξ + ε, R over all examples, ξ the value at w of the model of sampled cuts. That the model lies nowhere far
          above R, hence F(w) within C̄ε of the optimum, holds with high probability only (Theorem 2). What is proved of w is
          found afterwards, in one pass (streamcut.oracles.sampled_proof).

    w = 0, ξ = 0
    repeat
        one pass: scores of all examples by the new cut, ŷ_i, R(w) = c′ + ⟨w, g′⟩, I = {i: Δ_i > 0}
        stop if R(w) ≤ ξ + ε
        repeat: sample r of I;  c = mean Δ,  g = (|I| / (m r)) Σ_sample (Ψ(x, ŷ) − Ψ(x, y))   until c + ⟨w, g⟩ > ξ + ε
        add the cut (c, g), solve the master problem: w, ξ; drop cuts that were not used for 20 iterations

Samples are drawn without replacement, where the paper leaves that open: with r = |I| the cut is the exact one. They come from
the 4r wrong examples with the smallest pseudo-random keys, a uniform sample that the pass collects on its way; should no draw of
many be violated, another pass collects others.
"""

from __future__ import annotations

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.oracles.sampled import SampledOracle
from streamcut.solvers.sampled_cuts import SampledRun, SampledSolution, add_cut

_MOST_DRAWS = 20


def solve(oracle: SampledOracle, run: SampledRun, *, epsilon: float) -> SampledSolution:
    """Run to the exact stopping rule or a limit of `run`. One pass an iteration. Raises Interrupted before there is a cut."""
    s = run.start(oracle)
    try:
        while True:
            run.begin(s, oracle)
            number = len(run.history)
            found = oracle.measure(s.bundle, number, s.new)
            risk = float(found.loss.sum()) / oracle.total_weight
            redraws, limit = 0, s.master.xi + epsilon
            if risk > limit:
                cut = oracle.cut_from(found, s.bundle, 0, number)
                while cut.value <= limit and redraws < _MOST_DRAWS:
                    redraws += 1
                    cut = oracle.cut_from(found, s.bundle, redraws, number)
            primal = 0.5 * s.master.square + oracle.c_bar * risk
            reason = run.note(oracle, primal, s.master.dual, risk - s.master.xi, len(s.bundle), redraws)
            if risk <= limit:
                reason = StopReason.CONVERGED
            if reason is not None:
                break
            s.new = None
            if cut.value > limit:
                s.new, s.master = add_cut(s.bundle, oracle, cut, epsilon)
    except Interrupted:
        if len(s.bundle) == 0:
            raise
        reason = StopReason.INTERRUPTED
    return run.ended(s, oracle, reason)
