"""Kernels by sampled cuts (Yu & Joachims 2008), in constant time (Algorithm 2) or in linear time (Algorithm 3).

Problem   min F(w) = ½‖w‖² + C̄ R(w) in the space of a kernel, R the mean loss.
Given     an oracle, r (the size of samples), ε.
Returns   w as a mixture of cuts, each from at most r examples, and an estimate of F(w). The certificate of w is computed
          afterwards, in one pass (streamcut.papers.sampled_proof).

Constant time, an estimate from samples of r:

    w = 0, ξ = 0
    repeat
        sample r examples of all, ŷ_i for them: the cut c = mean Δ, g = mean Ψ(x, ŷ) − Ψ(x, y) of the sample
        stop if c + ⟨w, g⟩ ≤ ξ + ε, as in the last iterations
        add the cut (c, g), solve the master problem: w, ξ; drop cuts unused for 20 iterations

It stops when the cuts of some iterations in a row, each of a fresh sample, are violated by no more than ε. F(w) is within C̄ε of
the optimum up to what samples of r can tell, with high probability only (Theorem 3). The paper's own experiments (section 6.1)
stop after four such iterations in a row, as is done here; a cut that is not violated is not added, and the next one uses another
sample.

Linear time, with OCAS's best point and line search, F(w_b) from scores kept as float32:

    w = w_b = 0, ξ = 0, κ = 1
    repeat
        one pass: scores of all examples by the new cut; F at some points of the line from w_b to w, mixtures of the same cuts, so
        that no kernel value is needed for them; ŷ_i, I = {i: Δ_i > 0} at w_c = w_b + (κ + μ(1 − κ)) (w − w_b)
        w_b ← the best of these points, κ ← its position on the line
        stop if F(w_b) ≤ ½‖w‖² + C̄ (ξ + ε)
        repeat: sample r of I;  c = mean Δ,  g = (|I| / (m r)) Σ_sample (Ψ(x, ŷ) − Ψ(x, y))   until c + ⟨w, g⟩ > ξ + ε
        add the cut (c, g), solve the master problem: w, ξ; drop cuts that neither w nor w_b has used for 20 iterations

The paper cuts at w itself and returns the last one. Every F above is over all examples, so w_b is truly the best point tried;
only the model is sampled: that it lies nowhere far above R, hence F(w_b) within C̄ε of the optimum, holds with high probability
only (Theorem 2). A cut at w_c may leave w unchanged: then the next one is taken at w. Samples come from the 4r wrong examples of
the smallest pseudo-random keys, a uniform sample that the pass collects and that is read once for all draws, which counts as
another pass; should no draw out of many be violated, the next iteration collects others.

Samples are drawn without replacement, where the paper leaves that open: with all examples in it a cut is the exact one. The gains
of the linear algorithm, and the failure of unequal sampling rates: sampled_cuts.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.models.kept import Kept
from streamcut.papers.gram_bundle import GramBundle, GramSolution
from streamcut.papers.sampled_oracle import SampledCut, SampledOracle
from streamcut.solvers.progress import Progress

IN_A_ROW = 4
MU = 0.1  # as in OCAS
TRIED = (0.03, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0)  # times κ: steps at which F is evaluated
LEAST = 0.01  # of κ
QP_SHARE = 1e-2  # the master problem is solved to this part of the tolerance
_MOST_DRAWS = 20


@dataclass(frozen=True, slots=True)
class SampledIteration:
    """One iteration: estimates of F at the current answer and of min F by the model of cuts, and the violation of the
    next cut at w.

    evaluations  kernel values computed so far; redraws: samples with too small a violation
    """

    iteration: int
    passes: int
    primal_estimate: float
    bound_estimate: float
    violation: float
    cuts: int
    evaluations: int
    redraws: int
    seconds: float

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""
        return {
            "iteration": f"{self.iteration:,}",
            "passes": f"{self.passes:,}",
            "primal (estimate)": f"{self.primal_estimate:.4g}",
            "bound (estimate)": f"{self.bound_estimate:.4g}",
            "violation": f"{self.violation:.2g}",
            "cuts": f"{self.cuts:,}",
            "kernel values": f"{self.evaluations:.3g}",
        }


@dataclass(frozen=True, slots=True, eq=False)
class SampledSolution:
    """w = −Σ mixture_t a_t over the cuts of the bundle; estimates of F there and of min F, and why the solver stopped."""

    bundle: GramBundle
    mixture: np.ndarray
    primal_estimate: float
    bound_estimate: float
    reason: StopReason
    history: list[SampledIteration]


@dataclass
class SampledState(Kept):
    """The state between two iterations. With the oracle's cuts it is complete, and hence the checkpoint.

    new   the slot of a cut that no pass has scored yet
    calm  iterations in a row whose cut was not violated
    step  on the line from the best point to the master problem's solution at which F was last found to be lowest
    """

    bundle: GramBundle
    master: GramSolution = field(default_factory=GramSolution)
    new: int | None = None
    calm: int = 0
    step: float = 1.0
    kept = ("bundle", "master", "new", "calm", "step")


@dataclass(frozen=True, slots=True)
class _Look:
    """An iteration before its cut: an estimate of F, the violation at w, the cut if it is violated, whether that is the end.

    moved  the part of the way from the best point to w at which F is lowest
    """

    primal: float
    violation: float
    cut: SampledCut | None
    enough: bool
    moved: float = 0.0
    redraws: int = 0


def solve(oracle: SampledOracle, progress: Progress, *, epsilon: float) -> SampledSolution:
    """Run to the stopping rule or a limit of `progress`, in linear time if the oracle keeps scores. Raises Interrupted before the
    first cut."""
    look_at = _linear if oracle.keeps_scores else _constant
    s, moved = SampledState(GramBundle(oracle.c_bar, oracle.max_cuts)), 0.0
    progress.resume_with(oracle, s, SampledIteration)
    try:
        while True:
            oracle.begin()
            moved, number = 0.0, len(progress.history)
            if len(s.bundle):
                progress.keep(s, oracle)
            look = look_at(s, oracle, number, epsilon)
            moved = look.moved
            reason = _noted(look, s, oracle, progress)
            if look.enough:
                reason = StopReason.CONVERGED
            if reason is not None:
                break
            s.bundle.move_best(moved)
            s.step = max(moved or TRIED[0] * s.step, LEAST)
            s.new, s.calm = None, s.calm + 1
            if look.cut is not None:
                s.new, s.master = _add(s.bundle, oracle, look.cut, epsilon)
                s.calm = 0
    except Interrupted:
        if len(s.bundle) == 0:
            raise
        reason = StopReason.INTERRUPTED
    history = progress.history
    if reason is not StopReason.CONVERGED and len(s.bundle):  # a checkpoint of the start of the iteration
        progress.history = history[:number]
        progress.save(s, oracle)
        progress.history = history
    s.bundle.move_best(moved)
    mixture = s.bundle.best if s.bundle.best.any() else s.bundle.mixture
    return SampledSolution(s.bundle, mixture, history[-1].primal_estimate, s.master.dual, reason, history)


def _constant(s: SampledState, oracle: SampledOracle, number: int, epsilon: float) -> _Look:
    cut, risk = oracle.glance(s.bundle, number)
    violation = cut.value - s.master.xi
    violated = cut.value > s.master.xi + epsilon
    primal = 0.5 * s.master.square + oracle.c_bar * risk
    return _Look(primal, violation, cut if violated else None, not violated and s.calm + 1 == IN_A_ROW)


def _linear(s: SampledState, oracle: SampledOracle, number: int, epsilon: float) -> _Look:
    """One pass."""
    steps, place = points(s)
    line = oracle.line(s.bundle, steps)
    sums = oracle.measure(line, place, number, s.new)
    risk = sums.loss.sum(axis=1) / oracle.total_weight
    F = 0.5 * s.bundle.squares(steps) + oracle.c_bar * risk
    best, limit = int(np.argmin(F)), s.master.xi + epsilon
    redraws, cut = 0, None
    enough = bool(F[best] <= 0.5 * s.master.square + oracle.c_bar * limit)
    if not enough and len(sums.keys):  # else none is wrong at this point, and the next one is w
        wrong = oracle.wrong(sums)
        cut = oracle.cut_from(sums, wrong, line, place, s.bundle, 0, number)
        while cut.value <= limit and redraws < _MOST_DRAWS:
            redraws += 1
            cut = oracle.cut_from(sums, wrong, line, place, s.bundle, redraws, number)
        cut = cut if cut.value > limit else None
    return _Look(float(F[best]), float(risk[-1]) - s.master.xi, cut, enough, float(steps[best]), redraws)


def points(s: SampledState) -> tuple[np.ndarray, int]:
    """Steps from w_b (the first, 0) to w (the last, 1) at which F is evaluated, float64; and the index of the next cut's step."""
    cut_at = 1.0 if s.calm else s.step + MU * (1.0 - s.step)
    steps = np.unique([0.0, 1.0, cut_at, *(min(part * s.step, 1.0) for part in TRIED)])
    return steps, int(np.searchsorted(steps, cut_at))


