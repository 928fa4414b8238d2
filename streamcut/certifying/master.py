"""The master problem over the cuts of a certification.

    max over β in the simplex of   C̄ Σ β_t b_t − ½‖C̄ Σ β_t a_t‖² + min over b of ⟨C̄ Σ β_t p_t, b⟩

p_t is the pull of cut t on the free intercepts: none (`Master`), one (`FreeMaster`) or one per class (`FreeClasses`). b ranges
over where the optimum's are proved to be (streamcut.bundle.intercept). Cut 0 of the master problem is the zero cut. An inexact
solution makes the bound loose, never wrong: it is recomputed from β, with rounding counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from streamcut.bundle.intercept import EVERYWHERE, Interval, Nearby, around, best_intercept
from streamcut.bundle.penalty import SQUARES, FreeIntercept
from streamcut.bundle.priced_master import solve_priced
from streamcut.bundle.verified_master import solve_master
from streamcut.compiled import vectors
from streamcut.foundation.rounding import CutError, dot_gamma, gamma
from streamcut.models.certificate import Witness
from streamcut.oracles.decomposable import Cut


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A bound and its plane, with free intercepts eliminated."""

    lower_bound: float
    plane: Witness


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """A mixture: β of all cuts but the zero cut (T,), and the point it represents, free intercepts last."""

    beta: np.ndarray
    w: np.ndarray


