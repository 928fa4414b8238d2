"""One-against-rest: a binary training for every class, all of them in the same passes over the data.

Problem   min F_k(w) = ½‖w‖² + C Σ u_i ℓ(±⟨w, x_i⟩) for each of K classes, + for rows of class k, ℓ a loss of margins.
Given     the oracle, a bundle size, a stopping rule.
Returns   the best point of each class, F_k there, and a lower bound on min F_k.
Stops     a class, when its own gap is small enough; it leaves the passes then. Limits on passes and time hold for all.

    the method's first pass, at w = 0
    repeat for all classes that have not converged
        one pass and a step of the method: bundle-dca (one_vs_rest_dca) or OCAS (one_vs_rest_ocas)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from streamcut.bundle.bundle import BundleSize
from streamcut.compiled import vectors
from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.ovr import OvrOracle
from streamcut.rounding import objective
from streamcut.solvers.ocas import MU
from streamcut.solvers.progress import Progress, StoppingRule
from streamcut.solvers.standstill import Standing
from streamcut.solvers.state import BundleState


@dataclass(slots=True)
class OvrState:
    """A BundleState for each class."""

    classes: list[BundleState]

    @classmethod
    def at_zero(cls, oracle: OvrOracle, cuts: BundleSize) -> OvrState:
        """Every w_b = 0, and no cuts yet; the first pass is over."""
        D, loss = oracle.features, oracle.loss_at_zero
        return cls([BundleState.at(np.zeros(D), loss, oracle, cuts) for _ in oracle.active])

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        parts = [state.saved() for state in self.classes]
        arrays = {f"{k}.{name}": array for k, (_, own) in enumerate(parts) for name, array in own.items()}
        return {"classes": [numbers for numbers, _ in parts]}, arrays

    @classmethod
    def restored(cls, checkpoint: StoredCheckpoint) -> OvrState:
        """The state that was saved, to the last bit."""
        state = checkpoint.record["state"]
        classes = []
        for k, numbers in enumerate(state["solver"]["classes"]):
            arrays = {name.removeprefix(f"{k}."): at for name, at in checkpoint.arrays.items() if name.startswith(f"{k}.")}
            own = {**checkpoint.record, "state": {**state, "solver": numbers}}
            classes.append(BundleState.restored(replace(checkpoint, record=own, arrays=arrays)))
        return cls(classes)


@dataclass(frozen=True, slots=True)
class OvrSolution:
    """The last state of each class, and why each of them stopped."""

    classes: list[BundleState]
    reasons: list[StopReason]


class Method(Protocol):
    """The binary solver behind it; a module will do."""

    def begin(self, oracle: Any, cuts: BundleSize, rule: StoppingRule) -> OvrState:
        """One pass, at w = 0, and its cuts in every bundle."""

    def iterate(self, classes: list[BundleState], oracle: Any, mu: float, rule: StoppingRule) -> None:
        """One pass, and a step for each of `classes`, the active ones of the oracle; μ is OCAS's."""


def solve(oracle: OvrOracle, progress: Progress, method: Method, cuts: BundleSize) -> OvrSolution:
    """Run all classes to the stopping rule of `progress`: one pass an iteration. Its history has the sums over all classes.

    Each has a bundle of `cuts`.
    Raises Interrupted before there is a solution.
    """
    rule = progress.rule
    progress.rule = replace(rule, tol=None, tol_relative=None)  # whether classes converged is asked here, of each
    found = progress.resume(oracle)
    s = method.begin(oracle, cuts, rule) if found is None else OvrState.restored(found)
    try:
        while (reason := _note(s, oracle, progress, rule)) is None:
            at_work = _at_work(s, oracle, rule)
            if not at_work:
                break
            progress.keep(s, oracle)
            oracle.active = np.array(at_work)
            method.iterate([s.classes[k] for k in at_work], oracle, 1.0 if progress.still else MU, rule)
    except Interrupted:
        reason = StopReason.INTERRUPTED
    reasons = [StopReason.CONVERGED if reason is None or _converged(c, oracle, rule) else reason for c in s.classes]
    if reason is not None:
        progress.save(s, oracle)
    return OvrSolution(s.classes, reasons)


def step_along_lines(classes: list[BundleState], oracle: OvrOracle) -> None:
    """Each class goes to the best point of the line from w_b to the w that was scored last. The data is not read."""
    A0, B0 = np.array([vectors.line(c.w_b, c.w) for c in classes]).T
    k = oracle.line_searches(A0, B0)
    squares = [vectors.move(c.w_b, c.w, step) for c, step in zip(classes, k.tolist(), strict=True)]
    losses = oracle.step_all(k, [c.w_b for c in classes])
    for state, step, square, loss in zip(classes, k.tolist(), squares, losses, strict=True):
        state.k, state.loss, state.raised = step, loss, oracle.C * oracle.raised
        state.F_b = objective(square, len(state.w_b), oracle.C, loss)


def _converged(state: BundleState, oracle: OvrOracle, rule: StoppingRule) -> bool:
    limitless = replace(rule, target=None, max_passes=None, max_time=None)
    return limitless.reason(state.F_b, state.bound, oracle.c_bar, 0, 0.0) is StopReason.CONVERGED


def _at_work(s: OvrState, oracle: OvrOracle, rule: StoppingRule) -> list[int]:
    return [k for k, c in enumerate(s.classes) if not _converged(c, oracle, rule)]


def _note(s: OvrState, oracle: OvrOracle, progress: Progress, rule: StoppingRule) -> StopReason | None:
    """Record an iteration of all classes; returns why to stop, or None."""
    primal, bound = sum(c.F_b for c in s.classes), sum(c.bound for c in s.classes)
    step = float(np.mean([c.k for c in s.classes]))
    standing = Standing.of_all(s.classes[k].standing for k in _at_work(s, oracle, rule))
    return progress.note(primal, bound, step, sum(len(c.bundle) for c in s.classes), oracle, standing)
