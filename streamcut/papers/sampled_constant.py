"""Kernels by sampled cuts in constant time (Yu & Joachims 2008, Algorithm 2).

Problem   min F(w) = ½‖w‖² + C̄ R(w) in the space of a kernel, R the mean loss.
Given     an oracle, r (the size of samples), ε.
Returns   w as a mixture of cuts, each from at most r examples, and an estimate of F(w).
Stops     when the cuts of some iterations in a row, each of a fresh sample, are violated by no more than ε. F(w) is within C̄ε
          of the optimum up to what samples of r can tell, with high probability only (Theorem 3). The certificate of w is
          computed afterwards, in one pass (streamcut.papers.sampled_proof).

    w = 0, ξ = 0
    repeat
        sample r examples of all, ŷ_i for them: the cut c = mean Δ, g = mean Ψ(x, ŷ) − Ψ(x, y) of the sample
        stop if c + ⟨w, g⟩ ≤ ξ + ε, as in the last iterations
        add the cut (c, g), solve the master problem: w, ξ; drop cuts unused for 20 iterations

Samples are drawn without replacement, where the paper leaves that open: with r = m every cut is the exact one. The paper's own
experiments (section 6.1) stop after four such iterations in a row, as is done here; a cut that is not violated is not
added, and the next one uses another sample.
"""

from __future__ import annotations

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.papers.sampled_oracle import SampledOracle
from streamcut.papers.sampled_run import SampledRun, SampledSolution, add_cut

IN_A_ROW = 4


def solve(oracle: SampledOracle, run: SampledRun, *, epsilon: float) -> SampledSolution:
    """Run to the stopping rule or a limit of `run`. Raises Interrupted before the first cut."""
    s = run.start(oracle)
    try:
        while True:
            run.begin(s, oracle)
            cut, risk = oracle.glance(s.bundle, len(run.history))
            primal = 0.5 * s.master.square + oracle.c_bar * risk
            violated = cut.value > s.master.xi + epsilon
            calm = 0 if violated else s.calm + 1
            reason = run.note(oracle, primal, s.master.dual, cut.value - s.master.xi, len(s.bundle), 0)
            if calm == IN_A_ROW:
                reason = StopReason.CONVERGED
            if reason is not None:
                break
            s.calm = calm
            if violated:
                _, s.master = add_cut(s.bundle, oracle, cut, epsilon)
    except Interrupted:
        if len(s.bundle) == 0:
            raise
        reason = StopReason.INTERRUPTED
    return run.ended(s, oracle, reason)
