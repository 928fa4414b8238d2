"""What `bundle-dca` sees of data with K classes under the softmax loss: two cuts a pass.

Row state: that of streamcut.oracles.crammer_singer_passes, and `codes` uint16 (cuts, K): the shares of a row in each cut, by the
cut's slot in the bundle (streamcut.compiled.softmax_dual).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.bundle import Merge
from streamcut.compiled import records, softmax_dual
from streamcut.execution.row_state import Rows
from streamcut.foundation.rounding import Grids
from streamcut.oracles.dual.crammer_singer import ClassesDualPass, MulticlassDualOracle
from streamcut.oracles.dual.crammer_singer_cache import ClassesCache, class_buffers
from streamcut.oracles.row_passes import RowPass
from streamcut.oracles.softmax import SoftmaxOracle


@dataclass(frozen=True, slots=True)
class SoftmaxDualPass(ClassesDualPass):
    """A DualPass of the softmax loss. `first` also fills `t` and `u`."""

    kernels: ClassVar[Any] = softmax_dual

    @property
    def steps(self) -> int:
        return self.ascent.visits


class SoftmaxCache(ClassesCache):
    """Rows with a share for each class, which sweeps move by the softmax loss."""

    def _sweep_rows(self, C: float, l1: float | None, bias: float, w: np.ndarray) -> tuple[float, int, float]:
        K = self._classes
        gain = softmax_dual.sweep(self._order, self._rows(), C, bias, l1, w.reshape(-1, K), class_buffers(K))
        return gain, len(self._order), 0.0

    def _write_rows_back(self, part: slice, first_row: int, slot: Any, bias: float, grids: Grids, codes, cuts, sums) -> None:
        changed, buffers = records.CutSums(cuts, sums.reshape(-1)), class_buffers(self._classes)
        softmax_dual.write_back(self._rows().part(part), first_row, slot, bias, grids, codes, changed, buffers)


@dataclass(frozen=True, slots=True)
class MergePass(RowPass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    merges: list[Merge]
    row_arrays: ClassVar[tuple[str, ...]] = ("codes", "t")

    def visit_rows(self, nothing: None, rows: Rows) -> None:
        for merge in self.merges:
            softmax_dual.merge_shares(rows["t"], rows["codes"], merge.into, merge.gone, merge.share)


class SoftmaxDualOracle(MulticlassDualOracle, SoftmaxOracle):
    """A softmax oracle that also does dual coordinate ascent: cuts are those of points of the simplex, one for each row.

    No share is ever at a bound, so sums go on from no others.
    """

    dual_pass: ClassVar[Any] = SoftmaxDualPass
    merging: ClassVar[Any] = MergePass
    cache: ClassVar[Any] = SoftmaxCache
    incremental: ClassVar[bool] = False
