"""One-against-rest: a binary training for every class, all of them in the same passes over the data.

Problem   min F_k(w) = R(w) + C Σ u_i ℓ(±⟨w, x_i⟩) for each of K classes, + for rows of class k, ℓ a loss of margins, R(w) = ½‖w‖²
          or an elastic net.
Given     the oracle, a bundle size, a stopping rule.
Returns   the best point of each class, F_k there, and a lower bound on min F_k.
Stops     a class, when its own gap is small enough; it leaves the passes then. Limits on passes and time hold for all.

    the method's first pass, at w = 0
    repeat for all classes that have not converged
        one pass and a step of the method: bundle-dca (ovr_dca), OCAS (ovr_ocas) or CPA (ovr_cpa)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from streamcut.bundle.bundle import BundleSize
from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers.best import Best
from streamcut.solvers.ocas import MU
from streamcut.solvers.progress import Iteration, Progress, StoppingRule
from streamcut.solvers.standstill import Standing
from streamcut.solvers.state import BundleState
from streamcut.solvers.warm_start import Origin


@dataclass(slots=True)
class OvrState:
    """A BundleState for each class."""

    classes: list[BundleState]

    @classmethod
    def at_zero(cls, oracle: OvrOracle, cuts: BundleSize) -> OvrState:
        """Every w_b = 0, and no cuts yet; the first pass is over."""
        D, loss = oracle.features, oracle.loss_at_zero
        return cls([BundleState.at(np.zeros(D), loss, oracle, cuts) for _ in oracle.active])

    @classmethod
    def at(cls, origins: Sequence[Origin], oracle: OvrOracle, cuts: BundleSize) -> OvrState:
        """Each w_b at its origin, which was scored in the first pass. The data is not read."""
        losses = oracle.step_all(np.ones(len(origins)), [origin.w for origin in origins])
        return cls([origin.state(oracle, cuts, loss) for origin, loss in zip(origins, losses, strict=True)])

    def move_to(self, C: float, penalty: L2, oracle: OvrOracle, rule: StoppingRule) -> None:
        """Go on with another C and penalty, all classes anew."""
        for own in self.classes:
            own.move_to(C, penalty, oracle, rule)
        oracle.active = np.arange(len(self.classes))

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        parts = [state.saved() for state in self.classes]
        arrays = {f"{k}.{name}": array for k, (_, own) in enumerate(parts) for name, array in own.items()}
        return {"classes": [numbers for numbers, _ in parts]}, arrays

    @classmethod
    def restored(cls, checkpoint: StoredCheckpoint | OvrState, oracle: OvrOracle) -> OvrState:
        """The state that was saved, to the last bit; a state is itself. Raises CorruptError for what is none."""
        if isinstance(checkpoint, OvrState):
            return checkpoint
        state = checkpoint.record["state"]
        classes = []
        with checkpoint.restoring():
            if len(state["solver"]["classes"]) != len(oracle.active):
                raise ValueError(f"it has {len(state['solver']['classes'])} classes, not {len(oracle.active)}")
        for k, numbers in enumerate(state["solver"]["classes"]):
            arrays = {name.removeprefix(f"{k}."): at for name, at in checkpoint.arrays.items() if name.startswith(f"{k}.")}
            own = {**checkpoint.record, "state": {**state, "solver": numbers}}
            classes.append(BundleState.restored(replace(checkpoint, record=own, arrays=arrays), oracle.features))
        if any(state.bundle.max_cuts > getattr(oracle, "cuts", state.bundle.max_cuts) for state in classes):
            raise checkpoint.wrong("a bundle has more cuts than rows remember")
        return cls(classes)


class ClassLine(NamedTuple):
    """What is known of a class: F at its weights, the bound, by what F was raised, offset and errors of its proof, why it
    ended."""

    primal: float
    bound: float
    raised: float
    offset: float
    slope_error: float
    offset_error: float
    reason: str

    @classmethod
    def of(cls, state: BundleState, reason: StopReason) -> Self:
        proof = state.witness
        return cls(state.best.F, state.bound, state.best.raised, proof.b, *proof.error, reason.value)

    @property
    def converged(self) -> bool:
        return self.reason == StopReason.CONVERGED.value


@dataclass(frozen=True, slots=True)
class OvrSolution:
    """The last state of each class, and why each of them stopped."""

    state: OvrState
    reasons: list[StopReason]
    history: list[Iteration]

    @property
    def reason(self) -> StopReason:
        """Why training ended, of the first class that did not converge if there is one."""
        return next((reason for reason in self.reasons if reason is not StopReason.CONVERGED), StopReason.CONVERGED)


class Method(Protocol):
    """The binary solver behind it; a module will do."""

    def begin(
        self, oracle: Any, cuts: BundleSize, rule: StoppingRule, origins: Sequence[Origin] | None = None
    ) -> OvrState:  # fmt: skip
        """One pass, at w = 0 or the origin of each class, and its cuts in every bundle."""

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
    s = method.begin(oracle, cuts, rule) if found is None else OvrState.restored(found, oracle)
    try:
        while (reason := _note(s, oracle, progress, rule)) is None:
            at_work = _at_work(s, oracle, rule)
            if not at_work:
                break
            progress.keep(s, oracle)
            oracle.active, classes = np.array(at_work), [s.classes[k] for k in at_work]
            method.iterate(classes, oracle, 1.0 if progress.still else MU, rule)
            _go_to_few_weights(classes, oracle, rule)
    except Interrupted:
        reason = StopReason.INTERRUPTED
    reasons = [StopReason.CONVERGED if reason is None or _converged(c, oracle, rule) else reason for c in s.classes]
    if reason is not None:
        progress.save(s, oracle)
    return OvrSolution(s, reasons, progress.history)


def step_along_lines(classes: list[BundleState], oracle: OvrOracle) -> None:
    """Each class goes to the best point of the line from w_b to the w that was scored last. The data is not read."""
    penalty = oracle.penalty
    A0, B0 = np.array([vectors.line(c.w_b, c.w) for c in classes]).T
    kinks = [found for c in classes if (found := penalty.kinks(c.w_b, c.w)) is not None]
    k = oracle.line_searches(A0, B0, kinks or None)
    for c, doubt in zip(classes, oracle.doubts(k), strict=True):
        c.best.before(c.w_b, oracle.C * doubt, c.F_b - c.bound, c.shelf)
    squares = [vectors.move(c.w_b, c.w, step) for c, step in zip(classes, k.tolist(), strict=True)]
    losses = oracle.step_all(k, [c.w_b for c in classes])
    for state, step, square, loss, raised in zip(classes, k.tolist(), squares, losses, oracle.raises, strict=True):
        state.k, state.loss, state.raised = step, loss, oracle.C * raised
        state.F_b = penalty.objective(state.w_b, oracle.C, loss, square)
        state.best.offer(state.w_b, state.F_b, state.raised)
        state.scored = None if penalty.threshold is None else state.w


def _go_to_few_weights(classes: list[BundleState], oracle: OvrOracle, rule: StoppingRule) -> None:
    """Where the penalty has thresholds, classes that have converged go to the w that was scored last, if that is good enough.

    w_b is a mean over all w so far and has the weights of many of them. The data is not read.
    """
    done = [a for a, c in enumerate(classes) if c.scored is not None and _converged(c, oracle, rule)]
    if not done:
        return
    scored = [c.w if c.scored is None else c.scored for c in classes]
    k, losses = np.zeros(len(classes)), oracle.losses_scored(scored)
    for a in done:
        F = oracle.penalty.objective(scored[a], oracle.C, losses[a])
        k[a] = F - classes[a].bound <= rule.allowed_gap(F, oracle.c_bar)
    gone = np.flatnonzero(k).tolist()
    if not gone:
        return
    for a in gone:
        classes[a].w_b[:] = scored[a]
    losses = oracle.step_all(k, [c.w_b for c in classes])
    for a in gone:
        own = classes[a]
        own.loss, own.raised = losses[a], oracle.C * oracle.raises[a]
        own.F_b = oracle.penalty.objective(own.w_b, oracle.C, own.loss)
        own.best = Best(own.w_b, own.F_b, own.raised)


def _converged(state: BundleState, oracle: OvrOracle, rule: StoppingRule) -> bool:
    limitless = replace(rule, target=None, max_passes=None, max_time=None)
    return limitless.reason(state.best.F, state.bound, oracle.c_bar, 0, 0.0) is StopReason.CONVERGED


def _at_work(s: OvrState, oracle: OvrOracle, rule: StoppingRule) -> list[int]:
    return [k for k, c in enumerate(s.classes) if not _converged(c, oracle, rule)]


def _note(s: OvrState, oracle: OvrOracle, progress: Progress, rule: StoppingRule) -> StopReason | None:
    """Record an iteration of all classes; returns why to stop, or None."""
    primal, bound = sum(c.best.F for c in s.classes), sum(c.bound for c in s.classes)
    step = float(np.mean([c.k for c in s.classes]))
    standing = Standing.of_all(s.classes[k].standing for k in _at_work(s, oracle, rule))
    return progress.note(primal, bound, step, sum(len(c.bundle) for c in s.classes), oracle, standing)
