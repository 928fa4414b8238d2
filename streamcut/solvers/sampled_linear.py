"""Kernels by sampled cuts in linear time (Yu & Joachims 2008, Algorithm 3).

Problem   min F(w) = ½‖w‖² + C̄ R(w) in the space of a kernel, R the mean loss.
Given     an oracle, r (the size of samples), ε.
Returns   w as a mixture of cuts, each made of at most r examples; F(w), exact but for scores kept as float32.
Stops     when R(w) ≤ ξ + ε, R over all examples, ξ the value at w of the model of sampled cuts. That the model lies nowhere far
          above R, hence F(w) within C̄ε of the optimum, holds with high probability only (Theorem 2): no certificate.

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

from streamcut.bundle.gram_bundle import GramBundle, GramSolution
from streamcut.execution.runner import Interrupted
from streamcut.execution.sampled_oracle import SampledOracle
from streamcut.models.certificate import StopReason
from streamcut.solvers.sampled_cuts import SampledRun, SampledSolution, add_cut

_MOST_DRAWS = 20


def solve(oracle: SampledOracle, run: SampledRun, *, epsilon: float) -> SampledSolution:
    """Run to the exact stopping rule or a limit of `run`. One pass an iteration. Raises Interrupted before there is a cut."""
    bundle = GramBundle(oracle.c_bar, oracle.max_cuts)
    master, new, rounds, primal = GramSolution(0.0, 0.0, 0.0), None, 0, float("inf")
    try:
        while True:
            look = oracle.look(bundle, rounds, new)
            rounds, new = rounds + 1, None
            risk = float(look.loss.sum()) / oracle.rows
            primal = 0.5 * master.square + oracle.c_bar * risk
            redraws, limit = 0, master.xi + epsilon
            if risk > limit:
                cut = oracle.cut_from(look, bundle, 0, rounds)
                while cut.value <= limit and redraws < _MOST_DRAWS:
                    redraws += 1
                    cut = oracle.cut_from(look, bundle, redraws, rounds)
            reason = run.note(oracle, primal, master.dual, risk - master.xi, len(bundle), redraws)
            if risk <= limit:
                reason = StopReason.CONVERGED
            if reason is not None:
                break
            if cut.value > limit:
                new, master = add_cut(bundle, oracle, cut, epsilon)
    except Interrupted:
        if len(bundle) == 0:
            raise
        reason = StopReason.INTERRUPTED
    return SampledSolution(bundle, primal, master.dual, reason, run.history)
