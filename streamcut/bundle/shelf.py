"""Where a bundle method keeps vectors that are looked at between passes alone: cuts, the best point, proofs.

A pass needs the weights that it scores, those that move and the sums that it makes, in any order of features. All other vectors
are read and written from one end to the other, one or two at a time, so they may lie in files (streamcut.execution.scratch):
whoever has looked at one lets go of it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Shelf(Protocol):
    """Makes vectors. `far`: they are in no memory while nobody looks at them."""

    @property
    def far(self) -> bool: ...

    def zeros(self, *shape: int) -> np.ndarray:
        """A new float64 array; what is never written takes no memory."""

    def space(self, *shape: int) -> np.ndarray:
        """A new float64 array of no matter what: memory that was in use before need not be made 0."""

    def put(self, vector: np.ndarray) -> np.ndarray:
        """`vector`, or a copy of it where vectors are far."""

    def take(self, vector: np.ndarray) -> np.ndarray:
        """`vector`, or a copy of it in memory where vectors are far: for whoever keeps it when all else has ended."""

    def release(self) -> None:
        """Let go of whatever was looked at; it comes back when it is looked at again."""


class Memory:
    """Vectors stay in memory."""

    far = False

    def zeros(self, *shape: int) -> np.ndarray:
        return np.zeros(shape)

    def space(self, *shape: int) -> np.ndarray:
        return np.empty(shape)

    def put(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def take(self, vector: np.ndarray) -> np.ndarray:
        return vector

    def release(self) -> None:
        pass


MEMORY = Memory()
