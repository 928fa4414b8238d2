"""Cutting planes known only by their inner products: a bundle whose cuts live in a kernel's feature space.

The master problem is that of bundle.bundle: max_β Σ β_t b_t − ½ βᵀGβ over β ≥ 0, Σ β_t ≤ C̄; the zero cut takes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.bundle.verified_master import solve_master
from streamcut.models.kept import Kept

UNUSED_ITERATIONS = 20  # a cut whose β was 0 for so long is dropped (Yu & Joachims 2008, section 6.1)
FADED = 1e-5  # of C̄: the most that a dropped cut may contribute to the best point


@dataclass(frozen=True, slots=True)
class GramSolution:
    """‖w‖²; the model's value ξ = max(0, max_t b_t + ⟨a_t, w⟩) there; and the dual value, at most ½‖w‖² + C̄ξ."""

    square: float = 0.0
    xi: float = 0.0
    dual: float = 0.0


class GramBundle(Kept):
    """At most `max_cuts` cuts; beyond it the one unused for longest is dropped, or the one with the smallest β.

    `slots` are the numbers of the live cuts, `mixture` their β: w = −Σ β_t a_t, the solution of the master problem. A solver may
    keep a best point w_b = −Σ γ_t a_t on the way there: `best` are its γ, all 0 at first. Cuts that it needs stay; any
    γ left of dropped cuts goes to the zero cut.
    """

    kept = resized = ("_slots", "_b", "_beta", "_best", "_gram", "_unused")

    def __init__(self, c_bar: float, max_cuts: int) -> None:
        self.c_bar = c_bar
        self.max_cuts = max_cuts
        self._slots = np.array([-1])
        self._b = np.zeros(1)
        self._beta = np.array([c_bar])
        self._best = np.array([c_bar])
        self._gram = np.zeros((1, 1))
        self._unused = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self._b) - 1

    @property
    def slots(self) -> np.ndarray:
        """int64 (T,)."""
        return self._slots[1:]

    @property
    def mixture(self) -> np.ndarray:
        """β, float64 (T,)."""
        return self._beta[1:]

    @property
    def best(self) -> np.ndarray:
        """γ, float64 (T,)."""
        return self._best[1:]

    def move_best(self, step: float) -> None:
        """w_b ← w_b + step (w − w_b)."""
        self._best = (1.0 - step) * self._best + step * self._beta

    def squares(self, steps: np.ndarray) -> np.ndarray:
        """‖w_b + k (w − w_b)‖² for each k of `steps`, float64 of the same shape."""
        ends = np.stack((self._best, self._beta))
        (here, across), (_, there) = ends @ self._gram @ ends.T
        return (1.0 - steps) ** 2 * here + 2.0 * steps * (1.0 - steps) * across + steps**2 * there

    def make_room(self) -> int:
        """The slot of the next cut; another cut may be dropped for it."""
        if len(self) == self.max_cuts:
            unused, best = self._unused[1:], self._best[1:]
            idle = int(np.lexsort((-unused, best, unused == 0))[0])  # the unused cut that w_b needs least
            self._keep_all_but([1 + (idle if unused[idle] else int(np.argmin(self._beta[1:])))])
        return int(np.setdiff1d(np.arange(self.max_cuts), self.slots)[0])

    def add(self, slot: int, b: float, products: np.ndarray, square: float) -> None:
        """Add a cut: its ⟨a, a_t⟩ (T,) with the live cuts, and its ‖a‖²."""
        row = np.concatenate(([0.0], products, [square]))
        gram = np.pad(self._gram, ((0, 1), (0, 1)))
        gram[-1] = gram[:, -1] = row
        self._gram = gram
        self._slots, self._b = np.append(self._slots, slot), np.append(self._b, b)
        self._beta, self._best, self._unused = np.append(self._beta, 0.0), np.append(self._best, 0.0), np.append(self._unused, 0)

    def solve(self, tolerance: float) -> GramSolution:
        """Solve the master problem, starting from the last solution, to a dual gap of at most `tolerance`; drops unused cuts."""
        solve_master(self._gram, self._b, self.c_bar, self._beta, tolerance)
        products = self._gram @ self._beta  # −⟨a_t, w⟩
        square = float(self._beta @ products)
        xi = float(np.max(self._b - products))
        self._unused = np.where(self._beta > 0.0, 0, self._unused + 1)
        dead = (self._unused[1:] >= UNUSED_ITERATIONS) & (self._best[1:] <= FADED * self.c_bar)
        self._keep_all_but(1 + np.flatnonzero(dead))
        return GramSolution(square, xi, float(self._beta @ self._b) - 0.5 * square)

    def _keep_all_but(self, gone) -> None:
        keep = np.setdiff1d(np.arange(len(self._b)), gone)
        self._beta[0] += self._beta[gone].sum()
        self._best[0] += self._best[gone].sum()
        self._slots, self._b, self._unused = (x[keep] for x in (self._slots, self._b, self._unused))
        self._beta, self._best = self._beta[keep], self._best[keep]
        self._gram = np.ascontiguousarray(self._gram[np.ix_(keep, keep)])