class Master:
    """Cuts of a problem without free intercepts, whose master problem `solve` solves."""

    free = 0  # this many trailing numbers of a cut are its pull on free intercepts

    def __init__(self, c_bar: float) -> None:
        self.c_bar, self.cuts = c_bar, list[Cut]()
        self._gram = np.zeros((1, 1))
        self._last: np.ndarray | None = None

    def add(self, cut: Cut) -> None:
        """Add a cut, whose array is kept."""
        self.cuts.append(cut)
        products = np.zeros(len(self.cuts) + 1)
        products[1:] = [vectors.dot(self.plane(other.a), self.plane(cut.a)) for other in self.cuts]
        self._gram = np.pad(self._gram, ((0, 1), (0, 1)))
        self._gram[-1] = self._gram[:, -1] = products

    def plane(self, a: np.ndarray) -> np.ndarray:
        """The numbers of `a` but those of free intercepts."""
        return a[: len(a) - self.free]

    @property
    def known(self) -> bool:
        """Whether free intercepts have known bounds."""
        return True

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Bounds on the free intercept, if there is one and they are known."""
        return None

    def narrow(self, w_b: np.ndarray, primal: float, bound: float) -> None:
        """Narrow the free intercepts by F(w_b) ≤ `primal` and a lower `bound`."""

    def solve(self, w_b: np.ndarray) -> list[np.ndarray]:
        """Candidate mixtures (T,), the best or nearly best among them."""
        beta = np.append(self.c_bar, np.zeros(len(self.cuts)))
        solve_master(self._gram, self._offsets(), self.c_bar, beta, 0.0)
        self._last = self._simplex(beta)
        return [self._last]

    def ahead(self, w_b: np.ndarray) -> Mixed:
        """Where to search for a better point than `w_b`: the last solution, free intercepts not far from those of `w_b`."""
        assert self._last is not None
        return Mixed(self._last, -self.c_bar * self._sum(self._last))

    def proof_of(self, beta: np.ndarray) -> Proof:
        """What the mixture `beta`, in the simplex, proves; cuts without an entry in it are left out."""
        beta = np.pad(beta, (0, len(self._offsets()) - 1 - len(beta)))
        a, own = self._sum(beta), gamma(2.0 * len(beta) + 16.0)
        slope, offset = (beta @ self._errors()).tolist()
        lengths = self._lengths() * (1.0 + dot_gamma(len(a)))
        b, size = float(beta @ self._offsets()[1:]), float(beta @ np.abs(self._offsets()[1:]))
        pull, pulls = beta @ self._pulls()[1:], float(beta @ np.abs(self._pulls()[1:]).sum(axis=1))
        slope += own * (float(beta @ lengths) + slope + pulls)
        b, error = self._settled(b, CutError(slope, offset + own * (size + offset)), pull, own * pulls)
        return Proof(max(0.0, SQUARES.bound(self.c_bar, a, b, error)[0]), Witness(a, b, error))

    def _settled(self, b: float, error: CutError, pull: np.ndarray, mixed: float) -> tuple[float, CutError]:
        """(b, error) of a cut with this `pull`, at least, at the optimum's free intercepts. `mixed` is the rounding of `pull`
        by mixing, which is part of the error."""
        return b, error

    def _errors(self) -> np.ndarray:
        return np.array([cut.error for cut in self.cuts])

    def _lengths(self) -> np.ndarray:
        return np.sqrt(np.diagonal(self._gram)[1:])

    def _offsets(self) -> np.ndarray:
        return np.array([0.0, *(cut.b for cut in self.cuts)])

    def _pulls(self) -> np.ndarray:
        """(T + 1, free) of the cuts and the zero one before them."""
        return np.array([np.zeros(self.free), *(cut.a[len(cut.a) - self.free :] for cut in self.cuts)])

    def _simplex(self, beta: np.ndarray) -> np.ndarray:
        mixture = beta[1:] / self.c_bar
        return mixture / max(1.0, float(mixture.sum()) * (1.0 + 1e-15))

    def _sum(self, beta: np.ndarray) -> np.ndarray:
        w = np.zeros(len(self.plane(self.cuts[0].a)))
        for part, cut in zip(beta.tolist(), self.cuts, strict=True):
            if part > 0.0:
                w += part * self.plane(cut.a)
        return w


class FreeMaster(Master):
    """With one free intercept; `reference` are cuts that bound it for any weights."""

    free = 1

    def __init__(self, c_bar: float, reference: Sequence[Cut]) -> None:
        super().__init__(c_bar)
        self._reference, self.within = reference, EVERYWHERE

    @property
    def known(self) -> bool:
        return self.within.known

    @property
    def bounds(self) -> tuple[float, float] | None:
        return (self.within.low, self.within.high) if self.known else None

    def narrow(self, w_b: np.ndarray, primal: float, bound: float) -> None:
        found = best_intercept((*self._reference, *self.cuts), self.c_bar, self.plane(w_b), primal, bound)
        self.within = self.within.within(found)

    def solve(self, w_b: np.ndarray) -> list[np.ndarray]:
        return [self._mixture(self.within)[0]]

    def ahead(self, w_b: np.ndarray) -> Mixed:
        beta, intercept = self._mixture(around(float(w_b[-1])))
        return Mixed(beta, np.append(-self.c_bar * self._sum(beta), intercept))

    def _mixture(self, within: Interval) -> tuple[np.ndarray, float]:
        beta = np.append(self.c_bar, np.zeros(len(self.cuts)))
        _, intercept = solve_priced(self._gram, self._offsets(), self._pulls()[:, 0], self.c_bar, beta, within)
        return self._simplex(beta), intercept

    def _settled(self, b: float, error: CutError, pull: np.ndarray, mixed: float) -> tuple[float, CutError]:
        return replace(FreeIntercept(), within=self.within).settled(b, error, float(pull[0]))


_STRETCHES = 10.0 ** np.arange(-1.0, 4.5, 0.5)


class FreeClasses(Master):
    """With a free intercept for each of K classes, for losses of score differences alone, so that Σ b = 0 is no restriction.

    `sums` (K, d + 1) are the Σ u_i x_i / M of the rows of each class, Σ u_i / M last; `entropy` is log K. The pull of any cut
    on one intercept is off by `each` at most.

    With shares of 1/K in all classes the rows of class k make a cut s_k (1/K − e_k)ᵀ that pulls on b_k alone, as Σ b = 0. The K
    cuts bound the b_k below, and hence above; they come last in β, where they cancel the pull of the other cuts. The price of a
    mixture is its least value over such b.

    For some s the best mixture is nearly that of the problem with ‖b − b_b‖² / (2 s²) added to F, which has no free intercepts.
    All of `_STRETCHES` are tried; their proofs hold for any s.
    """

    def __init__(self, c_bar: float, sums: np.ndarray, error: CutError, each: float, entropy: float) -> None:
        super().__init__(c_bar)
        K = self.free = len(sums)
        self.low = np.full(K, -np.inf)
        self._planes, self._weights = np.ascontiguousarray(sums[:, :-1]), sums[:, -1].copy()
        self._error, self._each, self._entropy = error._replace(offset=error.offset + each * entropy), each, entropy
        self._apart = np.eye(K) - 1.0 / K
        self._own, self._across = (self._planes @ self._planes.T) * self._apart, [np.zeros(K)]
        self._tried: list[tuple[float, np.ndarray]] = []

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.low).all())

    def add(self, cut: Cut) -> None:
        super().add(cut)
        self._across.append(self._products(self.plane(cut.a)))

    def _products(self, a: np.ndarray) -> np.ndarray:
        """Products of the classes' cuts with `a` (d · K,)."""
        found = self._planes @ a.reshape(-1, self.free)
        return found.mean(axis=1) - np.diagonal(found)

    def narrow(self, w_b: np.ndarray, primal: float, bound: float) -> None:
        known, across = Nearby(self.c_bar, self.plane(w_b), primal, bound), self._products(self.plane(w_b))
        offsets = self._weights * self._entropy * (1.0 - 1e-14)
        for k, (weight, square) in enumerate(zip(self._weights.tolist(), np.diagonal(self._own).tolist(), strict=True)):
            far = known.farthest(weight, square, float(across[k]), float(offsets[k]), self._error)
            if far is not None:
                self.low[k] = max(self.low[k], -far)

    def solve(self, w_b: np.ndarray) -> list[np.ndarray]:
        pulls, b, across = self._pulls(), w_b[len(w_b) - self.free :], np.array(self._across)
        gram = np.block([[self._gram, across], [across.T, self._own]])
        worth, products = self._offsets() + pulls @ (b - b.mean()), pulls @ pulls.T
        self._tried = []
        for s in _STRETCHES.tolist():
            beta = np.append(self.c_bar, np.zeros(len(worth) - 1))
            solve_master(gram + s * s * products, worth, self.c_bar, beta, 0.0)
            self._tried.append((s, self._simplex(beta)))
        return [beta for _, beta in self._tried]

    def ahead(self, w_b: np.ndarray) -> Mixed:
        b, pulls = w_b[len(w_b) - self.free :], self._pulls()[1:]
        near = max(1.0, float(np.abs(b).max()))
        moved = [(beta, -s * s * self.c_bar * (beta @ pulls)) for s, beta in self._tried]
        beta, move = next((each for each in reversed(moved) if np.abs(each[1]).max() <= near), moved[0])
        return Mixed(beta[: len(self.cuts)], np.concatenate([-self.c_bar * self._sum(beta), b + move]))

    def _settled(self, b: float, error: CutError, pull: np.ndarray, mixed: float) -> tuple[float, CutError]:
        """⟨pull, b⟩ is least, over b ≥ low and Σ b = 0, where all but one of b are as low as they may be."""
        room = -float(self.low.sum()) * (1.0 + 1e-12) + 1e-12 * float(np.abs(self.low).sum())
        sizes = float(np.abs(self.low).sum()) + room
        most = min(error.slope, self._each + mixed) + gamma(self.free + 16.0) * float(np.abs(pull).max())
        value = float(pull @ self.low) + room * min(0.0, float(pull.min()))
        return b + value, CutError(error.slope, error.offset + most * sizes + gamma(16.0) * (abs(b) + abs(value)))

    def _errors(self) -> np.ndarray:
        return np.concatenate([super()._errors(), np.tile(self._error, (self.free, 1))])

    def _lengths(self) -> np.ndarray:
        return np.append(super()._lengths(), np.sqrt(np.diagonal(self._own)))

    def _offsets(self) -> np.ndarray:
        return np.append(super()._offsets(), self._weights * self._entropy)

    def _pulls(self) -> np.ndarray:
        return np.concatenate([super()._pulls(), -self._weights[:, None] * self._apart])

    def _sum(self, beta: np.ndarray) -> np.ndarray:
        parts = beta[len(self.cuts) :, None] * self._planes
        own = parts.sum(axis=0)[:, None] / self.free - parts.T
        return super()._sum(beta[: len(self.cuts)]) + own.reshape(-1)
