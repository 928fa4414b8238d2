"""Accelerated dual ascent: where the next pass starts, and how long its steps are; and the guard that ends it where it stalls.

In one lane. Plain coordinate steps move the share of a row by (1 − z)/(C u ‖x‖²) at most: with a large C, or long rows, it takes
tens of passes until a share is where it belongs. Those of accelerated coordinate descent (APPROX, Fercoq & Richtárik 2015,
algorithm 2) become longer and longer, at a point y that moves less and less. In terms of weights, with a σ that falls, a pass is

    for every row: its share f to the maximum of the dual for σC along it, at y; y moves along, by σC u Δf a
    y ← y + (1 − e^−σ)(w(f) − y);   σ ← 2σ/(2 + σ)

where w(f) are the weights that all shares amount to. (The original moves y towards w(f) at every step, not once a pass.) Sweeps
over cached rows, a random sample of the free ones, go on with the steps of their pass. y is close to a mean of all w(f), and a
good primal point; the shares are a good dual point long before their own means are. Under an elastic net y and w(f) are points v
of the dual, and weights are made of them where they are read. Both cuts of a pass enter the bundle as ever, so no bound depends
on any of this.

A plain pass starts from the master problem's mixture with σ = 1. Neither kind is the faster one everywhere: accelerated passes
crawl where rows can be separated, plain ones where features are many and C is large. So a guard lets one take over from the other
(streamcut.solvers.guard). With a C so small that σ is 1 at first all passes are plain. Where it is not, plain passes solve for
cached rows at once, if features are few (streamcut.oracles.dual.interior), and the weights that do are scored next, in place of
the master problem's: where most rows that matter are cached they are the better ones.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.foundation.fields import expect_like
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.oracles.dual.passes import Ascent
from streamcut.solvers.guard import Guard
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState


@dataclass(slots=True)
class Course:
    """`state`, and of what kind the next pass is that goes on from it.

    guard    says which kind it is: a plain pass starts from the master problem's mixture, with σ = 1
    stretch  σ of the next accelerated pass; 0: it is the first of its run, and starts from that mixture, too
    """

    state: BundleState
    guard: Guard
    stretch: float = 0.0

    @classmethod
    def at(cls, state: BundleState, oracle: DualAscent) -> Course:
        """Nothing is known yet of how passes go on from here."""
        first = oracle.first_stretch if oracle.accelerated else 1.0
        return cls(state, Guard(first, first == 1.0))

    def next(self, ascent: Ascent, oracle: DualAscent) -> Ascent:
        """What the next pass is, of which the plain one is `ascent`."""
        if self.guard.plain:
            return replace(ascent, at_once=oracle.first_stretch < 1.0)
        bundle = self.state.bundle
        stretch, mixture = (self.stretch, bundle.newest()) if self.stretch > 0.0 else (self.guard.first, ascent.mixture)
        value = stretch * bundle.c_bar * bundle.offset(mixture) - 0.5 * vectors.dot(ascent.w, ascent.w)
        return replace(ascent, mixture=mixture, stretch=stretch, enough=stretch * ascent.enough, value=value)

    def advance(self, ascent: Ascent, shares: np.ndarray, oracle: DualAscent, *, stuck: bool) -> None:
        """After `ascent`, which ended with the weights (v) of these `shares`, and the master problem.

        Where passes are `stuck` the next one starts from the mixture.
        """
        # by what these passes themselves have proved: a bound that was known before them does not move
        if self.guard.hands_over(self.state.F_b - self.state.value):
            self.stretch = 0.0
            return
        if self.guard.plain:
            if oracle.solved is not None and self.state.k > 0.0:  # else a cut at the mixture's own w has to raise its value
                self.state.w = oracle.solved
            return
        if stuck:
            self.stretch = 0.0
            return
        y, s = oracle.reached, self.state
        assert y is not None
        if s.penalty.free:
            shares[-1] += ascent.running[-1]  # steps pull the intercept away from where they begin
        y += -math.expm1(-ascent.stretch) * (shares - y)
        s.v, s.w = y, s.penalty.weights(y)
        self.stretch = 2.0 * ascent.stretch / (2.0 + ascent.stretch)

    def move_to(self, C: float, penalty: L2, oracle: DualAscent, rule: StoppingRule) -> None:
        """Go on with another C and penalty."""
        self.state.move_to(C, penalty, oracle, rule)
        self.guard, self.stretch = Course.at(self.state, oracle).guard, 0.0

    @classmethod
    def restored(cls, found: StoredCheckpoint | Course | BundleState, oracle: DualAscent) -> Course:
        """What was saved, to the last bit; of another run's state that begins here. A course is itself.

        Raises CorruptError for what is none.
        """
        if isinstance(found, Course):
            return found
        state = BundleState.restored(found, oracle)
        course = cls.at(state, oracle)
        if isinstance(found, BundleState):
            return course
        with found.restoring():
            own = found.record["state"]["solver"]["course"]
            expect_like(own, {"guard": asdict(replace(course.guard, gaps=[0.0])), "stretch": 0.0}, "course")
            guard = Guard(**own["guard"])
            if state.bundle.max_cuts > oracle.cuts:
                raise ValueError(f"a bundle of {state.bundle.max_cuts} cuts, of which rows remember fewer")
            if not (course.guard.first == guard.first and 0.0 <= own["stretch"] <= 1.0):
                raise ValueError(f"steps are stretched by {own['stretch']}, at first by {guard.first}")
            if not (guard.plain or guard.first < 1.0) or not all(0.0 <= gap < math.inf for gap in guard.gaps):
                raise ValueError(f"passes go on as {own}")
            return cls(state, guard, own["stretch"])

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        numbers, arrays = self.state.saved()
        return {**numbers, "course": self._saved()}, arrays

    def _saved(self) -> dict[str, Any]:
        return {"guard": asdict(self.guard), "stretch": self.stretch}
