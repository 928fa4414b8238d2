"""The oracle of Newton's method for a risk of pairs: passes for a cut that also sum a curvature of the risk there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.compiled import pair_curvature, second_order, vectors
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk
from streamcut.losses.pairs import Cells, Pairs, PairsOfLevels
from streamcut.models.certificate import Cut
from streamcut.oracles.global_passes import SumPass
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.oracles.second_order import dense_rows, quadratic_minimum

NEAR = ("up", "down")  # of the row state: see streamcut.compiled.pair_curvature


@dataclass(slots=True)
class CurvedPairSums:
    """Σ c_i x_i (folds, D), and of the curvature the row terms and the cell terms to subtract, lower triangles (D, D).

    cells  p, q and their weights: of each cell of one group (2, cells, D + 1), or of the current query, `begun` (2,)
    """

    a: np.ndarray
    alone: np.ndarray
    across: np.ndarray
    cells: np.ndarray
    begun: np.ndarray


@dataclass(frozen=True, slots=True)
class CurvedSumPass(SumPass):
    """A SumPass with the curvature. cells: of the one group; None: cells are the queries, or all rows."""

    cells: Cells | None
    dense: bool

    def begin(self, first_row: int) -> CurvedPairSums:  # type: ignore[override]
        D, cells = self.dimension, 1 if self.cells is None else self.cells.count
        room = np.zeros((D, D)), np.zeros((D, D)), np.zeros((2, cells, D + 1)), np.zeros(2, np.int64)
        return CurvedPairSums(SumPass.begin(self, first_row), *room)

    def visit_chunk(self, sums: CurvedPairSums, rows: Rows, chunk: Chunk) -> None:  # type: ignore[override]
        SumPass.visit_chunk(self, sums.a, rows, chunk)
        entries = chunk.indptr, chunk.indices, chunk.data
        up, down = (rows[name].astype(np.float64) for name in NEAR)
        if self.dense:
            together = np.empty((second_order.TOGETHER, self.dimension))
            second_order.add_dense(*entries, up + down, self.bias, together, sums.alone)
        else:
            second_order.add_sparse(*entries, up + down, self.bias, sums.alone)
        if self.cells is None:
            qid = np.zeros(chunk.n_rows, np.int64) if chunk.qid is None else chunk.qid
            pair_curvature.add_to_groups(*entries, qid, up, down, sums.begun, *sums.cells[:, 0], sums.across)
        else:
            z = rows["z_b"]
            pair_curvature.add_to_cells(*entries, self.cells.of(z), up, sums.cells[0])
            pair_curvature.add_to_cells(*entries, self.cells.of(z + 1.0), down, sums.cells[1])

    def finish(self, sums: CurvedPairSums, rows: Rows, first_row: int) -> None:
        if self.cells is None:  # a query that continues in the next lane counts as two
            pair_curvature.end_group(*sums.cells[:, 0], sums.across)

    def merge(self, total: CurvedPairSums, part: CurvedPairSums) -> CurvedPairSums:  # type: ignore[override]
        pairs = (total.a, part.a), (total.alone, part.alone), (total.across, part.across), (total.cells, part.cells)
        for sums, more in pairs:
            vectors.add(sums.reshape(-1), more.reshape(-1))
        return total

    @staticmethod
    def curvature(sums: CurvedPairSums) -> np.ndarray:
        """H (D, D); only the lower triangle is set."""
        for p, q in zip(*sums.cells, strict=True):
            pair_curvature.end_group(p, q, sums.across)
        return sums.alone + sums.across


class CurvedPairsOracle(GlobalOracle):
    """A GlobalOracle for pairs that also has slope and curvature of m·R at the best point.

    slope, curvature   −m∇R (D,) and the lower triangle of H (D, D), at the best point of the last `cut_at_best`
    known              whether they belong to the current best point
    useful             whether the last step from them gained enough, set by the solver
    """

    kept = (*GlobalOracle.kept, "known", "useful", "slope", "curvature")
    made_anew = (*GlobalOracle.made_anew, *NEAR)

    def __init__(self, runner: Runner, risk: Pairs | PairsOfLevels, **options: Any) -> None:
        super().__init__(runner, risk, **options)
        self.slope, self.curvature = np.zeros(self.dimension), np.zeros((self.dimension, self.dimension))
        self.known, self.useful = False, True
        self._dense = dense_rows(runner.feed.data.manifest.statistics, self.dimension)
        for name in NEAR:
            runner.row_state.add(name, np.float32)

    def cut_at_best(self) -> Cut:
        """One pass: the cut at the best point; slope and curvature are those there from now on."""
        _, offset = self._value(0.0)
        cells = self._groups.near()
        sums = self._read(CurvedSumPass(self.dimension, self._bias, self._grids, cells, self._dense))
        cut = self._cut_of(sums.a, offset)
        self.slope, self.curvature = -self._n * cut.a, self._n * CurvedSumPass.curvature(sums)
        self.known = True
        return cut

    def cut_between(self, mu: float) -> Cut:
        self.known = False
        return super().cut_between(mu)

    def newton(self, w_b: np.ndarray) -> np.ndarray | None:
        """argmin of ½‖w‖² + C·(the quadratic model of m·R at the best point w_b); None where float64 finds none."""
        return quadratic_minimum(self.penalty, self.C, w_b, self.slope, self.curvature)
