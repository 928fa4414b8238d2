"""The passes of joint losses of all classes, by the names of streamcut.oracles.row_passes.

Row state: `z` (K,) scores at the last scored w, `z_b` (K,) those at the best point w_b, `t` the row's class, `u` row weights
(only when not all 1). w and cuts are flat: the K numbers of a feature are adjacent.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from streamcut.compiled import multiclass, vectors
from streamcut.compiled.records import Rows as CsrRows
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.joint import JointLoss
from streamcut.oracles import row_passes
from streamcut.oracles.row_passes import CutSums, Totals, weight_sum


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


def fill(rows: Rows, chunk: Chunk, risk: ClassesRisk, grids: Grids) -> float:
    """Fill the arrays of classes and weights of `rows`, where present; returns Σ u."""
    if "t" in rows:
        rows["t"][:] = targets(risk, chunk)
    if "u" in rows:
        rows["u"][:] = chunk.weight
    return float(chunk.n_rows) if chunk.weight is None else float(weight_sum(chunk.weight, grids)[0])


@dataclass(frozen=True, slots=True)
class ScorePass(Pass):
    """The loss and the cut at `w`: rows go into the columns of their target and their rival, or of all classes.

    `first` also fills `t`, `u`, sums u.
    """

    risk: ClassesRisk
    grids: Grids
    w: np.ndarray
    bias: float
    at_w: bool = True
    first: bool = False
    interruptible: ClassVar[bool] = True

    merge = staticmethod(row_passes.merge)

    def begin(self, first_row: int) -> CutSums:
        D = len(self.w)
        return CutSums(np.zeros((1, D)), totals=Totals.nothing(D // self.risk.classes) if self.first else None)

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        K = self.risk.classes
        z = rows["z"] if "z" in rows else np.empty((chunk.n_rows, K))
        target, u = targets(self.risk, chunk), chunk.weight
        if sums.totals is not None:
            sums.totals.add(chunk, u, fill(rows, chunk, self.risk, self.grids), self.bias, self.grids)
        multiclass.scores(chunk.indptr, chunk.indices, chunk.data, self.w.reshape(-1, K), self.bias, z)
        if (bad := self.risk.losses(target, u, z, sums.loss)) >= 0:
            raise CorruptError(f"row {chunk.first_row + bad + 1}: a score is not finite; see `streamcut info --check`")
        assert sums.a is not None
        a = sums.a[0].reshape(-1, K)
        if self.risk.loss.smooth:
            csr = CsrRows(chunk.indptr, chunk.indices, chunk.data, target, u)
            multiclass.cut(self.risk.loss, csr, z, self.bias, self.grids, a, sums.b)
            return
        rival = np.empty_like(target)
        multiclass.rivals(self.risk.loss, target, z, rival)
        multiclass.scatter(chunk.indptr, chunk.indices, chunk.data, target, rival, u, self.bias, self.grids.vector, a)
        wrong = target != rival
        sums.b += weight_sum(wrong if u is None else u[wrong], self.grids)


@dataclass(frozen=True, slots=True)
class _SumPass(row_passes.RowPass):
    """Base of passes that sum one number per row, as (total, rounding lost)."""

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros(2)

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        values = np.empty(len(rows["t"]))
        self.fill(rows, values)
        vectors.accumulate(values if "u" not in rows else rows["u"] * values, sums)

    @abstractmethod
    def fill(self, rows: Rows, out: np.ndarray) -> None:
        """The number of each row."""


@dataclass(frozen=True, slots=True)
class StepPass(_SumPass):
    """z_b += k (z − z_b) in the row state, and the loss there."""

    k: float
    loss: JointLoss

    def fill(self, rows: Rows, out: np.ndarray) -> None:
        multiclass.step(self.loss, rows["t"], rows["z_b"], rows["z"], self.k, out)


@dataclass(frozen=True, slots=True)
class LossPass(_SumPass):
    """The loss at z."""

    loss: JointLoss

    def fill(self, rows: Rows, out: np.ndarray) -> None:
        multiclass.losses(self.loss, rows["t"], rows["z"], out)


@dataclass(frozen=True, slots=True)
class SlopesPass(row_passes.RowPass):
    """The slope of a smooth loss at z_b + k(z − z_b), as (total, rounding lost)."""

    k: float
    loss: JointLoss

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros(2)

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        multiclass.slopes(self.loss, rows["t"], rows["z_b"], rows["z"], self.k, rows.get("u"), sums)
