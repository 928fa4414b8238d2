"""Accelerated dual ascent: the start and step length of the next pass, and the guard that ends acceleration where it stalls.

For a single lane. Plain coordinate steps move the share of a row by (1 − z)/(C u ‖x‖²) at most: with a large C, or long rows, a
share takes tens of passes to reach its value. The steps of accelerated coordinate descent (APPROX, Fercoq & Richtárik 2015,
algorithm 2) grow, at a point y that moves less and less. In terms of weights, with a decreasing σ, a pass is

    for every row: its share f to the maximum of the dual for σC along it, at y; y follows, by σC u Δf a
    y ← y + (1 − e^−σ)(w(f) − y);   σ ← 2σ/(2 + σ)

where w(f) are the weights of the shares. (The original moves y towards w(f) at every step, not once a pass.) Sweeps
over cached rows, a random sample of the free ones, continue the steps of their pass. y is close to a mean of all w(f), and a
good primal point; the shares are a good dual point long before their means are. No bound depends on any of this.

Neither kind is always faster: accelerated passes
crawl on separable rows, plain ones with many features and a large C. So a guard switches between them. The dual of smooth
losses is strongly concave: plain passes converge linearly, accelerated ones, whose σ falls, do not. So their passes are plain
at first, and stay so where the first one leaves a tenth of the gap (rows hardly see each other) and any two at most 0.4 of it.
If C is so small that σ starts at 1, all passes are plain. Plain passes solve for cached rows at once, if features are few
(streamcut.oracles.interior), and the resulting weights are scored next: with smooth losses, and such a C, once passes were slow.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_WINDOW, _LEAST = 4, 8  # passes by which a kind is judged; its least number
# Of the gap, by the first plain pass with a smooth loss (0.03 and less with text, 0.09 and less dna, 0.06 to 0.7 a9a, which
# acceleration suits), and by any two
_FIRST, _LEFT = 0.1, 0.4


@dataclass(slots=True)
class Guard:
    """The other kind takes over when four passes leave more than (1 − 4/k) of the gap, after k passes of a kind: slower than 1/k.

    Accelerated passes at their best leave (1 − 4/k)². Plain passes of a smooth loss may leave no more than _FIRST,
    then _LEFT in two.

    first   σ of the first accelerated pass; 1: there are none
    plain   whether the next pass is plain
    gaps    after each pass of this kind, the first one after the pass before it
    smooth  whether the loss is
    tried   whether a kind was slow
    steady  the kind never changes
    """

    first: float
    plain: bool
    gaps: list[float] = field(default_factory=list)
    smooth: bool = False
    tried: bool = False
    steady: bool = False

    @property
    def solves(self) -> bool:
        """Whether the next pass solves for cached rows at once."""
        return self.plain and (self.tried or (self.first < 1.0 and not self.smooth))

    def hands_over(self, gap: float) -> bool:
        """After a pass that left this gap: whether the next one is of the other kind."""
        if self.steady:
            return False
        self.gaps.append(gap)
        k = len(self.gaps)
        least, window, left = _LEAST, _WINDOW, 1.0 - _WINDOW / k
        if self.plain and self.smooth and self.first < 1.0:
            least, window, left = (3, 2, _LEFT) if k > 2 or self.tried else (2, 1, _FIRST)
        if k < least or gap <= left * self.gaps[-1 - window]:
            return False
        self.tried = True
        if self.first == 1.0:
            return False
        self.gaps, self.plain = [gap], not self.plain
        return True
