"""The passes of the softmax loss, by the names of streamcut.oracles.row_passes.

Row state, w and cuts: those of streamcut.oracles.crammer_singer_passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import softmax, vectors
from streamcut.compiled.records import Rows as CsrRows
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.oracles import crammer_singer_passes, row_passes
from streamcut.oracles.row_passes import CutSums


class _Cutting:
    """What takes cuts: every row into the columns of all classes."""

    __slots__ = ()

    def _cut(self, sums: CutSums, chunk: Chunk, target, u, z_b, z, kappa: float, bias: float) -> None:
        assert sums.a is not None
        rows, K = CsrRows(chunk.indptr, chunk.indices, chunk.data, target, u), z.shape[1]
        softmax.cut(rows, z_b, z, kappa, bias, self.grids, sums.a[0].reshape(-1, K), sums.b)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class ScorePass(_Cutting, crammer_singer_passes.ScorePass):
    """As that of Crammer and Singer's loss."""


@dataclass(frozen=True, slots=True)
class CutPass(_Cutting, crammer_singer_passes.CutPass):
    """As that of Crammer and Singer's loss."""


@dataclass(frozen=True, slots=True)
class SlopesPass(row_passes.RowPass):
    """Slope and curvature of the loss at z_b + k(z − z_b), each (total, rounding lost)."""

    k: float

    def begin(self) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(2), np.zeros(2)

    def visit_rows(self, sums: tuple[np.ndarray, np.ndarray], rows: Rows) -> None:
        softmax.slopes(rows["t"], rows["z_b"], rows["z"], self.k, rows.get("u"), *sums)

    def merge(self, total, part):
        for ours, theirs in zip(total, part, strict=True):
            vectors.accumulate(theirs, ours)
        return total


@dataclass(frozen=True, slots=True)
class StepPass(crammer_singer_passes.StepPass):
    """As that of Crammer and Singer's loss."""

    kernels: ClassVar[Any] = softmax


@dataclass(frozen=True, slots=True)
class LossPass(crammer_singer_passes.LossPass):
    """As that of Crammer and Singer's loss."""

    kernels: ClassVar[Any] = softmax