def _noted(look: _Look, s: SampledState, oracle: SampledOracle, progress: Progress) -> StopReason | None:
    """Record an iteration; returns why to stop now, or None. Limits apply after the first cut; before it, `stop` interrupts."""
    seconds, cuts, bound = progress.seconds, len(s.bundle), s.master.dual
    counts = cuts, oracle.evaluations, look.redraws, seconds
    progress.see(SampledIteration(len(progress.history), oracle.passes, look.primal, bound, look.violation, *counts))
    limits = replace(progress.rule, tol=None, tol_relative=None)
    reason = limits.reason(look.primal, bound, oracle.c_bar, oracle.passes, seconds)
    stopped = progress.stop()
    if cuts == 0:
        if stopped:
            raise Interrupted
        return None
    return StopReason.INTERRUPTED if reason is None and stopped else reason


def _add(bundle: GramBundle, oracle: SampledOracle, cut: SampledCut, epsilon: float) -> tuple[int, GramSolution]:
    """Add a cut and solve the master problem; returns the cut's slot and the solution."""
    slot = bundle.make_room()
    products = np.array([cut.products[live] for live in bundle.slots.tolist()])
    bundle.add(slot, cut.b, products, oracle.square(cut.expansion))
    master = bundle.solve(QP_SHARE * epsilon * oracle.c_bar)
    oracle.keep(slot, cut.expansion, bundle)
    return slot, master
