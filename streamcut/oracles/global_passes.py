"""The passes of a linear solver with a global risk, whose coefficients depend on the scores of all rows.

Row state: `z` scores at the w scored last (labels before the first), `c` coefficients of the next cut.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamcut.compiled import linear, vectors
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids


@dataclass(slots=True)
class Labelled:
    """(first rows of runs of equal qid, the qid of each run) in row order; the largest |x| of every feature (D,)."""

    largest: np.ndarray
    runs: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class LabelPass(Pass):
    """Stores labels in `z`, and collects what is needed once from the rows."""

    dimension: int
    bias: float
    interruptible: ClassVar[bool] = True

    def begin(self, first_row: int) -> Labelled:
        return Labelled(np.zeros(self.dimension))

    def visit_chunk(self, labelled: Labelled, rows: Rows, chunk: Chunk) -> None:
        rows["z"][:] = chunk.y
        linear.keep_largest(chunk.indptr, chunk.indices, chunk.data, self.bias, labelled.largest)
        if chunk.qid is not None:
            new = np.flatnonzero(chunk.qid[1:] != chunk.qid[:-1]) + 1
            first = np.append(0, new)
            labelled.runs.append((chunk.first_row + first, chunk.qid[first]))

    def merge(self, total: Labelled, part: Labelled) -> Labelled:
        np.maximum(total.largest, part.largest, out=total.largest)
        total.runs += part.runs
        return total


@dataclass(frozen=True, slots=True)
class ScoresPass(Pass):
    """Stores the scores at `w` in `z`."""

    w: np.ndarray
    bias: float
    interruptible: ClassVar[bool] = True

    def visit_chunk(self, partial: None, rows: Rows, chunk: Chunk) -> None:
        z = rows["z"]
        linear.scores(chunk.indptr, chunk.indices, chunk.data, self.w, self.bias, z)
        finite = np.isfinite(z)
        if not finite.all():
            row = chunk.first_row + int(np.argmin(finite))
            raise CorruptError(f"row {row + 1}: its score is not finite; run `streamcut info --check --read-data`")


@dataclass(frozen=True, slots=True)
class SumPass(Pass):
    """Σ c_i x_i over the rows (folds, D), exact on the grids."""

    dimension: int
    bias: float
    grids: Grids
    interruptible: ClassVar[bool] = True

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros((self.grids.folds, self.dimension))

    def visit_chunk(self, a: np.ndarray, rows: Rows, chunk: Chunk) -> None:
        linear.scatter(chunk.indptr, chunk.indices, chunk.data, rows["c"], self.bias, self.grids, a)

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        vectors.add(total.reshape(-1), part.reshape(-1))
        return total
