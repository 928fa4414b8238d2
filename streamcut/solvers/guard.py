"""Which of two kinds of passes is next: accelerated or plain ones. Neither is the faster one everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field

_WINDOW, _LEAST = 4, 8  # passes that a kind is judged by; that it has at least


@dataclass(slots=True)
class Guard:
    """One kind takes over where four passes have left more of the gap than (1 − 4/k), k passes since it began: slower than 1/k.

    Accelerated passes at their best leave (1 − 4/k)².

    first  σ with which accelerated passes begin; 1: there are none
    plain  whether the next pass is plain
    gaps   after each pass of this kind, the first of them after the one before it
    """

    first: float
    plain: bool
    gaps: list[float] = field(default_factory=list)

    def hands_over(self, gap: float) -> bool:
        """After a pass, with the gap that it left: whether the next one is of the other kind."""
        if self.first == 1.0:
            return False
        self.gaps.append(gap)
        k = len(self.gaps)
        if k < _LEAST or gap <= (1.0 - _WINDOW / k) * self.gaps[-1 - _WINDOW]:
            return False
        self.gaps, self.plain = [gap], not self.plain
        return True
