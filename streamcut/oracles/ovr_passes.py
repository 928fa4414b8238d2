"""The passes of one-vs-rest training: all active classes in one pass over the data.

Row state: `z` (K,) margins of the active classes at their last scored w, in their order; `z_b` (K,) margins of every class at
its best point; `t` the row's class; `u` row weights (only when not all 1).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.bundle.line_searches import BINS
from streamcut.chunk import Chunk
from streamcut.compiled import multiclass, ovr, records, vectors
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.losses.classes import OneVsRest
from streamcut.losses.loss import Loss
from streamcut.oracles.crammer_singer_passes import fill
from streamcut.oracles.row_passes import RowPass, Totals
from streamcut.rounding import Grids


def constants(loss: Loss, columns: int) -> np.ndarray:
    """Room for the constants of so many cuts, and for what their rounding is measured by: compiled.ovr.add_constant."""
    return np.zeros((3 if loss.sized() else 1, columns))


@dataclass(slots=True)
class OvrSums:
    """Sums over rows, none divided by M: `a` (D, A) and `b` (1 or 3, A) of the cuts; what the first pass learns."""

    a: np.ndarray
    b: np.ndarray
    totals: Totals | None = None


@dataclass(frozen=True, slots=True)
class OvrPass(Pass):
    """Margins at column a of `W` (D, A) against class active[a], and its cut at z_b + κ_a (z − z_b).

    `first` also fills `t` and `u`, and sums u.
    """

    risk: OneVsRest
    grids: Grids
    W: np.ndarray
    active: np.ndarray
    kappa: np.ndarray
    bias: float
    first: bool = False
    interruptible: ClassVar[bool] = True
    summed: ClassVar[tuple[str, ...]] = ("a",)

    def begin(self) -> OvrSums:
        totals = Totals.nothing(len(self.W)) if self.first else None
        return OvrSums(np.zeros(self.W.shape), constants(self.risk.loss, len(self.active)), totals)

    def visit_chunk(self, sums: OvrSums, rows: Rows, chunk: Chunk) -> None:
        A, u, csr = len(self.active), chunk.weight, (chunk.indptr, chunk.indices, chunk.data)
        if sums.totals is not None:
            sums.totals.add(chunk, u, fill(rows, chunk, self.risk, self.grids), self.bias, self.grids)
        scores = np.empty((chunk.n_rows, A))
        multiclass.scores(*csr, self.W, self.bias, scores)
        taken, added = records.Rows(*csr, rows["t"], u), records.CutSums(sums.a, sums.b)
        room = np.empty(A, np.int64), np.empty(A)
        common = self.active, scores, rows["z_b"], self.kappa, self.bias, self.grids, rows["z"]
        bad = ovr.cut(self.risk.loss, taken, *common, added, *room)
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
class _ClassesPass(RowPass):
    """Base of passes over the row state of the active classes."""

    loss: Loss
    active: np.ndarray

    def _values(self, rows: Rows) -> np.ndarray:
        """Room for a number of each class and row."""
        return np.empty((len(self.active), len(rows["t"])))

    def _pairs(self) -> np.ndarray:
        """Sums of each class, (A, 2) as (total, rounding lost)."""
        return np.zeros((len(self.active), 2))


def _add(values: np.ndarray, rows: Rows, sums: np.ndarray) -> None:
    for value, pair in zip(values, sums, strict=True):
        vectors.accumulate(value if "u" not in rows else rows["u"] * value, pair)


def _merge(total: np.ndarray, part: np.ndarray) -> None:
    for ours, theirs in zip(total, part, strict=True):
        vectors.accumulate(theirs, ours)


@dataclass(frozen=True, slots=True)
class SlopesAtZeroPass(_ClassesPass):
    """Slopes at k = 0 of piecewise linear losses along z_b + k(z − z_b)."""

    def begin(self) -> np.ndarray:
        return self._pairs()

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        values = self._values(rows)
        ovr.slopes_at_zero(self.loss, self.active, rows["z_b"], rows["z"], values)
        _add(values, rows, sums)

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        _merge(total, part)
        return total


@dataclass(frozen=True, slots=True)
class SlopesPass(_ClassesPass):
    """Slopes and curvatures at k_a of smooth losses along z_b + k(z − z_b)."""

    k: np.ndarray

    def begin(self) -> tuple[np.ndarray, np.ndarray]:
        return self._pairs(), self._pairs()

    def visit_rows(self, sums: tuple[np.ndarray, np.ndarray], rows: Rows) -> None:
        slopes, curvatures = self._values(rows), self._values(rows)
        ovr.slopes(self.loss, self.active, rows["z_b"], rows["z"], self.k, slopes, curvatures)
        for values, pairs in zip((slopes, curvatures), sums, strict=True):
            _add(values, rows, pairs)

    def merge(self, total, part):
        for ours, theirs in zip(total, part, strict=True):
            _merge(ours, theirs)
        return total


@dataclass(frozen=True, slots=True)
class _LossesPass(_ClassesPass):
    """Base of passes that sum losses; also the largest shares (A), of losses that have no largest one."""

    def begin(self) -> tuple[np.ndarray, np.ndarray]:
        return self._pairs(), np.zeros(len(self.active))

    def visit_rows(self, sums: tuple[np.ndarray, np.ndarray], rows: Rows) -> None:
        values, (losses, steepest) = self._values(rows), sums
        ovr.step(self.loss, self.active, *self.place(rows), values, steepest)
        _add(values, rows, losses)

    @abstractmethod
    def place(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(z_b, z, k (A)): losses are those at z_b + k_a (z − z_b), which z_b becomes in place."""

    def merge(self, total, part):
        _merge(total[0], part[0])
        np.maximum(total[1], part[1], out=total[1])
        return total


@dataclass(frozen=True, slots=True)
class StepPass(_LossesPass):
    """z_b += k_a (z − z_b) in the row state; the losses there."""

    k: np.ndarray

    def place(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return rows["z_b"], rows["z"], self.k


@dataclass(frozen=True, slots=True)
class LossPass(_LossesPass):
    """The losses at z."""

    def place(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        there, still = np.zeros(rows["z_b"].shape), np.zeros(len(self.active))
        there[:, self.active] = rows["z"][:, : len(self.active)]
        return there, rows["z"], still


@dataclass(frozen=True, slots=True)
class HistogramsPass(_ClassesPass):
    """Jumps of the breakpoints in the bins of each class: bin j begins at low + j width."""

    low: np.ndarray
    width: np.ndarray

    def begin(self) -> np.ndarray:
        return np.zeros((len(self.active), BINS))

    def visit_rows(self, jumps: np.ndarray, rows: Rows) -> None:
        ovr.breakpoint_histograms(self.loss, self.active, rows["z_b"], rows["z"], rows.get("u"), self.low, self.width, jumps)

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        total += part
        return total
