"""The choice between accelerated and plain passes. Neither kind is always faster."""

from __future__ import annotations

from dataclasses import dataclass, field

_WINDOW, _LEAST = 4, 8  # passes by which a kind is judged; its least number


@dataclass(slots=True)
class Guard:
    """The other kind takes over when four passes leave more than (1 − 4/k) of the gap, after k passes of a kind: slower than 1/k.

    Accelerated passes at their best leave (1 − 4/k)².

    first  σ of the first accelerated pass; 1: there are none
    plain  whether the next pass is plain
    gaps   after each pass of this kind, the first one after the pass before it
    """

    first: float
    plain: bool
    gaps: list[float] = field(default_factory=list)

    def hands_over(self, gap: float) -> bool:
        """After a pass that left this gap: whether the next one is of the other kind."""
        if self.first == 1.0:
            return False
        self.gaps.append(gap)
        k = len(self.gaps)
        if k < _LEAST or gap <= (1.0 - _WINDOW / k) * self.gaps[-1 - _WINDOW]:
            return False
        self.gaps, self.plain = [gap], not self.plain
        return True
