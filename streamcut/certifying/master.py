"""The master problem over the cuts of a certification, with or without a free intercept.

    max over β in the simplex of   C̄ Σ β_t (c_t + a₀_t m) − ½‖C̄ Σ β_t a_t‖² − B |C̄ Σ β_t a₀_t|

(streamcut.bundle.priced_master; m = B = 0 and no a₀ where the intercept is regularised or there is none). Cut 0 is the zero cut.
An inexact solution makes the bound loose, never wrong: it is computed anew from β, with what rounding may have done.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamcut.bundle.free_intercept import FreeIntercept
from streamcut.bundle.intercept import Interval
from streamcut.bundle.penalty import SQUARES
from streamcut.bundle.priced_master import solve_priced
from streamcut.bundle.verified_master import solve_master
from streamcut.compiled import vectors
from streamcut.foundation.rounding import CutError, dot_gamma, gamma
from streamcut.models.certificate import Witness
from streamcut.oracles.decomposable import Cut


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """The solution: β of the cuts but the zero one (T,), w = −C̄ Σ β a, the intercept (0 where it is not free), the plane that
    proves the true bound."""

    beta: np.ndarray
    w: np.ndarray
    intercept: float
    proof: Proof


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A bound, and its plane, in which a free intercept has been settled."""

    lower_bound: float
    plane: Witness


class Master:
    """Cuts, of which the last number is a₀ if `free`."""

    def __init__(self, c_bar: float, free: bool) -> None:
        self.c_bar, self.free, self.cuts = c_bar, free, list[Cut]()
        self._gram = np.zeros((1, 1))

    def add(self, cut: Cut) -> None:
        """Take a cut, whose array is kept."""
        self.cuts.append(cut)
        products = np.zeros(len(self.cuts) + 1)
        products[1:] = [vectors.dot(self._plane(other), self._plane(cut)) for other in self.cuts]
        self._gram = np.pad(self._gram, ((0, 1), (0, 1)))
        self._gram[-1] = self._gram[:, -1] = products

    def _plane(self, cut: Cut) -> np.ndarray:
        return cut.a[:-1] if self.free else cut.a

    def solve(self, within: Interval) -> Mixed:
        """The best mixture where the intercept is free and `within` these numbers."""
        beta, intercept = self._mixture(within)
        w = self._sum(beta)
        proof = self._proof(beta, w, within)
        return Mixed(beta, -self.c_bar * w, intercept, proof)

    def proof_of(self, beta: np.ndarray, within: Interval) -> Proof:
        """What the mixture `beta` (T,), in the simplex, proves."""
        return self._proof(beta, self._sum(beta), within)

    def _sum(self, beta: np.ndarray) -> np.ndarray:
        w = np.zeros(len(self._plane(self.cuts[0])))
        for part, cut in zip(beta.tolist(), self.cuts, strict=True):
            if part > 0.0:
                w += part * self._plane(cut)
        return w

    def _mixture(self, within: Interval) -> tuple[np.ndarray, float]:
        C, b = self.c_bar, np.array([0.0, *(cut.b for cut in self.cuts)])
        beta, intercept = np.append(C, np.zeros(len(self.cuts))), 0.0
        if self.free:
            pulls = np.array([0.0, *(cut.a[-1] for cut in self.cuts)])
            _, intercept = solve_priced(self._gram, b, pulls, C, beta, within)
        else:
            solve_master(self._gram, b, C, beta, 0.0)
        mixture = beta[1:] / C
        return mixture / max(1.0, float(mixture.sum()) * (1.0 + 1e-15)), intercept

    def _proof(self, beta: np.ndarray, a: np.ndarray, within: Interval) -> Proof:
        used = [(part, cut) for part, cut in zip(beta.tolist(), self.cuts, strict=True) if part > 0.0]
        slope = sum(part * cut.error.slope for part, cut in used)
        offset = sum(part * cut.error.offset for part, cut in used)
        own = gamma(2.0 * len(self.cuts) + 16.0)
        lengths = np.sqrt(np.diagonal(self._gram)[1:]) * (1.0 + dot_gamma(len(a)))
        slope += own * (float(beta @ lengths) + slope)
        b, size = sum(part * cut.b for part, cut in used), sum(part * abs(cut.b) for part, cut in used)
        pull, penalty = 0.0, SQUARES
        if self.free:
            pull, pulls = sum(part * float(cut.a[-1]) for part, cut in used), sum(part * abs(cut.a[-1]) for part, cut in used)
            slope += own * pulls
            penalty = replace(FreeIntercept(), within=within)
        b, error = penalty.settled(b, CutError(slope, offset + own * (size + offset)), pull)
        plane = Witness(a, b, error)
        return Proof(max(0.0, penalty.bound(self.c_bar, a, b, error)[0]), plane)
