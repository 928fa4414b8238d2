"""When a bundle method gets no further: whether that is rounding, a bundle that is too small, or only a slow stretch.

A pass that moves neither F(w_b) nor the value of the master problem brought nothing. The reported bound says less: it may be an
older, better one (a model's witness, another C's) that the bundle has yet to catch up with. A few such passes in a row are no
proof of anything: a cut taken at the master's solution always raises its value, but by as little as gap²/(8‖C̄a‖²).

    rounding    F and bound were moved apart for what rounding may have done to them; what is left of the gap without that is no
                more than it
    scale       what is left of the gap is no more than that of the master problem, which all digits there are cannot solve
    the bundle  it is full, and merges cuts that it still needs; said after many such passes only
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.models.certificate import StopReason

_MOVES = 1e-15  # of F: by more than this F falls, or the master's value rises
_SOLVED = 1e-12  # of F: a gap that is rounding
_SOME, _MANY = 5, 50  # passes that bring nothing: until rounding is looked for; until the bundle is to blame


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a method stands: F(w_b), the master problem's value and the gap left in it; `full`: its bundle merges cuts.

    error: by so much both were moved apart for rounding (streamcut.foundation.rounding). unproved: what the reported gap, to the
    best bound, is more than twice the rounding in it.
    Values of different `stage` don't compare: they are of another C, or of other problems.
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
        """Of several problems at once."""
        all_ = list(parts)
        numbers = np.array([(part.primal, part.value, part.qp_gap, part.error) for part in all_])
        primal, value, qp_gap, error = numbers.reshape(-1, 4).sum(axis=0).tolist()
        unproved = max((part.unproved for part in all_), default=0.0)
        return cls(primal, value, qp_gap, error, any(part.full for part in all_), float(len(all_)), unproved)

    @property
    def rounding(self) -> bool:
        """Whether the gap is no more than rounding may make of it, and the reported one as well."""
        return self.primal - self.value <= 2.0 * self.error and self.unproved <= 0.0

    @property
    def unsolved(self) -> bool:
        """Whether the gap is no more than that, and what the master problem's may make of it."""
        return self.primal - self.value <= 2.0 * (self.error + self.qp_gap)


@dataclass(slots=True)
class Standstill:
    """Counts passes that bring nothing: `still` of them since `primal` was lower or `value` higher, at `stage`."""

    still: int = 0
    primal: float = 0.0
    value: float = 0.0
    stage: float | None = None
    now: Standing | None = None

    def see(self, now: Standing) -> None:
        """After another pass."""
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
        return StopReason.BUNDLE if self.now.full and self.still >= _MANY else None

    def saved(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {"still": self.still, "primal": self.primal, "value": self.value, "stage": self.stage}
