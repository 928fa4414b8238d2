"""Reports, stopping rules and results common to all solvers; and standstill, passes that move neither F(w_b) nor the bound.

The reported bound tells less: it may be an older, better one (a model's cut, another C's) that the bundle has not reached yet. A
cut taken at the master's solution always raises its value, but by as little as gap²/(8‖C̄a‖²): a few passes are no proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from streamcut.execution.feed import Traffic
from streamcut.foundation.units import format_bytes
from streamcut.models.certificate import Cut, StopReason, Tolerance, only_rounding
from streamcut.models.checkpoint import Checkpoints, StoredCheckpoint
from streamcut.models.kept import Kept

_MOVES = 1e-15  # of F: the least fall of F, or rise of the master's value, that counts
_PASSES = 10  # without either


@dataclass(frozen=True, slots=True)
class Values:
    """The progress of a method: F(w_b), and the master problem's value.

    error: by which both were moved apart for rounding (streamcut.foundation.rounding). unproved: the excess of the reported gap,
    to the best bound, over twice the rounding in it.
    Values of different `stage` are not comparable: they belong to another C, or to other problems.
    """

    primal: float
    value: float
    error: float
    unproved: float = 0.0
    stage: float = 0.0

    @classmethod
    def of_all(cls, parts: Iterable[Values], stage: float) -> Values:
        """The progress of several problems together."""
        all_ = list(parts)
        primal, value = sum(part.primal for part in all_), sum(part.value for part in all_)
        return cls(primal, value, sum(part.error for part in all_), max((part.unproved for part in all_), default=0.0), stage)

    @property
    def rounding(self) -> bool:
        """Whether the gap, and the reported one as well, is within rounding."""
        return self.primal - self.value <= 2.0 * self.error and self.unproved <= 0.0


@dataclass(slots=True)
class Standstill:
    """Counts passes without gain: `still` of them since `primal` fell or `value` rose, at `stage`."""

    still: int = 0
    primal: float = 0.0
    value: float = 0.0
    stage: float | None = None
    now: Values | None = None

    def see(self, now: Values) -> None:
        """Update after another pass."""
        self.now = now
        moves = _MOVES * abs(now.primal)
        if now.stage != self.stage:
            self.still, self.primal, self.value, self.stage = 0, now.primal, now.value, now.stage
            return
        moved = self.primal - now.primal > moves or now.value - self.value > moves
        self.primal, self.value = min(self.primal, now.primal), max(self.value, now.value)
        self.still = 0 if moved else self.still + 1

    def reason(self) -> StopReason | None:
        """Why to give up, or None."""
        if self.now is None or self.still < _PASSES:
            return None
        return StopReason.STALLED if self.now.rounding else StopReason.SCALE

    def saved(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"still": self.still, "primal": self.primal, "value": self.value, "stage": self.stage}


@dataclass(frozen=True, slots=True)
class Iteration:
    """The state of a solver after an iteration. `step` is the line search's k, `seconds` counts from the start of the call.

    rows, nnz, bytes_read (decoded from storage) and bytes_computed (of all rows visited by passes, decoded) are totals so
    far; cached_share is the part of the rows that came from memory. Training converges at a gap of
    `allowed_gap`, by the rule `waits_for`: "tol 0.001" or "tol_relative 0.01". `classes` are those in training, if
    not all of them: "6–10 of 20".
    """

    iteration: int
    passes: int
    primal: float
    lower_bound: float
    gap: float
    step: float
    cuts: int
    seconds: float
    rows: int
    nnz: int
    bytes_read: int
    cached_share: float
    bytes_computed: int = 0
    allowed_gap: float = 0.0
    waits_for: str = ""
    classes: str = ""

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""
        seconds = max(self.seconds, 1e-9)
        waits = {"allowed": f"{self.allowed_gap:.2g}"} if self.allowed_gap > 0.0 else {}
        rule = {"until": self.waits_for} if self.waits_for else {}
        classes = {"classes": self.classes} if self.classes else {}
        return {
            "passes": f"{self.passes:,}",
            **classes,
            "primal": f"{self.primal:.4g}",
            "bound": f"{self.lower_bound:.4g}",
            "gap": f"{self.gap:.2g}",
            **waits,
            "cuts": f"{self.cuts:,}",
            "read": f"{format_bytes(self.bytes_read / seconds)}/s",
            "computed": f"{format_bytes(self.bytes_computed / seconds)}/s",
            "from memory": f"{100 * self.cached_share:.0f} %",
            "iteration": f"{self.iteration:,}",
            **rule,
        }


class Record(Protocol):
    """A dataclass of numbers that a solver reports; `seconds` counts from the start of training."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def seconds(self) -> float: ...

    def columns(self) -> dict[str, str]:
        """Formatted values for display, by name."""


