"""Interior points over all cached rows (streamcut.oracles.interior), one column after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from streamcut.compiled.column_records import Places
from streamcut.compiled.records import CachedRows
from streamcut.compiled.vectors import dot
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.losses.loss import Loss
from streamcut.oracles.columns_cache import ColumnsCache
from streamcut.oracles.interior import dense, solve_rows


@dataclass(slots=True)
class Solving:
    """`w` (D, A) after the steps of cached rows, and by column the weights (D,) that solve for them."""

    w: np.ndarray
    points: dict[int, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SolvingPass(Pass):
    """Set the shares of a single lane's cached rows to those that solve for all of them, at `w` (D, A). The data is not read.

    near    (D, A) starting point
    chosen  the columns (A,) to solve; enough (A): the gaps to reach, approximately
    """

    caches: Mapping[int, ColumnsCache]
    loss: Loss
    columns: Places
    w: np.ndarray
    near: np.ndarray
    chosen: np.ndarray
    enough: np.ndarray
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("fold",)

    def begin(self, first_row: int) -> Solving:
        return Solving(self.w.copy())

    def visit_rows(self, solving: Solving, rows: Rows) -> None:
        """Does nothing: cached rows come from any block, and `finish` handles them all."""

    def finish(self, solving: Solving, rows: Rows, first_row: int) -> None:
        cache = self.caches[first_row]
        cached, fold = cache.gathered(), rows.get("fold")
        folds = None if fold is None else fold[cached.number - first_row]
        X = dense(cached, len(self.w), self.columns.bias)
        for a in np.flatnonzero(self.chosen).tolist():
            self._solve(solving, a, X, cached, folds)

    def _solve(self, solving: Solving, a: int, X: np.ndarray, cached: CachedRows, folds: np.ndarray | None) -> None:
        """Move column a by the best fraction of a step; rows of the left-out fold stay as they are."""
        c, target = self.columns.cost[a] * cached.weight, np.zeros(len(X))
        if self.columns.positive is None:
            A, target = X, np.asarray(cached.target, np.float64)
        else:
            A = X * np.where(cached.target == self.columns.positive[a], 1.0, -1.0)[:, None]
        if folds is not None and self.columns.left_out is not None:
            c = np.where(folds == self.columns.left_out[a], 0.0, c)
        w, before = np.ascontiguousarray(solving.w[:, a]), cached.share[:, a]
        given: tuple[Any, ...] = target, before, w, np.ascontiguousarray(self.near[:, a]), float(self.enough[a])
        share, solved = solve_rows(self.loss, A, c, *given)
        if not np.isfinite(solved.delta @ solved.delta + solved.point @ solved.point + solved.gain):
            return
        slope, curvature = solved.gain - dot(w, solved.delta), dot(solved.delta, solved.delta)
        theta = min(1.0, max(0.0, slope / curvature)) if curvature > 0.0 else 0.0
        cached.share[:, a] = np.where(c > 0.0, before + theta * (share - before), before)
        solving.w[:, a] += theta * solved.delta
        solving.points[a] = solved.point

    def merge(self, total: Solving, part: Solving) -> Solving:
        raise NotImplementedError("interior points need a single lane")
