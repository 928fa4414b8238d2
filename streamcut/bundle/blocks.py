"""A bundle for each block of rows, mixed each by itself, and one master problem over them all: the disaggregated bundle.

The mean risk is a sum over blocks of rows, R = Σ_k R_k, and a cut (a, b) of block k says R_k(w) ≥ ⟨a, w⟩ + b for all w. So

    F(w) ≥ ½‖w‖² + C̄ Σ_k max_t (⟨a_kt, w⟩ + b_kt),

which is sharper than what the sums of the same cuts say, and its dual is that of streamcut.bundle.bundle with a simplex for each
block: max_β Σ β_kt b_kt − ½ ‖Σ β_kt a_kt‖² over β ≥ 0, Σ_t β_kt ≤ C̄. The mixture of all cuts by β / C̄ is a cut of R itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamcut.bundle.bundle import UNUSED_ITERATIONS, Bundle, BundleSize, MasterSolution, Merge
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.bundle.shelf import MEMORY, Shelf
from streamcut.compiled import blocks as kernels
from streamcut.rounding import UNSEEN, CutError, dot_gamma, gamma, mixed


class Merges(NamedTuple):
    """In turn j the cut in slot gone[k, j] of block k merged with the part share[k, j] into the one in slot into[k, j], −1: none.

    Each is (blocks, turns).
    """

    into: np.ndarray
    gone: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, merges: list[Merge]) -> Merges | None:
        """Those of a bundle of one block; None where there are none."""
        if not merges:
            return None
        return cls(*(np.array([[getattr(merge, name) for merge in merges]]) for name in cls._fields))


class BlockBundle(Bundle):
    """As Bundle, for `blocks` of rows: at most `max_cuts` cuts of each. Cuts are added for all of them at once.

    Slot t of a block is cut t + 1 of it; a cut keeps it for as long as it lives.
    """

    def __init__(self, dimension: int, c_bar: float, max_cuts: int, most: int, blocks: int, penalty: L2 = SQUARES) -> None:
        self.c_bar, self.penalty = c_bar, penalty
        self.max_cuts, self.most, self.blocks = max_cuts, most, blocks
        self._dimension = dimension
        self.merging = self._merged = False
        self.make_places(0)
        self._beta[:, 0] = c_bar

    def __len__(self) -> int:
        return int((self._age >= 0).sum())

    def mixture(self, slots: int | None = None) -> np.ndarray:
        """β / C̄ (blocks, max_cuts) by slot."""
        return self._beta[:, 1:] / self.c_bar

    def grow(self, cuts: int) -> bool:
        if self.max_cuts == self.most or int((self._age >= 0).sum(axis=1).max()) + cuts <= self.max_cuts:
            return False
        before, old = self.max_cuts + 1, self.saved()
        self.max_cuts = min(2 * self.max_cuts, self.most)
        new = self.make_places(0)
        pairs = (self.blocks, self.max_cuts + 1) * 2
        for name, array in old.items():
            if name == "gram":
                new[name].reshape(pairs)[:, :before, :, :before] = array.reshape((self.blocks, before) * 2)
            else:
                new[name][:, :before] = array
        return True

    def make_room(self, cuts: int, keep: int = 0) -> tuple[Merges | None, list[np.ndarray]]:  # type: ignore[override]
        """As that of Bundle: the merges, and the slots (blocks,) that each of the next cuts will get."""
        found = Merges(*(np.empty((self.blocks, cuts), kind) for kind in (np.int64, np.int64, np.float64)))
        merges = kernels.make_room(self._beta, self._unused, self._age, cuts, keep, *found)
        each = np.arange(self.blocks)
        for into, gone, share in zip(*(array.T.copy() for array in found), strict=True):
            at, other = (each, into), (each, gone)
            lengths = self._lengths()
            error = mixed(  # of all blocks at once; where nothing merges it is not used
                CutError(*self._errors[at].T), CutError(*self._errors[other].T), share, lengths[at] + lengths[other],
                np.abs(self._b[at]) + np.abs(self._b[other]),
            )  # fmt: skip
            here = into >= 0
            self._errors[at] = np.where(here[:, None], np.stack(error, axis=1), self._errors[at])
            self._b[at] += np.where(here, share * (self._b[other] - self._b[at]), 0.0)
            kernels.merge(self._vectors, self._gram, into, gone, share)
        kernels.empty(self._vectors, self._gram, self._b, self._errors, self._age)
        self._merged = self._merged or merges
        free = np.argsort(self._age[:, 1:] >= 0, axis=1, kind="stable")
        slots = [free[:, number].copy() for number in range(cuts)]
        if not merges:
            return None, slots
        return Merges(*(np.where(found.into >= 0, array - (array is not found.share), array) for array in found)), slots

    def add(self, a: np.ndarray, b: np.ndarray, error: np.ndarray) -> None:  # type: ignore[override]
        """A cut of every block: a (blocks, D), b (blocks,), errors (blocks, 2)."""
        _, (slots,) = self.make_room(1)
        each, new = np.arange(self.blocks), slots + 1
        self._vectors[each, new], self._b[each, new], self._errors[each, new] = a, b, error
        self._beta[each, new], self._unused[each, new] = 0.0, 0
        self._age[each, new] = self._age.max() + 1
        kernels.products(self._vectors, self._age, new, self._gram)

    def saved(self) -> dict[str, np.ndarray]:
        return {
            "vectors": self._vectors,
            "b": self._b,
            "errors": self._errors,
            "beta": self._beta,
            "gram": self._gram,
            "unused": self._unused,
            "age": self._age,
        }

    def make_places(self, cuts: int) -> dict[str, np.ndarray]:
        """As `saved`, empty; there is room for all cuts, however many there are."""
        shape = self.blocks, self.max_cuts + 1
        self._vectors = np.zeros((*shape, self._dimension))
        self._b, self._errors, self._beta = np.zeros(shape), np.zeros((*shape, 2)), np.zeros(shape)
        self._gram = np.zeros((shape[0] * shape[1],) * 2)
        self._unused, self._age = np.zeros(shape, np.int64), np.full(shape, -1)
        return self.saved()

    def solve(self, tolerance: float, matters: float = 0.0) -> MasterSolution:
        solution = self._solved(self._beta, self.c_bar, self.penalty, tolerance, matters=matters)
        self.merging, self._merged = self._merged, False
        self._unused = np.where(self._beta > 0.0, 0, self._unused + 1)
        dead = (self._unused >= UNUSED_ITERATIONS) & (self._age >= 0)
        if dead.any():
            self._age[dead] = -1
            kernels.empty(self._vectors, self._gram, self._b, self._errors, self._age)
        return solution

    def _solved(
        self, beta: np.ndarray, c_bar: float, penalty: L2, tolerance: float, worth: np.ndarray | None = None,
        matters: float = 0.0,
    ) -> MasterSolution:  # fmt: skip
        values = self._b if worth is None else worth
        size = self.max_cuts + 1
        rows, starts = self._vectors.reshape(-1, self._dimension), np.arange(self.blocks) * size
        master = penalty.solve_master(rows, self._gram, values.ravel(), c_bar, beta.ravel(), tolerance, starts, matters)
        used = beta[:, 1:].sum(axis=1)
        over = used > c_bar  # rounding only
        if over.any():
            beta[over, 1:] *= (c_bar / used[over])[:, None]
        v = np.empty(self._dimension) if master.v is None else master.v
        if master.v is None:
            kernels.combine(self._vectors, -beta, v)
        a, b = v / -c_bar, float((beta * self._b).sum()) / c_bar
        error = self._error_of_mixture(beta / c_bar)
        bound, computed = penalty.bound(c_bar, a, b, error)
        return MasterSolution(v, penalty.weights(v), a, b, error, bound, master.gap, computed - bound)

    def _lengths(self) -> np.ndarray:
        squares = np.diagonal(self._gram).reshape(self.blocks, -1)
        return np.sqrt(squares) * (1.0 + dot_gamma(self._dimension)) + UNSEEN

    def _error_of_mixture(self, pi: np.ndarray) -> CutError:
        own = gamma(float(np.count_nonzero(pi)) + 8.0)
        slope, offset = (pi[..., None] * self._errors).sum(axis=(0, 1)).tolist()
        lengths, sizes = (float((pi * each).sum()) for each in (self._lengths(), np.abs(self._b)))
        return CutError(slope + own * (lengths + slope), offset + own * (sizes + offset))


def bundle_of(dimension: int, c_bar: float, size: BundleSize, penalty: L2, shelf: Shelf = MEMORY) -> Bundle:
    """An empty bundle of this size; one of several blocks stays in memory."""
    if size.blocks == 1:
        return Bundle(dimension, c_bar, size.first, size.most, penalty, shelf)
    return BlockBundle(dimension, c_bar, *size, penalty)
