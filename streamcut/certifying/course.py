"""The passes of a certification.

Problem   F(w, b) = ½‖w‖² + C Σ u_i ℓ_i(⟨w, x_i⟩ + b); b is free, or the weight of a bias feature that is a part of w. With
          several classes in one problem w has K numbers per feature, and b has K.
Given     w₀, b₀, an oracle over the rows, and the number of passes allowed.
Returns   F(w₀, b₀), a bound on min F and the plane that proves it, the best point met.
Stops     when the passes are used up, or the gap is down to rounding.

    pass 1: F(w₀, b₀); the cut there, shares −ℓ′; of two classes in two halves
    repeat
        solve the master problem: a bound; the best mixture of the rows' shares, w, and b within a step of the best point's
        one pass: scores of (w, b); the cut between the best point and them; two visits of dual ascent from the mixture: a cut
        the best point on the line towards (w, b) is the new one

Courses of several problems on the same rows share the passes (`run_all`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamcut.certifying.master import Master, Proof
from streamcut.certifying.record import AfterPass
from streamcut.certifying.together import Corner, TogetherPass
from streamcut.compiled import vectors
from streamcut.errors import BadInputError
from streamcut.execution.passes import Pass
from streamcut.execution.runner import PassRunner
from streamcut.foundation.rounding import gamma, objective
from streamcut.models.certificate import Witness
from streamcut.oracles.dual.passes import Ascent

_AHEAD = 0.1  # of the way from the end of the last line search to w, where the next cut is predicted
_ROUNDS = 20  # of narrowing the intercept by the bound, and raising the bound by that
_WORTH = 0.9  # of the gap: a round that leaves more is the last
_DONE = 1e-12  # of F: the rest is rounding


class Course:
    """What is known so far. `w` holds the weights, then the intercepts or the bias feature's weights, if any.

    oracle  with `first_pass`, `began` and what DualAscent has
    slots   number of cuts for which rows keep their shares
    corner  of the row state, if other problems read the same rows
    """

    master: Master
    _closed_form: list[np.ndarray]  # mixtures of the first cuts: the bounds of exact optima

    def __init__(self, oracle: Any, w: np.ndarray, *, free: bool, slots: int, corner: Corner | None = None) -> None:
        self.oracle, self.free, self._slots, self.corner, self.best = oracle, free, slots, corner, w.copy()
        self.history: list[AfterPass] = []
        self.bound, self._step = 0.0, 1.0
        self._ascent: Ascent | None = None

    def work(self) -> Pass:
        """The next pass over the rows."""
        if not self.history:
            return self.oracle.first_pass(self.best, self.free)
        oracle, ahead = self.oracle, self.master.ahead(self.best)
        slot, mixture = len(self.master.cuts), np.zeros(self._slots)
        mixture[: len(ahead.beta)] = ahead.beta
        kappa = self._step + _AHEAD * (1.0 - self._step)
        self._ascent = Ascent(ahead.w, mixture, slot, slot + 1, kappa, math.inf)
        return oracle.ascent_pass(self._ascent)

    def take(self, sums: Any) -> None:
        """Process the sums of the last pass."""
        self.oracle.passes += 1
        if self._ascent is None:
            self._begin(sums)
        else:
            self._go_on(self._ascent, sums)
        self._bound()

    def _begin(self, sums: Any) -> None:
        oracle = self.oracle
        cuts, self.master, self._closed_form = oracle.began(sums, self.best, self.free)
        self.primal = self.best_primal = self._objective(oracle.step(1.0, self.best))
        if not math.isfinite(self.primal):
            raise BadInputError("the objective of these weights is no finite float64; they are too large for these rows")
        self.best_point = self.best.copy()
        self.least_primal = self.primal - 2.0 * oracle.C * oracle.raised - gamma(4.0 * len(self.best) + 64.0) * self.primal
        self.witness = Witness.none(len(self.master.plane(self.best)))
        for cut in cuts:
            self.master.add(cut)

    def _go_on(self, ascent: Ascent, sums: Any) -> None:
        oracle, w = self.oracle, ascent.w
        cuts = oracle.ascended(ascent, sums)
        A0, B0 = vectors.line(self.master.plane(self.best), self.master.plane(w))
        k = oracle.line_search(A0, B0)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(self.best + k * (w - self.best)).all():  # up to rounding, F is flat along a free intercept
                k = 0.0
        self._step = k
        vectors.move(self.best, w, k)
        primal = self._objective(oracle.step(k, self.best))
        if primal < self.best_primal:  # up to rounding, a line search never raises F
            self.best_point, self.best_primal = self.best.copy(), primal
        for cut in cuts:
            self.master.add(cut)

    def _objective(self, loss: float) -> float:
        w = self.master.plane(self.best)
        return objective(vectors.dot(w, w), len(w), self.oracle.C, loss)

    def _bound(self) -> None:
        """Solve the master problem and record what is known."""
        for _ in range(_ROUNDS if self.master.free else 1):
            before = self.bound
            self.master.narrow(self.best_point, self.best_primal, self.bound)
            if not self.master.known:
                break
            for beta in self.master.solve(self.best):
                self._offer(self.master.proof_of(beta))
            for beta in self._closed_form:  # digits that the master problem loses where cuts are long
                self._offer(self.master.proof_of(beta))
            if self.best_primal - self.bound > _WORTH * (self.best_primal - before):
                break
        parts = (self.primal - self.bound, max(0.0, self.least_primal - self.best_primal))
        at_most, at_least = (part / self.primal if self.primal > 0.0 else 0.0 for part in parts)
        self.history.append(AfterPass(len(self.history) + 1, at_most, at_least, self.best_primal, self.bound))

    def _offer(self, proof: Proof) -> None:
        if proof.lower_bound > self.bound:
            self.bound, self.witness = proof.lower_bound, proof.plane

    @property
    def done(self) -> bool:
        """Whether another pass could show nothing more."""
        if not self.history:
            return False
        return self.best_primal - self.bound <= _DONE * self.primal or not self.master.known


def run_all(runner: PassRunner, courses: Sequence[Course], passes: int) -> None:
    """Run all courses until each is done or has had `passes` passes; unfinished ones share each pass over the rows."""
    for _ in range(passes):
        going = [course for course in courses if not course.done]
        if not going:
            return
        works, corners = [course.work() for course in going], [course.corner for course in going if course.corner is not None]
        found = runner.run(TogetherPass(tuple(works), tuple(corners)))[0] if corners else [runner.run(work)[0] for work in works]
        for course, sums in zip(going, found, strict=True):
            course.take(sums)
