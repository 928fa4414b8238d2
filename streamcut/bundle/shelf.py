"""The store of vectors that a bundle method uses only between passes: cuts, the best point, proofs.

A pass needs the weights that it scores, those that move and its sums, in any order of features. All other vectors
are read and written sequentially, one or two at a time, so they may lie in files (streamcut.execution.row_state):
they are released after each use.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Shelf(Protocol):
    """Allocates vectors. `far`: unused vectors take no memory."""

    @property
    def far(self) -> bool: ...

    def zeros(self, *shape: int) -> np.ndarray:
        """A new float64 array of zeros; unwritten parts take no memory."""

    def space(self, *shape: int) -> np.ndarray:
        """A new uninitialised float64 array."""

    def put(self, vector: np.ndarray) -> np.ndarray:
        """`vector`, or a copy of it where vectors are far."""

    def take(self, vector: np.ndarray) -> np.ndarray:
        """`vector`, or a copy of it in memory where vectors are far, to be kept after the run."""

    def release(self) -> None:
        """Release what was accessed; it is read again on the next access."""


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