Observer = Callable[[Any], None]  # takes every Record


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """Converged when gap ≤ tol·C̄ and gap ≤ tol_relative·F(w_b); None = switched off. With both off only the limits below apply.

    Mean losses are measured in units of `unit`: C̄ means C̄·unit above, with unit 1 for labels (streamcut.oracles.decomposable).
    `equal`: all targets are equal, so that F may be 0 at the optimum; then F counts as 0 where it is rounding error.
    `target`: stop once F(w_b) ≤ target. `max_passes`, `max_time` (seconds) are limits, checked between passes.
    """

    tol: float | None = 1e-3
    tol_relative: float | None = 1e-2
    target: float | None = None
    max_passes: int | None = None
    max_time: float | None = None
    unit: float = 1.0
    equal: bool = False

    def tolerance(self, primal: float, c_bar: float) -> Tolerance:
        """The gap at which training converges, and the rule that sets it."""
        return Tolerance.strictest(self.tol, self.tol_relative, primal, c_bar * self.unit)

    def allowed_gap(self, primal: float, c_bar: float) -> float:
        """The gap at which training converges; 0 without a rule."""
        return self.tolerance(primal, c_bar).gap

    def reason(self, primal: float, lower_bound: float, c_bar: float, passes: int, seconds: float) -> StopReason | None:
        """Why to stop now, or None."""
        nothing = self.equal and only_rounding(primal, lower_bound, c_bar * self.unit)
        asked = Tolerance.strictest(self.tol, self.tol_relative, primal, c_bar * self.unit, nothing=nothing)
        if asked.rule and primal - lower_bound <= asked.gap:
            return StopReason.CONVERGED
        if self.target is not None and primal <= self.target:
            return StopReason.TARGET
        if self.max_passes is not None and passes >= self.max_passes:
            return StopReason.MAX_PASSES
        if self.max_time is not None and seconds >= self.max_time:
            return StopReason.TIME
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """w (D,) with F(w) = primal, the bound and its proof, why the solver stopped, and all iterations.

    state   from which the solver continues with another C (streamcut.solvers.state)
    raised  added to F for rounding
    """

    w: np.ndarray
    primal: float
    lower_bound: float
    proof: Cut
    reason: StopReason
    history: list[Iteration]
    state: Any = None
    raised: float = 0.0


