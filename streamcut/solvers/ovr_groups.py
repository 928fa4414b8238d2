"""One-vs-rest, a group of classes after the other, where memory does not hold all of them at once.

Problem   that of streamcut.solvers.ovr.
Given     groups of classes, the oracle of each, a bundle size, a stopping rule.
Returns   weights and proofs of all classes.
Stops     a group as solvers.ovr does; limits on passes are for each group, the limit on time is for all of them.

    for each group
        the passes of solvers.ovr, from the start; weights and proofs of its classes are set aside

Classes share nothing but passes, so each gets what it would get beside all others, to the last bit; but for row caches, whose
rows are chosen, and visited in an order, for all classes of a group. What an iteration reports are sums over all classes; those
that have not begun are at w = 0 with the bound 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.bundle.bundle import BundleSize
from streamcut.execution.feed import Traffic
from streamcut.execution.runner import Interrupted
from streamcut.fields import expect_like, expect_lines
from streamcut.models.certificate import StopReason, Witness
from streamcut.models.checkpoint import Checkpoints, StoredCheckpoint
from streamcut.oracles.ovr import OvrOracle
from streamcut.rounding import CutError
from streamcut.solvers import ovr
from streamcut.solvers.ovr import ClassLine, Method, OvrSolution
from streamcut.solvers.progress import Iteration, Progress
from streamcut.solvers.warm_start import Origin

_LIMITS = (StopReason.TIME, StopReason.INTERRUPTED)  # these end all groups


@dataclass(slots=True)
class GroupsSolution:
    """Of all classes: weights `W` (D, K), `slopes` (K, D) of their proofs, and `lines`. `total_weight` is M."""

    W: np.ndarray
    slopes: np.ndarray
    lines: list[ClassLine]
    total_weight: float
    history: list[Iteration]

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        errors = (CutError(line.slope_error, line.offset_error) for line in self.lines)
        return tuple(Witness(a, line.offset, error) for a, line, error in zip(self.slopes, self.lines, errors, strict=True))


@dataclass(slots=True)
class _Done:
    """What is set aside: `lines` by class, `passes` by the first class of its group; `all_passes` and `traffic` of all groups.

    total_weight, loss_at_zero   M, and Σ u_i ℓ_i of a class at w = 0, once a group has begun
    """

    W: np.ndarray
    slopes: np.ndarray
    total_weight: float = 0.0
    loss_at_zero: float = 0.0
    lines: dict[int, ClassLine] = field(default_factory=dict)
    passes: dict[int, int] = field(default_factory=dict)
    all_passes: int = 0
    traffic: Traffic = field(default_factory=Traffic)

    def take(self, group: range, found: OvrSolution, oracle: OvrOracle) -> None:
        for k, own, reason in zip(group, found.state.classes, found.reasons, strict=True):
            self.W[:, k], self.slopes[k] = own.best.w, own.witness.a
            self.lines[k] = ClassLine.of(own, reason)
        self.passes[group.start] = oracle.passes
        self.count(oracle)

    def count(self, oracle: OvrOracle) -> None:
        """What a group has read."""
        self.all_passes += oracle.passes
        self.traffic += oracle.traffic

    def stands(self, group: range, max_passes: int | None) -> bool:
        """Whether nothing is left to do for `group`: a limit on passes may be another one now."""
        lines = [self.lines.get(k) for k in group]
        if None in lines:
            return False
        limited = any(line is not None and line.reason == StopReason.MAX_PASSES.value for line in lines)
        return not limited or (max_passes is not None and self.passes[group.start] >= max_passes)

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers = {
            "lines": {str(k): list(line) for k, line in self.lines.items()},
            "passes": {str(first): count for first, count in self.passes.items()},
            "all_passes": self.all_passes,
            "traffic": astuple(self.traffic),
            "total_weight": self.total_weight,
            "loss_at_zero": self.loss_at_zero,
        }
        return numbers, {"done.W": self.W, "done.slopes": self.slopes}

    def restore(self, numbers: dict[str, Any], found: StoredCheckpoint) -> None:
        """What `saved` gave. Raises ValueError, LookupError, TypeError for what is none."""
        floats = dict.fromkeys(("total_weight", "loss_at_zero"), 0.0)
        kinds = {"lines": None, "passes": None, "all_passes": 0, "traffic": astuple(Traffic()), **floats}
        expect_like({**numbers, "lines": None, "passes": None}, kinds, "done")
        K = len(self.slopes)
        for name, line in numbers["lines"].items():
            if not 0 <= int(name) < K or len(line) != len(ClassLine._fields):
                raise ValueError(f"class {name} of {K}")
            *values, reason = line
            if not all(isinstance(value, int | float) and math.isfinite(value) for value in values):
                raise ValueError(f"class {name} has no numbers")
            self.lines[int(name)] = ClassLine._make([*map(float, values), StopReason(reason).value])
        for name, count in numbers["passes"].items():
            if type(count) is not int or count < 0:
                raise ValueError(f"{count!r} passes")
            self.passes[int(name)] = count
        self.all_passes, self.traffic = numbers["all_passes"], Traffic(*numbers["traffic"])
        self.total_weight, self.loss_at_zero = numbers["total_weight"], numbers["loss_at_zero"]
        found.read_into("done.W", self.W)
        found.read_into("done.slopes", self.slopes)


class _Keeper:
    """The checkpoints of a run as one of its groups sees them: the state of the group, beside what is set aside."""

    def __init__(self, run: Checkpoints, beside: Callable[[], tuple[dict, dict]], found: StoredCheckpoint | None) -> None:
        self._run, self._beside, self.found = run, beside, found

    def due(self, iteration: int) -> bool:
        return self._run.due(iteration)

    def save(self, state: dict[str, Any], arrays: Mapping[str, np.ndarray], after: Callable[[], None]) -> None:
        numbers, more = self._beside()
        self._run.save({**state, "groups": numbers}, {**arrays, **more}, after)


@dataclass(slots=True)
class GroupsRun:
    """Trains `groups` of classes for one C. `oracle_of` gives a fresh oracle of a group's classes; `origins` are those of all."""

    groups: Sequence[range]
    oracle_of: Callable[[range], OvrOracle]
    method: Method
    cuts: BundleSize
    C: float
    features: int
    progress: Progress
    origins: Sequence[Origin] | None = None
    passes_before: int = 0
    _done: _Done = field(init=False)
    _oracle: OvrOracle | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        K, D = self.groups[-1].stop, self.features
        self._done = _Done(np.zeros((D, K)), np.zeros((K, D)), all_passes=self.passes_before)

    def solve(self, *, keep: bool = False) -> GroupsSolution:
        """Run all groups. `keep`: leave a checkpoint at the end even when all converged.

        Raises Interrupted before there is a solution.
        """
        done, progress = self._done, self.progress
        found, going_on = self._restored()
        last = StopReason.CONVERGED
        for group in sorted(self.groups, key=lambda group: group.start != going_on):  # while its checkpoint is there
            if done.stands(group, progress.rule.max_passes):
                continue
            last = self._train(group, found if going_on == group.start else None)
            if last in _LIMITS:
                self._leave(last)
                return self._solution()
        if keep and last is StopReason.CONVERGED and progress.checkpoints is not None:
            self._save(self.groups[-1].stop)
        return self._solution()

    def _train(self, group: range, found: StoredCheckpoint | None) -> StopReason:
        """Set aside what comes out for `group`; returns why it ended."""
        done, run = self._done, self.progress
        self._oracle = oracle = self.oracle_of(group)
        first = f"{group.start + 1}–" if len(group) > 1 else ""
        names = f"{first}{group.stop} of {self.groups[-1].stop}"
        keeper: Any = run.checkpoints and _Keeper(run.checkpoints, lambda: self._beside(group.start), found)
        own = Progress(
            run.rule, lambda line: self._note(group, names, line), stop=run.stop, checkpoints=keeper, _started=run._started
        )
        if found is None and self.origins is not None:
            origins = self.origins[group.start : group.stop]
            own.start = self.method.begin(oracle, self.cuts, run.rule, origins=origins)
        try:
            solution = ovr.solve(oracle, own, self.method, self.cuts)
        except Interrupted:
            if not done.lines:
                raise
            done.count(oracle)
            if run.checkpoints is not None:
                self._save(group.start)
            return StopReason.INTERRUPTED
        finally:
            run._started = own._started
            self._oracle = None
        self._begun(oracle)
        done.take(group, solution, oracle)
        return solution.reason

    def _begun(self, oracle: OvrOracle) -> None:
        self._done.total_weight, self._done.loss_at_zero = oracle.total_weight, oracle.loss_at_zero

    def _leave(self, reason: StopReason) -> None:
        """Classes that have not begun stay at w = 0."""
        zero = self._zero
        for k in range(self.groups[-1].stop):
            self._done.lines.setdefault(k, ClassLine(zero, 0.0, 0.0, 0.0, 0.0, 0.0, reason.value))

    def _solution(self) -> GroupsSolution:
        done = self._done
        lines = [done.lines[k] for k in range(self.groups[-1].stop)]
        return GroupsSolution(done.W, done.slopes, lines, done.total_weight, self.progress.history)

    def _note(self, group: range, names: str, line: Iteration) -> None:
        """Record an iteration of a group as one of the run: sums over all classes, and totals so far."""
        done, run = self._done, self.progress
        assert self._oracle is not None
        self._begun(self._oracle)
        others = [known for k, known in done.lines.items() if k not in group]
        waiting = self.groups[-1].stop - len(group) - len(others)
        primal = line.primal + sum(known.primal for known in others) + waiting * self._zero
        bound = line.lower_bound + sum(known.bound for known in others)
        before, rows = done.traffic, done.traffic.rows + line.rows
        whole = replace(
            line,
            iteration=len(run.history),
            passes=done.all_passes + line.passes,
            primal=primal,
            lower_bound=bound,
            gap=primal - bound,
            rows=rows,
            nnz=before.nnz + line.nnz,
            bytes_read=before.bytes_read + line.bytes_read,
            bytes_computed=before.bytes_computed + line.bytes_computed,
            cached_share=(before.rows_pinned + line.cached_share * line.rows) / rows if rows else 0.0,
            classes=names,
        )
        run.history.append(whole)
        if run.observe is not None:
            run.observe(whole)

    @property
    def _zero(self) -> float:
        """F of a class at w = 0."""
        return self.C * self._done.loss_at_zero

    def _beside(self, number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What a checkpoint keeps beside the state of the group whose first class is `number`."""
        numbers, arrays = self._done.saved()
        return {"first": number, "history": [astuple(line) for line in self.progress.history], "done": numbers}, arrays

    def _save(self, number: int) -> None:
        """A checkpoint between two groups."""
        assert self.progress.checkpoints is not None
        numbers, arrays = self._beside(number)
        self.progress.checkpoints.save({"groups": numbers, "seconds": self.progress.seconds}, arrays, lambda: None)

    def _restored(self) -> tuple[StoredCheckpoint | None, int | None]:
        """Take what a checkpoint has set aside; returns it, and the first class of the group that goes on from it."""
        found = None if self.progress.checkpoints is None else self.progress.checkpoints.found
        if found is None:
            return None, None
        state = found.record["state"]
        with found.restoring():
            own = state["groups"]
            expect_like(own["first"], 0, "first")
            expect_like(state["seconds"], 0.0, "seconds")
            self._done.restore(own["done"], found)
            self.progress.history = [Iteration(*line) for line in expect_lines(own["history"], Iteration, "history")]
            self.progress._started = time.monotonic() - state["seconds"]
        return found, own["first"] if "solver" in state else None
