"""Reports, results and state of both algorithms by sampled cuts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.models.kept import Kept
from streamcut.papers.gram_bundle import GramBundle, GramSolution
from streamcut.papers.sampled_oracle import SampledCut, SampledOracle
from streamcut.solvers.progress import Progress, StoppingRule

QP_SHARE = 1e-2  # the master problem is solved to this part of the tolerance


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


def add_cut(bundle: GramBundle, oracle: SampledOracle, cut: SampledCut, epsilon: float) -> tuple[int, GramSolution]:
    """Add a cut and solve the master problem; returns the cut's slot and the solution."""
    slot = bundle.make_room()
    products = np.array([cut.products[live] for live in bundle.slots.tolist()])
    bundle.add(slot, cut.b, products, oracle.square(cut.expansion))
    master = bundle.solve(QP_SHARE * epsilon * oracle.c_bar)
    oracle.keep(slot, cut.expansion, bundle)
    return slot, master


@dataclass
class SampledState(Kept):
    """The state of both algorithms between two iterations. With the oracle's cuts it is complete, and hence the checkpoint.

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


@dataclass(slots=True)
class SampledRun:
    """Keeps history and checkpoints of a training, and applies limits."""

    progress: Progress
    _lines: int = 0  # of the history at the start of the iteration

    @property
    def history(self) -> list[SampledIteration]:
        return self.progress.history

    def start(self, oracle: SampledOracle) -> SampledState:
        """The state at w = 0, or that of the checkpoint."""
        state = SampledState(GramBundle(oracle.c_bar, oracle.max_cuts))
        self.progress.resume_with(oracle, state, SampledIteration)
        return state

    def begin(self, state: SampledState, oracle: SampledOracle) -> None:
        """Begin the next iteration: write a checkpoint if one is due, once there is a cut."""
        oracle.begin()
        self._lines = len(self.history)
        if len(state.bundle):
            self.progress.keep(state, oracle)

    def note(
        self, oracle: SampledOracle, primal: float, bound: float, violation: float, cuts: int, redraws: int
    ) -> StopReason | None:
        """Record an iteration, with estimates `primal` and `bound`; returns why to stop now, or None.

        Limits apply after the first cut; before it, `stop` interrupts.
        """
        seconds = self.progress.seconds
        now = SampledIteration(
            len(self.history), oracle.passes, primal, bound, violation, cuts, oracle.evaluations, redraws, seconds
        )
        self.progress.see(now)
        rule = self.progress.rule
        limits = StoppingRule(None, None, rule.target, rule.max_passes, rule.max_time)
        reason = limits.reason(primal, bound, oracle.c_bar, oracle.passes, seconds)
        stopped = self.progress.stop()
        if cuts == 0:
            if stopped:
                raise Interrupted
            return None
        return StopReason.INTERRUPTED if reason is None and stopped else reason

    def ended(self, state: SampledState, oracle: SampledOracle, reason: StopReason, moved: float = 0.0) -> SampledSolution:
        """The result of the run, after the best point has `moved` in its last pass; a resumable run writes a checkpoint, of the
        start of the iteration."""
        history = self.history
        if reason is not StopReason.CONVERGED and len(state.bundle):
            self.progress.history = self.progress.history[: self._lines]
            self.progress.save(state, oracle)
            self.progress.history = history  # type: ignore[assignment]
        bundle = state.bundle
        bundle.move_best(moved)
        mixture = bundle.best if bundle.best.any() else bundle.mixture
        return SampledSolution(bundle, mixture, history[-1].primal_estimate, state.master.dual, reason, history)
