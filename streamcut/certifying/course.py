"""The passes of a certification.

Problem   F(w, b) = ½‖w‖² + C Σ u_i ℓ_i(⟨w, x_i⟩ + b); b is free, or the weight of a bias feature that is a part of w.
Given     w₀, b₀, an oracle over the rows, and how many passes there may be.
Returns   F(w₀, b₀), a bound on min F and the plane that proves it, the best point met.
Stops     when the passes are used up, or the gap is a rounding.

    pass 1: F(w₀, b₀); the cut there in two halves, shares −ℓ′
    repeat
        solve the master problem: a bound; the best mixture of the rows' shares, w, and b within a step of the best point's
        one pass: scores of (w, b); the cut between the best point and them; two visits of dual ascent from the mixture: a cut
        the best point on the line towards (w, b) is the new one
"""

from __future__ import annotations

import math

import numpy as np

from streamcut.bundle.intercept import EVERYWHERE, Interval, best_intercept
from streamcut.certifying.master import Master, Mixed, Proof
from streamcut.certifying.record import AfterPass
from streamcut.certifying.sides import DOWN, UP, CertifyOracle
from streamcut.compiled import vectors
from streamcut.errors import BadInputError
from streamcut.foundation.rounding import gamma, objective
from streamcut.models.certificate import Witness
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.dual.passes import Ascent

_AHEAD = 0.1  # the predicted cut is so much nearer to w than where the last line search ended
_ROUNDS = 20  # of narrowing the intercept by the bound, and raising the bound by that
_WORTH = 0.9  # of the gap: one that leaves more is the last
_DONE = 1e-12  # of F: what is left is rounding


class Course:
    """What is known so far. `w` are the weights with the intercept, or the bias feature's weight, last, if there is one.

    slots  how many cuts rows remember shares in
    """

    def __init__(self, oracle: CertifyOracle, w: np.ndarray, *, free: bool, slots: int) -> None:
        self._oracle, self.free, self._slots = oracle, free, slots
        self.best = w.copy()
        cuts, others = oracle.first(w)
        loss = oracle.step(1.0, self.best)
        self.primal = self.best_primal = self._objective(loss)
        if not math.isfinite(self.primal):
            raise BadInputError("the objective of these weights is no finite float64; they are too large for these rows")
        self.best_point = self.best.copy()
        self.least_primal = self.primal - 2.0 * oracle.C * oracle.raised - gamma(4.0 * len(w) + 64.0) * self.primal
        self.master = Master(oracle.c_bar, free)
        for cut in cuts:
            self.master.add(cut)
        self._reference, self.within, self.bound, self._step = others, EVERYWHERE if free else Interval(0.0, 0.0), 0.0, 1.0
        self.witness = Witness.none(len(self._planes))
        self.history: list[AfterPass] = []
        self._closed_form = self._balanced(cuts)
        self._bound()

    @property
    def _planes(self) -> np.ndarray:
        return self.best[:-1] if self.free else self.best

    def _objective(self, loss: float) -> float:
        w = self._planes
        return objective(vectors.dot(w, w), len(w), self._oracle.C, loss)

    def _bound(self) -> None:
        """Solve the master problem, and take down what is known."""
        self._mixed: Mixed | None = None
        for _ in range(_ROUNDS if self.free else 1):
            before = self.bound
            self._narrow()
            if not self.within.known:
                break
            self._mixed = self.master.solve(self.within)
            self._offer(self._mixed.proof)
            for beta in self._closed_form:  # digits that the master problem loses where cuts are long
                padded = np.pad(beta, (0, len(self.master.cuts) - len(beta)))
                self._offer(self.master.proof_of(padded, self.within))
            if self.best_primal - self.bound > _WORTH * (self.best_primal - before):
                break
        parts = (self.primal - self.bound, max(0.0, self.least_primal - self.best_primal))
        at_most, at_least = (part / self.primal if self.primal > 0.0 else 0.0 for part in parts)
        self.history.append(AfterPass(len(self.history) + 1, at_most, at_least, self.best_primal, self.bound))

    def _offer(self, proof: Proof) -> None:
        if proof.lower_bound > self.bound:
            self.bound, self.witness = proof.lower_bound, proof.plane

    def _narrow(self) -> None:
        """What is proved of the best intercept by now."""
        if self.free:
            cuts = (*self._reference, *self.master.cuts)
            found = best_intercept(cuts, self._oracle.c_bar, self.best_point[:-1], self.best_primal, self.bound)
            self.within = self.within.within(found)

    @staticmethod
    def _balanced(cuts: list[Cut]) -> list[np.ndarray]:
        """Two mixtures of the first cuts: the cut at w₀, and the same with its heavier half scaled down to the lighter one."""
        found = [np.array([0.0, 0.0, 1.0])]
        up, down = (abs(float(cuts[side].a[-1])) for side in (UP, DOWN))
        if min(up, down) > 0.0:
            theta = min(up, down) / max(up, down)
            found.append(np.array([0.0, 1.0 - theta, theta] if up > down else [1.0 - theta, 0.0, theta]))
        return found

    @property
    def done(self) -> bool:
        """Whether another pass could show nothing more."""
        return self.best_primal - self.bound <= _DONE * self.primal or not self.within.known

    def go_on(self) -> None:
        """One pass more."""
        oracle, solved = self._oracle, self._next()
        slot, mixture = len(self.master.cuts), np.zeros(self._slots)
        mixture[: len(solved.beta)] = solved.beta
        w = np.append(solved.w, solved.intercept) if self.free else solved.w
        kappa = self._step + _AHEAD * (1.0 - self._step)
        cuts = oracle.ascend(Ascent(w, mixture, slot, slot + 1, kappa, math.inf))
        A0, B0 = vectors.line(self._planes, w[:-1] if self.free else w)
        k = oracle.line_search(A0, B0)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(self.best + k * (w - self.best)).all():  # F is flat along a free intercept, but for rounding
                k = 0.0
        self._step = k
        vectors.move(self.best, w, k)
        primal = self._objective(oracle.step(k, self.best))
        if primal < self.best_primal:  # but for rounding a line search never raises F
            self.best_point, self.best_primal = self.best.copy(), primal
        for cut in cuts:
            self.master.add(cut)
        self._bound()

    def _next(self) -> Mixed:
        """Where to look: the master's solution, its intercept no further from the best point's than is seemly."""
        if not self.free:
            assert self._mixed is not None
            return self._mixed
        b = float(self.best[-1])
        near = max(1.0, abs(b))
        return self.master.solve(Interval(b - near, b + near))
