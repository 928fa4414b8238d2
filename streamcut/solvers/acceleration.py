"""Accelerated dual ascent: the start and step length of the next pass, and the guard that ends acceleration where it stalls.

For a single lane. Plain coordinate steps move the share of a row by (1 − z)/(C u ‖x‖²) at most: with a large C, or long rows, a
share takes tens of passes to reach its value. The steps of accelerated coordinate descent (APPROX, Fercoq & Richtárik 2015,
algorithm 2) grow, at a point y that moves less and less. In terms of weights, with a decreasing σ, a pass is

    for every row: its share f to the maximum of the dual for σC along it, at y; y follows, by σC u Δf a
    y ← y + (1 − e^−σ)(w(f) − y);   σ ← 2σ/(2 + σ)

where w(f) are the weights of the shares. (The original moves y towards w(f) at every step, not once a pass.) Sweeps
over cached rows, a random sample of the free ones, continue the steps of their pass. y is close to a mean of all w(f), and a
good primal point; the shares are a good dual point long before their means are. With an elastic net y and w(f) are points v
of the dual, and weights are computed from them on reading. Both cuts of a pass enter the bundle as usual, so no bound depends
on any of this.

A plain pass starts from the master problem's mixture with σ = 1. Neither kind is always faster: accelerated passes
crawl on separable rows, plain ones with many features and a large C. So a guard switches between them. The dual of smooth
losses is strongly concave: plain passes converge linearly, accelerated ones, whose σ falls, do not. So their passes are plain
at first, and stay so where the first one leaves a tenth of the gap (rows hardly see each other) and any two at most 0.4 of it.
If C is so small that σ starts at 1, all passes are plain. Otherwise plain passes solve for cached rows at once, if features are
few (streamcut.oracles.dual.interior), and the resulting weights are scored next, in place of the master problem's: they are
better where most rows that matter are cached.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.dual.ascent import DualOracle
from streamcut.oracles.dual.passes import Ascent
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState

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
    tried   whether both kinds were
    steady  the kind never changes
    """

    first: float
    plain: bool
    gaps: list[float] = field(default_factory=list)
    smooth: bool = False
    tried: bool = False
    steady: bool = False

    def hands_over(self, gap: float) -> bool:
        """After a pass that left this gap: whether the next one is of the other kind."""
        if self.first == 1.0 or self.steady:
            return False
        self.gaps.append(gap)
        k = len(self.gaps)
        least, window, left = _LEAST, _WINDOW, 1.0 - _WINDOW / k
        if self.plain and self.smooth:
            least, window, left = (3, 2, _LEFT) if k > 2 or self.tried else (2, 1, _FIRST)
        if k < least or gap <= left * self.gaps[-1 - window]:
            return False
        self.gaps, self.plain, self.tried = [gap], not self.plain, True
        return True


@dataclass(slots=True)
class Course:
    """`state`, and the kind of the next pass from it.

    guard    selects the kind: a plain pass starts from the master problem's mixture, with σ = 1
    stretch  σ of the next accelerated pass; 0: it is the first of its run, and also starts from that mixture
    """

    state: BundleState
    guard: Guard
    stretch: float = 0.0

    @classmethod
    def at(cls, state: BundleState, oracle: DualOracle) -> Course:
        """The course from a state without a history of passes."""
        first = oracle.first_stretch if oracle.accelerated else 1.0
        smooth = oracle.smooth
        return cls(state, Guard(first, first == 1.0 or smooth, [state.F_b - state.value] if smooth else [], smooth))

    def next(self, ascent: Ascent, oracle: DualOracle) -> Ascent:
        """The next pass; `ascent` is the plain one."""
        if self.guard.plain:
            return replace(ascent, at_once=oracle.first_stretch < 1.0)
        bundle = self.state.bundle
        stretch, mixture = (self.stretch, bundle.newest()) if self.stretch > 0.0 else (self.guard.first, ascent.mixture)
        value = stretch * bundle.c_bar * bundle.offset(mixture) - 0.5 * vectors.dot(ascent.w, ascent.w)
        return replace(ascent, mixture=mixture, stretch=stretch, enough=stretch * ascent.enough, value=value)

    def advance(self, ascent: Ascent, shares: np.ndarray, oracle: DualOracle, *, stuck: bool) -> None:
        """Update after `ascent`, which ended with the weights (v) of `shares`, and the master problem.

        If passes are `stuck` the next one starts from the mixture.
        """
        # by the bound that these passes have proved: one known before them does not move
        if self.guard.hands_over(self.state.F_b - self.state.value):
            self.stretch = 0.0
            return
        if self.guard.plain:
            if oracle.solved is not None and self.state.k > 0.0:  # else a cut at the mixture's own w must raise its value
                self.state.w = oracle.solved
            return
        if stuck:
            self.stretch = 0.0
            return
        y, s = oracle.reached, self.state
        assert y is not None
        if s.penalty.free:
            shares[-1] += ascent.running[-1]  # steps pull the intercept away from their start
        y += -math.expm1(-ascent.stretch) * (shares - y)
        s.v, s.w = y, s.penalty.weights(y)
        self.stretch = 2.0 * ascent.stretch / (2.0 + ascent.stretch)

    def move_to(self, C: float, penalty: L2, oracle: DualOracle, rule: StoppingRule) -> None:
        """Continue with another C and penalty."""
        self.state.move_to(C, penalty, oracle, rule)
        self.guard, self.stretch = Course.at(self.state, oracle).guard, 0.0

    @classmethod
    def restored(cls, found: StoredCheckpoint | Course | BundleState, oracle: DualOracle) -> Course:
        """The saved course, bit for bit; a new one from another run's state. A Course is returned as is.

        Raises CorruptError for anything else.
        """
        if isinstance(found, Course):
            return found
        state = BundleState.restored(found, oracle)
        course = cls.at(state, oracle)
        if isinstance(found, BundleState):
            return course
        with found.restoring():
            own = found.record["state"]["solver"]["course"]
            return cls(state, Guard(**own["guard"]), own["stretch"])

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        numbers, arrays = self.state.saved()
        return {**numbers, "course": self._saved()}, arrays

    def _saved(self) -> dict[str, Any]:
        return {"guard": asdict(self.guard), "stretch": self.stretch}
