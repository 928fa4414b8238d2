"""What both algorithms by sampled cuts report and return."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from streamcut.bundle.gram_bundle import GramBundle, GramSolution
from streamcut.execution.runner import Interrupted
from streamcut.execution.sampled_oracle import SampledCut, SampledOracle
from streamcut.models.certificate import StopReason
from streamcut.solvers.progress import Observer, StoppingRule

QP_SHARE = 1e-2  # the master problem is solved to this part of the tolerance


@dataclass(frozen=True, slots=True)
class SampledIteration:
    """One iteration: F(w) and the value of the model of cuts, as the solver knows them, and by how much w violates the next cut.

    evaluations  kernel values computed so far; redraws: samples that were not violated enough
    """

    iteration: int
    passes: int
    primal: float
    model_value: float
    violation: float
    cuts: int
    evaluations: int
    redraws: int
    seconds: float

    def columns(self) -> dict[str, str]:
        """Short texts for people, by what they tell."""
        return {
            "iteration": f"{self.iteration:,}",
            "passes": f"{self.passes:,}",
            "primal": f"{self.primal:.6g}",
            "model": f"{self.model_value:.6g}",
            "violation": f"{self.violation:.3g}",
            "cuts": f"{self.cuts:,}",
            "kernel values": f"{self.evaluations:.3g}",
        }


@dataclass(frozen=True, slots=True, eq=False)
class SampledSolution:
    """w = −Σ β_t a_t as the bundle has it; F there (`primal`, exact or an estimate), and why the solver stopped."""

    bundle: GramBundle
    primal: float
    model_value: float
    reason: StopReason
    history: list[SampledIteration]


def add_cut(bundle: GramBundle, oracle: SampledOracle, cut: SampledCut, epsilon: float) -> tuple[int, GramSolution]:
    """Take in a cut and solve the master problem; returns the cut's slot and the solution."""
    slot = bundle.make_room()
    products = np.array([cut.products[live] for live in bundle.slots.tolist()])
    bundle.add(slot, cut.b, products, oracle.square(cut.expansion))
    master = bundle.solve(QP_SHARE * epsilon * oracle.c_bar)
    oracle.keep(slot, cut.expansion, bundle)
    return slot, master


@dataclass(slots=True)
class SampledRun:
    """Keeps the history and says when limits end the run."""

    rule: StoppingRule
    observe: Observer | None
    stop: Callable[[], bool]
    history: list[SampledIteration] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    def note(
        self, oracle: SampledOracle, primal: float, model_value: float, violation: float, cuts: int, redraws: int
    ) -> StopReason | None:
        """Record an iteration; returns why to stop now, or None. Limits wait for the first cut; before it, `stop` interrupts."""
        seconds = time.monotonic() - self._started
        now = SampledIteration(
            len(self.history), oracle.passes, primal, model_value, violation, cuts, oracle.evaluations, redraws, seconds
        )
        self.history.append(now)
        if self.observe is not None:
            self.observe(now)
        limits = StoppingRule(None, None, self.rule.target, self.rule.max_passes, self.rule.max_time)
        reason = limits.reason(primal, model_value, oracle.c_bar, oracle.passes, seconds)
        stopped = self.stop()
        if cuts == 0:
            if stopped:
                raise Interrupted
            return None
        return StopReason.INTERRUPTED if reason is None and stopped else reason