class Saved(Protocol):
    """The state of a solver, as kept in a checkpoint."""

    def saved(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        """(numbers, arrays); views suffice."""


class Resumable(Saved, Protocol):
    """A solver's resource, such as an oracle, as kept in a checkpoint."""

    def restore(self, record: dict[str, object], stored: StoredCheckpoint) -> None:
        """Resume from what `saved` returned; `stored` has the arrays."""

    def release(self) -> None:
        """Release the pages of arrays that live in scratch files."""


@dataclass(slots=True)
class Progress:
    """Keeps the history, calls the observer, decides when to stop, and writes checkpoints.

    stop         polled; when it returns true, the run ends as interrupted
    checkpoints  where the state is saved between iterations; a checkpoint found there is resumed
    start        a solver's initial state instead of zero, if no checkpoint was found
    standstill   detects passes without progress
    started      time.monotonic() when the call began, from which limits count
    """

    rule: StoppingRule
    observe: Observer | None = None
    history: list[Any] = field(default_factory=list)
    stop: Callable[[], bool] = lambda: False
    checkpoints: Checkpoints | None = None
    start: Any = None
    standstill: Standstill = field(default_factory=Standstill)
    started: float = field(default_factory=time.monotonic)
    _resumed: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since the call began, without the time between a stop and its resumption."""
        return time.monotonic() - self.started

    @property
    def still(self) -> int:
        """Consecutive iterations without progress."""
        return self.standstill.still

    def resume(self, oracle: Resumable, record: type = Iteration) -> Any:
        """Take history, clock and the oracle's state from the checkpoint, if there is one; the solver restores its own.

        Returns the StoredCheckpoint, or else `start`. `record` is the record type of the history.
        """
        checkpoint = None if self.checkpoints is None else self.checkpoints.stored
        if checkpoint is not None:
            state = checkpoint.record["state"]
            with checkpoint.restoring():
                oracle.restore(state["oracle"], checkpoint)
                self.history = [record(*line) for line in state["history"]]
                self.standstill = Standstill(**state["standstill"])
                self.started -= state["seconds"]
            self._resumed = True
        return self.start if checkpoint is None else checkpoint

    def resumes(self, name: str) -> bool:
        """Whether a checkpoint was found whose solver has kept a number of this name."""
        checkpoint = None if self.checkpoints is None else self.checkpoints.stored
        if checkpoint is None:
            return False
        with checkpoint.restoring():
            return name in checkpoint.record["state"]["solver"]

    def hand_over(self) -> None:
        """Another method goes on: a checkpoint that was found has been taken up, passes without gain are forgotten."""
        self.standstill = Standstill()
        if self.checkpoints is not None:
            self.checkpoints.stored = None

    def resume_with(self, oracle: Resumable, state: Kept, record: type) -> bool:
        """The same, with the solver's `state`, too; returns whether there was a checkpoint."""
        checkpoint = self.resume(oracle, record)
        if checkpoint is not None:
            with checkpoint.restoring():
                state.restore(checkpoint.record["state"]["solver"], checkpoint)
        return checkpoint is not None

    def see(self, record: Any) -> None:
        """Append `record`, a Record, to the history, and show it."""
        self.history.append(record)
        if self.observe is not None:
            self.observe(record)

    def ended(self) -> StopReason | None:
        """Why a run without a gap must stop now: its time is over, or it was interrupted."""
        if self.rule.max_time is not None and self.seconds >= self.rule.max_time:
            return StopReason.TIME
        return StopReason.INTERRUPTED if self.stop() else None

    def measure_for(self, oracle: Any) -> StoppingRule:
        """Set the unit of mean losses in tolerances, known after the first pass; returns the rule."""
        self.rule = replace(self.rule, unit=oracle.unit, equal=oracle.equal)
        return self.rule

    def note(
        self, primal: float, lower_bound: float, step: float, cuts: int, oracle, values: Values, classes: str = "",
    ) -> StopReason | None:  # fmt: skip
        """Record an iteration of a solver on `oracle`; returns why to stop, or None.

        `values` holds the quantities that move; `classes` as in Iteration.
        The first call of a resumed run records nothing: this iteration is in the history already.
        """
        seconds = self.seconds
        c_bar = oracle.c_bar
        if self._resumed:
            self._resumed = False
            self.standstill.now = values
        else:
            self.standstill.see(values)
            self._record(primal, lower_bound, step, cuts, seconds, oracle, c_bar, classes)
        now = self.history[-1]
        reason = self.rule.reason(now.primal, now.lower_bound, c_bar, now.passes, seconds)
        if reason is None:
            reason = self.standstill.reason()
        return StopReason.INTERRUPTED if reason is None and self.stop() else reason

    def keep(self, state: Saved, oracle: Resumable) -> None:
        """Write a checkpoint if one is due."""
        if self.checkpoints is not None and self.checkpoints.due():
            self.save(state, oracle)

    def save(self, state: Saved, oracle: Resumable) -> None:
        """Write a checkpoint, if enabled."""
        if self.checkpoints is None:
            return
        solver, arrays = state.saved()
        asked, rows = oracle.saved()
        record = {
            "solver": solver,
            "oracle": asked,
            "history": [astuple(line) for line in self.history],
            "standstill": self.standstill.saved(),
            "seconds": self.seconds,
        }
        self.checkpoints.save(record, {**arrays, **rows}, oracle.release)

    def _record(
        self, primal: float, lower_bound: float, step: float, cuts: int, seconds: float, oracle, c_bar: float, classes: str
    ) -> None:
        traffic: Traffic = oracle.traffic
        share = traffic.rows_pinned / traffic.rows if traffic.rows else 0.0
        allowed = self.rule.tolerance(primal, c_bar)
        now = Iteration(
            len(self.history),
            oracle.passes,
            primal,
            lower_bound,
            primal - lower_bound,
            step,
            cuts,
            seconds,
            traffic.rows,
            traffic.nnz,
            traffic.bytes_read,
            share,
            traffic.bytes_computed,
            allowed.gap,
            allowed.rule,
            classes,
        )
        self.see(now)
