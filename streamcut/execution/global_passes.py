"""The passes of a linear solver with a global risk, whose coefficients depend on the scores of all rows.

Row state: `z` scores at the w that was scored last (labels, before any was), `c` coefficients of the next cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.chunk import Chunk
from streamcut.errors import CorruptError
from streamcut.execution.row_state import Rows
from streamcut.passes import linear, vectors


@dataclass(frozen=True, slots=True)
class LabelPass:
    """Labels into `z`; the partial is a list of (rows where a run of equal qid begins, the qid of each) in order of rows."""

    needs_data: ClassVar[bool] = True
    can_be_broken_off: ClassVar[bool] = True
    alignment: ClassVar[int] = 1

    def begin(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return []

    def visit(self, runs: list, rows: Rows, chunk: Chunk | None) -> None:
        assert chunk is not None
        rows["z"][:] = chunk.y
        if chunk.qid is not None:
            new = np.flatnonzero(chunk.qid[1:] != chunk.qid[:-1]) + 1
            first = np.append(0, new)
            runs.append((chunk.first_row + first, chunk.qid[first]))

    def finish(self, runs: list, rows: Rows, first_row: int) -> None:
        """Nothing is left to do."""

    def merge(self, total: list, part: list) -> list:
        return total + part


@dataclass(frozen=True, slots=True)
class GlobalPass:
    """Σ c_i x_i over the rows (with `cut`), exact on the grid of `rounder`; and the scores at `w` into `z` (unless it is None)."""

    w: np.ndarray | None
    cut: bool
    dimension: int
    bias: float
    rounder: float
    needs_data: ClassVar[bool] = True
    can_be_broken_off: ClassVar[bool] = True
    alignment: ClassVar[int] = 1

    def begin(self) -> np.ndarray | None:
        return np.zeros(self.dimension) if self.cut else None

    def visit(self, a: np.ndarray | None, rows: Rows, chunk: Chunk | None) -> None:
        assert chunk is not None
        if a is not None:
            linear.scatter(chunk.indptr, chunk.indices, chunk.data, rows["c"], self.bias, self.rounder, a)
        if self.w is not None:
            z = rows["z"]
            linear.scores(chunk.indptr, chunk.indices, chunk.data, self.w, self.bias, z)
            if not np.isfinite(z).all():
                row = chunk.first_row + int(np.argmin(np.isfinite(z)))
                raise CorruptError(f"row {row + 1}: its score is not finite; run `streamcut check --read-data`")

    def finish(self, a: np.ndarray | None, rows: Rows, first_row: int) -> None:
        """Nothing is left to do."""

    def merge(self, total: np.ndarray | None, part: np.ndarray | None) -> np.ndarray | None:
        if total is not None:
            vectors.add(total, part)
        return total
