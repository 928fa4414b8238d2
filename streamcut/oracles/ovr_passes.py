"""The passes of one-vs-rest training: all active classes in one pass over the data.

Row state: `z` (K,) margins of the active classes at their last scored w, in their order; `z_b` (K,) margins of every class at
its best point; `t` the row's class; `u` row weights (only when not all 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.bundle.line_searches import BINS
from streamcut.chunk import Chunk
from streamcut.compiled import multiclass, ovr, records, vectors
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.losses.classes import ClassesLoss
from streamcut.oracles.crammer_singer_passes import fill
from streamcut.oracles.row_passes import RowPass, Totals
from streamcut.rounding import Grids


@dataclass(slots=True)
class OvrSums:
    """Sums over rows, none divided by M: `a` (D, A) and `b` (A) of the cuts; what the first pass learns."""

    a: np.ndarray
    b: np.ndarray
    totals: Totals | None = None


@dataclass(frozen=True, slots=True)
class OvrPass(Pass):
    """Margins at column a of `W` (D, A) against class active[a], and its cut at z_b + κ_a (z − z_b).

    `first` also fills `t` and `u`, and sums u.
    """

    risk: ClassesLoss
    grids: Grids
    W: np.ndarray
    active: np.ndarray
    kappa: np.ndarray
    bias: float
    first: bool = False
    interruptible: ClassVar[bool] = True

    def begin(self) -> OvrSums:
        totals = Totals.nothing(len(self.W)) if self.first else None
        return OvrSums(np.zeros(self.W.shape), np.zeros(len(self.active)), totals)

    def visit_chunk(self, sums: OvrSums, rows: Rows, chunk: Chunk) -> None:
        A, u, csr = len(self.active), chunk.weight, (chunk.indptr, chunk.indices, chunk.data)
        if sums.totals is not None:
            sums.totals.add(chunk, u, fill(rows, chunk, self.risk, self.grids), self.bias, self.grids)
        scores = np.empty((chunk.n_rows, A))
        multiclass.scores(*csr, self.W, self.bias, scores)
        taken, added = records.Rows(*csr, rows["t"], u), records.CutSums(sums.a, sums.b)
        room = np.empty(A, np.int64), np.empty(A)
        bad = ovr.cut(taken, self.active, scores, rows["z_b"], self.kappa, self.bias, self.grids, rows["z"], added, *room)
        if bad >= 0:
            raise CorruptError(f"row {chunk.first_row + bad + 1}: a score is not finite; run `streamcut check --read-data`")

    def merge(self, total: OvrSums, part: OvrSums) -> OvrSums:
        vectors.add(total.a.reshape(-1), part.a.reshape(-1))
        total.b += part.b
        if total.totals is not None:
            assert part.totals is not None
            total.totals.merge(part.totals)
        return total


@dataclass(frozen=True, slots=True)
class _SumsPass(RowPass):
    """Base of passes over the row state that add up a number for each class, (A, 2) as (total, rounding lost)."""

    active: np.ndarray

    def begin(self) -> np.ndarray:
        return np.zeros((len(self.active), 2))

    def _add(self, values: np.ndarray, rows: Rows, sums: np.ndarray) -> None:
        for value, pair in zip(values, sums, strict=True):
            vectors.accumulate(value if "u" not in rows else rows["u"] * value, pair)

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        for ours, theirs in zip(total, part, strict=True):
            vectors.accumulate(theirs, ours)
        return total


@dataclass(frozen=True, slots=True)
class SlopesPass(_SumsPass):
    """Slopes at k = 0 of the losses along z_b + k(z − z_b)."""

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        values = np.empty((len(self.active), len(rows["t"])))
        ovr.slopes_at_zero(self.active, rows["z_b"], rows["z"], values)
        self._add(values, rows, sums)


@dataclass(frozen=True, slots=True)
class StepPass(_SumsPass):
    """z_b += k_a (z − z_b) in the row state, and the losses there."""

    k: np.ndarray

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        values = np.empty((len(self.active), len(rows["t"])))
        ovr.step(self.active, rows["z_b"], rows["z"], self.k, values)
        self._add(values, rows, sums)


@dataclass(frozen=True, slots=True)
class HistogramsPass(RowPass):
    """Jumps of the breakpoints in the bins of each class: bin j begins at low + j width."""

    active: np.ndarray
    low: np.ndarray
    width: np.ndarray

    def begin(self) -> np.ndarray:
        return np.zeros((len(self.active), BINS))

    def visit_rows(self, jumps: np.ndarray, rows: Rows) -> None:
        ovr.breakpoint_histograms(self.active, rows["z_b"], rows["z"], rows.get("u"), self.low, self.width, jumps)

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        total += part
        return total
