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
crawl where rows can be separated, plain ones where features are many and C is large. So one takes over from the other where four
passes have left more of the gap than (1 − 4/k), k passes since it began: slower than 1/k. Accelerated passes at their best leave
(1 − 4/k)². Each time they come back they begin with a larger σ, in the end with 1: then all passes are plain. They are, too, with
a C so small that σ is 1 at first. Where it is not, plain passes solve for cached rows at once, if features are few
(streamcut.oracles.dual.interior), and the weights that do are scored next, in place of the master problem's: where most rows that
matter are cached they are the better ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.fields import expect_like
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.oracles.dual.passes import Ascent
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState

_WINDOW, _LEAST = 4, 8  # passes that a kind is judged by; that it has at least
_LARGER = 4.0  # times the σ that the accelerated passes before began with


@dataclass(slots=True)
class Course:
    """`state`, and of what kind the next pass is that goes on from it.

    first    σ with which accelerated passes begin; 1: there are none
    plain    the next pass starts from the master problem's mixture, with σ = 1
    stretch  σ of the next accelerated pass; 0: it is the first of its run, and starts from that mixture, too
    gaps     after each pass of this kind, the first of them after the one before it
    """

    state: BundleState
    first: float
    plain: bool
    stretch: float = 0.0
    gaps: list[float] = field(default_factory=list)

    @classmethod
    def at(cls, state: BundleState, oracle: DualAscent) -> Course:
        """Nothing is known yet of how passes go on from here."""
        first = oracle.first_stretch
        return cls(state, first, first == 1.0 or not oracle.accelerated)

    def next(self, ascent: Ascent, oracle: DualAscent) -> Ascent:
        """What the next pass is, of which the plain one is `ascent`."""
        if self.plain:
            return replace(ascent, at_once=oracle.first_stretch < 1.0)
        bundle = self.state.bundle
        stretch, mixture = (self.stretch, bundle.newest()) if self.stretch > 0.0 else (self.first, ascent.mixture)
        value = stretch * bundle.c_bar * bundle.offset(mixture) - 0.5 * vectors.dot(ascent.w, ascent.w)
        return replace(ascent, mixture=mixture, stretch=stretch, enough=stretch * ascent.enough, value=value)

    def advance(self, ascent: Ascent, shares: np.ndarray, oracle: DualAscent, *, stuck: bool) -> None:
        """After `ascent`, which ended with the weights (v) of these `shares`, and the master problem.

        Where passes are `stuck` the next one starts from the mixture.
        """
        if self.first < 1.0 and oracle.accelerated and self._hands_over():
            return
        if self.plain:
            if oracle.solved is not None and self.state.k > 0.0:  # else a cut at the mixture's own w has to raise its value
                self.state.w = oracle.solved
            return
        if stuck:
            self.stretch = 0.0
            return
        y, s = oracle.reached, self.state
        assert y is not None
        y += -math.expm1(-ascent.stretch) * (shares - y)
        s.v, s.w = y, s.penalty.weights(y)
        self.stretch = 2.0 * ascent.stretch / (2.0 + ascent.stretch)

    def _hands_over(self) -> bool:
        """Whether the next pass is of the other kind, as it is from now on."""
        gap = self.state.F_b - self.state.bound
        self.gaps.append(gap)
        k = len(self.gaps)
        if k < _LEAST or gap <= (1.0 - _WINDOW / k) * self.gaps[-1 - _WINDOW]:
            return False
        if self.plain:
            self.first = min(1.0, _LARGER * self.first)
        self.gaps, self.stretch, self.plain = [gap], 0.0, not self.plain or self.first == 1.0
        return True

    def move_to(self, C: float, penalty: L2, oracle: DualAscent, rule: StoppingRule) -> None:
        """Go on with another C and penalty."""
        self.state.move_to(C, penalty, oracle, rule)
        anew = Course.at(self.state, oracle)
        self.first, self.plain, self.stretch, self.gaps = anew.first, anew.plain, 0.0, []

    @classmethod
    def restored(cls, found: StoredCheckpoint | Course | BundleState, oracle: DualAscent) -> Course:
        """What was saved, to the last bit; of another run's state that begins here. A course is itself.

        Raises CorruptError for what is none.
        """
        if isinstance(found, Course):
            return found
        state = BundleState.restored(found, oracle.dimension, oracle.shelf)
        course = cls.at(state, oracle)
        if isinstance(found, BundleState):
            return course
        with found.restoring():
            own = found.record["state"]["solver"]["course"]
            expect_like(own, {**course._saved(), "gaps": [0.0] * len(own.get("gaps", ()))}, "course")
            if state.bundle.max_cuts > oracle.cuts:
                raise ValueError(f"a bundle of {state.bundle.max_cuts} cuts, of which rows remember fewer")
            if not (course.first <= own["first"] <= 1.0 and 0.0 <= own["stretch"] <= 1.0):
                raise ValueError(f"steps are stretched by {own['stretch']}, at first by {own['first']}")
            if (not own["plain"] and (own["first"] == 1.0 or not oracle.accelerated)) or not all(
                0.0 <= gap < math.inf for gap in own["gaps"]
            ):
                raise ValueError(f"passes go on as {own}")
            return cls(state, **own)

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        numbers, arrays = self.state.saved()
        return {**numbers, "course": self._saved()}, arrays

    def _saved(self) -> dict[str, Any]:
        return {"first": self.first, "plain": self.plain, "stretch": self.stretch, "gaps": self.gaps}
