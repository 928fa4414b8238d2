"""Standstill of a bundle method: rounding, a bundle that is too small, or only a slow stretch.

A pass that moves neither F(w_b) nor the value of the master problem gained nothing. The reported bound tells less: it may be an
older, better one (a model's witness, another C's) that the bundle has not reached yet. A few such passes in a row are no
proof: a cut taken at the master's solution always raises its value, but by as little as gap²/(8‖C̄a‖²).

    rounding    F and bound were moved apart for rounding; the rest of the gap is no
                more than that
    scale       the rest of the gap is no more than that of the master problem, which all available digits cannot solve
    the bundle  it is full, and merges cuts that it still needs; reported only after many such passes. Where it is not full, the
                next passes would be no different: scale
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.models.certificate import StopReason

_MOVES = 1e-15  # of F: the least fall of F, or rise of the master's value, that counts
_SOLVED = 1e-12  # of F: a gap within rounding
_SOME, _MANY = 5, 50  # passes without gain: until rounding is checked; until the bundle, or else the scale, is to blame


@dataclass(frozen=True, slots=True)
class Standing:
    """The progress of a method: F(w_b), the master problem's value and the gap left in it; `full`: its bundle merges cuts.

    error: by which both were moved apart for rounding (streamcut.foundation.rounding). unproved: the excess of the reported gap,
    to the best bound, over twice the rounding in it.
    Values of different `stage` are not comparable: they belong to another C, or to other problems.
    """

    primal: float
    value: float
    qp_gap: float
    error: float
    full: bool
    stage: float = 0.0
    unproved: float = 0.0

    @classmethod
    def of_all(cls, parts: Iterable[Standing]) -> Standing:
        """The progress of several problems together."""
        all_ = list(parts)
        numbers = np.array([(part.primal, part.value, part.qp_gap, part.error) for part in all_])
        primal, value, qp_gap, error = numbers.reshape(-1, 4).sum(axis=0).tolist()
        unproved = max((part.unproved for part in all_), default=0.0)
        return cls(primal, value, qp_gap, error, any(part.full for part in all_), float(len(all_)), unproved)

    @property
    def rounding(self) -> bool:
        """Whether the gap, and the reported one as well, is within rounding."""
        return self.primal - self.value <= 2.0 * self.error and self.unproved <= 0.0

    @property
    def unsolved(self) -> bool:
        """Whether the gap is within rounding plus the effect of the master problem's gap."""
        return self.primal - self.value <= 2.0 * (self.error + self.qp_gap)


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
        if self.now is None or self.still < _SOME:
            return None
        if self.now.rounding:
            return StopReason.STALLED
        if self.now.unsolved:
            small = _SOLVED * abs(self.now.primal)
            resolved = self.now.primal - self.now.value <= small and self.now.unproved <= small
            return StopReason.STALLED if resolved else StopReason.SCALE
        if self.still < _MANY:
            return None
        return StopReason.BUNDLE if self.now.full else StopReason.SCALE

    def saved(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"still": self.still, "primal": self.primal, "value": self.value, "stage": self.stage}
