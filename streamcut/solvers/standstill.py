"""Standstill: passes that move neither F(w_b) nor the value of the master problem.

The reported bound tells less: it may be an older, better one (a model's witness, another C's) that the bundle has not reached
yet. A cut taken at the master's solution always raises its value, but by as little as gap²/(8‖C̄a‖²): a few passes are no proof.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from streamcut.models.certificate import StopReason

_MOVES = 1e-15  # of F: the least fall of F, or rise of the master's value, that counts
_PASSES = 10  # without either


@dataclass(frozen=True, slots=True)
class Standing:
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
    def of_all(cls, parts: Iterable[Standing], stage: float) -> Standing:
        """The progress of several problems together."""
        all_ = list(parts)
        primal, value, error = (sum(getattr(part, name) for part in all_) for name in ("primal", "value", "error"))
        return cls(primal, value, error, max((part.unproved for part in all_), default=0.0), stage)

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
    now: Standing | None = None

    def see(self, now: Standing) -> None:
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
