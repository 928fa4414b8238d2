"""What `bundle-dca` sees of data with K classes: two cuts a pass.

Row state: that of streamcut.execution.multiclass_passes, and `codes` uint16 (cuts, K): the shares of a row in each cut, by the
cut's slot in the bundle (streamcut.passes.multiclass_dual).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.chunk import Chunk
from streamcut.errors import CorruptError
from streamcut.execution.dual_passes import Ascent
from streamcut.execution.linear_passes import Grids, RowPass
from streamcut.execution.multiclass_oracle import MulticlassOracle
from streamcut.execution.multiclass_passes import targets
from streamcut.execution.oracle import Cut
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Statistics
from streamcut.passes import multiclass_dual, vectors
from streamcut.risks.crammer_singer import CrammerSinger

SWEEPS = 5  # over a group of rows; twenty take a third of the passes where rows are few, but twice the time everywhere
_GROUP_NNZ = 1 << 19  # rows of a group stay in the last cache level; groups of an eighth need up to twice the passes
_GROUP_ROWS = 8192


def group_rows(statistics: Statistics) -> int:
    """Rows that are visited in random order among themselves; it depends on the whole data, not on shards."""
    return min(max(1, _GROUP_NNZ * statistics.n_rows // max(statistics.nnz, 1)), _GROUP_ROWS, statistics.n_rows)


def room_bytes(statistics: Statistics, classes: int) -> int:
    """Memory that a worker needs for the group at work."""
    return 8 * group_rows(statistics) * (classes + 2)


class MulticlassDualOracle(MulticlassOracle):
    """A multiclass oracle that also does dual coordinate ascent. Rows remember their shares in `max_cuts` cuts."""

    def __init__(self, runner: PassRunner, risk: CrammerSinger, *, C: float, bias: float, max_cuts: int) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True)
        runner.row_state.add("codes", np.uint16, (max_cuts, risk.classes))
        self._group = group_rows(runner.feed.data.manifest.statistics)

    def ascend(self, ascent: Ascent, *, first: bool = False) -> tuple[Cut, Cut]:
        """One pass: the scores of w, the predicted cut, and the cut of the shares after a sweep; `first` sets `total_weight`.

        Each is Σ_i Σ_k π_ik ((e_k − e_{y_i}) x_iᵀ, 1) over k ≠ y_i, π_ik ≥ 0, Σ_k π_ik ≤ u_i / M, summed from its shares alone:
        valid whatever rows remembered.
        """
        order = np.random.default_rng(self.passes).permutation(self._group)
        sums = self._read(DualPass(self._risk, self._grids, self.C, self._bias, ascent, order, first))
        if first:
            self.total_weight = sums.weight
        sums.cuts /= self.total_weight
        b = sums.b / self.total_weight
        return Cut(sums.cuts[:, 0].reshape(-1), float(b[0])), Cut(sums.cuts[:, 1].reshape(-1), float(b[1]))

    def follow(self, merges: list[Merge]) -> None:
        """Rows' shares follow the bundle's merges. The data is not read."""
        if merges:
            self._runner.run(MergePass(merges))


@dataclass(slots=True)
class DualSums:
    """The running W flat, until the lane is at its end; both cuts (D, 2, K) and their Σ π, not divided by M; Σ u."""

    w: np.ndarray | None
    cuts: np.ndarray
    b: np.ndarray = field(default_factory=lambda: np.zeros(2))
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class DualPass:
    """Scores, predicted cut and a sweep of dual ascent. `first` also fills `t` and `u`, and sums u.

    Rows are visited in groups of `len(order)` consecutive ones, counted from row 0 of the data set, each in that order.
    """

    risk: CrammerSinger
    grids: Grids
    C: float
    bias: float
    ascent: Ascent
    order: np.ndarray
    first: bool
    needs_data: ClassVar[bool] = True
    can_be_broken_off: ClassVar[bool] = True

    @property
    def alignment(self) -> int:
        """Blocks hold whole groups."""
        return len(self.order)

    def begin(self) -> DualSums:
        K = self.risk.classes
        return DualSums(self.ascent.w.copy(), np.zeros((len(self.ascent.w) // K, 2, K)))

    def visit(self, sums: DualSums, rows: Rows, chunk: Chunk | None) -> None:
        assert chunk is not None
        assert sums.w is not None
        now, u, K = self.ascent, chunk.weight, self.risk.classes
        if self.first:
            sums.weight += float(chunk.n_rows) if u is None else self.grids.weight_sum(u)
            rows["t"][:] = targets(self.risk, chunk)
            if "u" in rows:
                rows["u"][:] = u
        slots = np.flatnonzero(now.mixture)
        bad = multiclass_dual.ascend(
            chunk.indptr, chunk.indices, chunk.data, rows["t"], u, rows["z_b"], now.kappa, slots, now.mixture[slots],
            self.C, self.bias, now.cut, now.dual, self.grids.vector, self.grids.weight,
            self.order, chunk.first_row % len(self.order), SWEEPS,
            now.w.reshape(-1, K), sums.w.reshape(-1, K), sums.cuts, rows["z"], rows["codes"], sums.b,
            np.empty((len(self.order), K)), np.empty(len(self.order), np.int64), np.empty(K), np.empty(K), np.empty(K, np.int64),
        )  # fmt: skip
        if bad >= 0:
            raise CorruptError(f"row {chunk.first_row + bad + 1}: a score is not finite; run `streamcut check --read-data`")

    def finish(self, sums: DualSums, rows: Rows, first_row: int) -> None:
        """The running W of a lane is of no use to others: cuts come from shares alone."""
        sums.w = None

    def merge(self, total: DualSums, part: DualSums) -> DualSums:
        vectors.add(total.cuts.reshape(-1), part.cuts.reshape(-1))
        total.b += part.b
        total.weight += part.weight
        return total


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    merges: list[Merge]

    def begin(self) -> None:
        return None

    def visit(self, nothing: None, rows: Rows, chunk: Chunk | None) -> None:
        for merge in self.merges:
            multiclass_dual.merge_shares(rows["codes"], merge.into, merge.gone, merge.share)

    def merge(self, total: None, part: None) -> None:
        return None
