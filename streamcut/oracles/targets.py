"""Classes of rows from their labels, for passes over losses of several classes."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamcut.errors import CorruptError
from streamcut.foundation.chunk import Chunk


class Classes(Protocol):
    """Maps labels to class numbers."""

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""


def targets(risk: Classes, chunk: Chunk, numbers: np.ndarray | None = None) -> np.ndarray:
    """The class of each row, int32 (n,), used by kernels as indices. `numbers` of the rows, if they are not consecutive.

    Stores check their labels against the manifest on reading; data from other sources is checked here.
    Raises CorruptError for a label that the manifest does not list.
    """
    target = risk.targets(chunk.y)
    if len(target) and target.min() < 0:
        row = int(np.argmin(target))
        number = 1 + (chunk.first_row + row if numbers is None else int(numbers[row]))
        raise CorruptError(f"row {number:,}: the manifest has no label {chunk.y[row]:g}; see `streamcut info --check`")
    return target
