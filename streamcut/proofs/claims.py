"""What a model's record claims, compared with what its rows show: each difference is a readable clause."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamcut.foundation.rounding import UNSEEN
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.kernel import KernelModel
from streamcut.models.sequence import KernelSequenceModel

AGREEMENT = 1e-9  # relative: recorded and recomputed differ only by the order of their sums
_DRIFT = 1000.0  # scores that line searches move are off more than fresh ones: measured up to 7 times as much
_DID = 0.25  # of the worst-case allowance for rounding: actual rounding is at most this
_ALL_SEEN = {StopReason.MAX_PASSES, StopReason.TIME, StopReason.TARGET, StopReason.STALLED, StopReason.SAMPLES}
_ALL_SEEN |= {StopReason.SCALE, StopReason.IDLE}


@dataclass(frozen=True, slots=True)
class Proof:
    """What training found that took only the problem from the certificate, and at most the weights as a start.

    lower_bound  no weights can reach less
    least        the least objective that was found
    passes       through the data; 0 where the model's own dual variables are the proof
    """

    lower_bound: float
    least: float
    passes: int


@dataclass(frozen=True, slots=True)
class Verification:
    """What a fresh pass over `rows` rows found. None: not requested or not possible.

    primal         F at the model's weights
    c_bar, unit, equal  as in the certificate, from the rows; `doubts`: how far rounding in training may have moved them
    recorded       the certificate of the model, None when it has none
    witness_bound  for a kernel model, 0 when its coefficients are not feasible for these rows
    resolution     how far rounding may have moved the objective that was recomputed: sums can cancel out
    wrong          what else in the model does not follow from training on these rows
    trusted        what of the recorded bound is taken on trust, unless there is a `proof`
    proof          what training from the rows alone shows about the recorded bound
    classes        for one-vs-rest: the result for each class, in the order of the labels; the rest of this record, and of
                   `recorded`, is then their sum
    """

    rows: int
    same_data: bool
    primal: float
    mean_loss: float
    recorded: Certificate | None
    c_bar: float
    unit: float = 1.0
    equal: bool = False
    doubts: tuple[float, float] = (0.0, 0.0)
    witness_bound: float | None = None
    resolution: float = 0.0
    wrong: tuple[str, ...] = ()
    trusted: str = ""
    proof: Proof | None = None
    classes: tuple[Verification, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """What was refuted, one clause each."""
        if self.classes:
            each = (f"class {number}: {clause}" for number, one in enumerate(self.classes) for clause in one.problems)
            return (*self.wrong, *each)
        return self.wrong if self.recorded is None else (*self.wrong, *self._refuted(self.recorded))

    @property
    def consistent(self) -> bool:
        """The certificate is what this data and the model's witness give, and no check contradicts it."""
        return not self.problems

    @property
    def primal_agrees(self) -> bool | None:
        """None when the model has no certificate to compare with."""
        if self.classes:
            return None if self.recorded is None else all(each.primal_agrees for each in self.classes)
        if self.recorded is None:
            return None
        primal, raised = self.recorded.primal, self.recorded.raised
        if raised == math.inf:  # if rounding can move a loss by any factor, F is unknown
            return primal == math.inf
        return abs(primal - raised - self.primal) <= self.slack + _DID * raised

    @property
    def bound_agrees(self) -> bool | None:
        """None when the model has no witness to compare with."""
        if self.witness_bound is None or self.recorded is None:
            return None
        return abs(self.witness_bound - self.recorded.lower_bound) <= self.slack

    @property
    def proved(self) -> bool | None:
        """Whether the recorded bound is proved by the rows alone; None if that was not requested or there is none."""
        if self.classes:
            each = [one.proved for one in self.classes]
            return None if None in each else all(each)
        if self.proof is None or self.recorded is None:
            return None
        return self.recorded.lower_bound <= self.proof.lower_bound + self.slack

    @property
    def proved_gap(self) -> float | None:
        """How far above the optimum the model is at most, by the rows alone."""
        return None if self.proof is None else self.primal - self.proof.lower_bound

    @property
    def convergence_proved(self) -> bool:
        """Whether the rows alone show that the gap is within the tolerance."""
        if self.classes:
            return all(each.convergence_proved for each in self.classes)
        gap, c = self.proved_gap, self.recorded
        return gap is not None and c is not None and bool(c.tolerance.rule) and gap <= c.tolerance.gap

    @property
    def slack(self) -> float:
        """The error allowed in recorded numbers."""
        return AGREEMENT * self.primal + 2.0 * self.resolution + UNSEEN

    @property
    def overstated(self) -> bool:
        """Whether far more was added to the recorded objective for rounding than a pass over these rows explains.

        It is still valid, but looser than need be: line searches far beyond the scored points leave such objectives.
        """
        raised = 0.0 if self.recorded is None else self.recorded.raised
        return raised > _DRIFT * self.resolution + AGREEMENT * self.primal + UNSEEN

    def _refuted(self, c: Certificate) -> Iterator[str]:
        if not self.primal_agrees:
            put = f" (including {c.raised:.3g} added for rounding)" if c.raised > self.slack else ""
            yield f"the objective is {self.primal:.10g}, not {c.primal:.10g}{put}"
        if self.bound_agrees is False:
            yield f"its proof gives a lower bound of {self.witness_bound:.10g}, not {c.lower_bound:.10g}"
        if not c.lower_bound <= self.primal + self.slack:
            yield f"the lower bound {c.lower_bound:.10g} is above the objective {self.primal:.10g}"
        if not math.isclose(c.c_bar, self.c_bar, rel_tol=AGREEMENT, abs_tol=self.doubts[0]):
            yield f"C times the sum of weights is {self.c_bar:.10g}, not {c.c_bar:.10g}"
        if not math.isclose(c.unit, self.unit, rel_tol=AGREEMENT, abs_tol=self.doubts[1]):
            yield f"the unit of mean losses is {self.unit:.10g}, not {c.unit:.10g}"
        if c.equal and not self.equal:
            yield "targets are not all equal, as it says"
        yield from self._of_stopping(c)
        if self.proof is not None and self.proof.least < c.lower_bound - self.slack:
            yield f"weights were found that reach {self.proof.least:.10g}, below the lower bound {c.lower_bound:.10g}"

    def _of_stopping(self, c: Certificate) -> Iterator[str]:
        """Whether training could stop as recorded: a gap within the tolerance precedes all other reasons."""
        allowed = c.tolerance
        if c.converged is not (c.stop_reason is StopReason.CONVERGED):
            yield f"it says {'' if c.converged else 'not '}converged, and that training ended because {c.stop_reason.because}"
        elif c.converged and not (allowed.rule and c.gap <= allowed.gap + AGREEMENT * c.primal):
            yield f"it says converged, but the gap is {c.gap:.4g} with {allowed.gap:.4g} allowed"
        elif c.stop_reason in _ALL_SEEN and allowed.rule and c.gap < allowed.gap - AGREEMENT * c.primal:
            yield f"the gap {c.gap:.4g} is within the tolerance of {allowed.gap:.4g}, but it does not say converged"


def trusted_of(model: Any) -> str:
    """What a fresh pass does not prove about the recorded bound; "" for nothing."""
    if isinstance(model, KernelModel):
        return ""
    if isinstance(model, KernelSequenceModel):
        return "that the transitions are those of the labellings behind its dual variables"
    return "that the plane behind its lower bound lies below the objective (--prove makes a bound without it)"
