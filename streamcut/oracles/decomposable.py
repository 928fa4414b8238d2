"""The oracle of sums over rows: cuts, losses and steps along lines. A solver never sees a row, a shard or a file.

Oracles whose row state is kept in checkpoints, wherever it lies, are KeptRows.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2, SQUARES
from streamcut.compiled import vectors
from streamcut.execution.feed import Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import UNSEEN, Drift, Grids, RowScale, above, loss_above
from streamcut.io.manifest import Statistics
from streamcut.models.certificate import Cut
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.kept import Kept
from streamcut.oracles.row_passes import CutSums, Totals
from streamcut.protocols import Sums

_BEGIN = "rows."  # prefix of the names in a checkpoint


class KeptRows(Kept):
    """An oracle on the rows of `_runner`: its row state is kept, too, except for the arrays `made_anew`; release it after use."""

    _runner: Runner
    made_anew: tuple[str, ...] = ()

    def saved(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        record, arrays = super().saved()
        rows = self._runner.row_state.arrays
        return record, {**arrays, **{f"{_BEGIN}{name}": rows[name] for name in rows if name not in self.made_anew}}

    def restore(self, record: dict[str, object], stored: StoredCheckpoint) -> None:
        super().restore(record, stored)
        rows = self._runner.row_state
        for name, array in rows.arrays.items():
            if name not in self.made_anew:
                stored.fill(f"{_BEGIN}{name}", array, partial(rows.release, 0, rows.n_rows))

    def release(self) -> None:
        """Release the pages of the row state, if they live in scratch files."""
        self._runner.row_state.release(0, self._runner.row_state.n_rows)


_LONGER = 1.0 + 1e-6  # squares of rows were summed in float64


def row_scale(statistics: Statistics, bias: float, width: int = 1) -> RowScale:
    """Row sizes, including a bias feature; with several classes a row adds to its own class, and as much to others."""
    more = bias != 0.0
    return RowScale(
        rows=statistics.n_rows,
        entries=(statistics.nnz + more * statistics.n_rows) * width,
        row_entries=statistics.max_row_nnz + more,
        length=(math.sqrt(statistics.max_squared_norm + bias * bias) * _LONGER + UNSEEN) * (1.5 if width > 1 else 1.0),
    )


def longest(scale: RowScale, w: np.ndarray) -> float:
    """Upper bound on Σ_j |x_ij w_j| over rows i."""
    return scale.length * math.sqrt(vectors.dot(w, w)) * _LONGER + UNSEEN


_FIRST = 4.0  # σ of the first accelerated pass, in units of the curvature of the dual along a row: shares move by about a quarter


class DecomposableOracle(KeptRows):
    """F(w) = R(w) + C Σ u_i ℓ_i(w) over the rows of a runner, R the `penalty`, w flat (dimension,).

    `total_weight` is M = Σ u_i, known after `start`. `passes`, `traffic` count reads of the data, not work on the row state.

    grids     on which sums over rows are exact; by default for coefficients up to the row weights
    width     numbers of w for each feature, adjacent

    Returned losses and cuts are rigorous: losses are upper bounds in exact arithmetic, cuts carry their error.
    """

    kept: tuple[str, ...] = ("total_weight", "passes", "traffic", "_drift", "_grids", "_magnitudes")
    unit: float = 1.0  # of mean losses, in which tolerances are expressed; known after `start`
    equal: bool = False  # whether targets are numbers, and all the same

    def __init__(
        self, runner: Runner, risk: Any, *, dimension: int, C: float, bias: float, grids: Grids | None = None,
        width: int = 1,
    ) -> None:  # fmt: skip
        self.dimension, self.C = dimension, C
        self.penalty: L2 = SQUARES
        self.total_weight, self.passes = 0.0, 0
        self.raised = 0.0  # by which the last Σ u_i ℓ_i was raised for rounding
        self.traffic = Traffic()
        self._runner, self._risk = runner, risk
        self._bias = bias
        statistics = runner.feed.data.manifest.statistics
        weight = statistics.n_rows if statistics.weight_sum is None else statistics.weight_sum
        self._scale = self._cut_scale = row_scale(statistics, bias, width)  # of all rows, and of the rows of one cut
        self._grids = grids or Grids.holding(vector=max(statistics.max_abs_value, abs(bias)) * weight, weight=weight)
        self._learning = self._grids  # grids of the first pass's totals
        self._width = width
        self._magnitudes = np.zeros(statistics.n_features + (bias != 0.0))  # S of streamcut.foundation.rounding, once known
        self._drift = Drift()

    @property
    def c_bar(self) -> float:
        """C̄ = C·M: the factor of the mean risk."""
        return self.C * self.total_weight

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]:
        """The first pass, at `w` (default 0): the cut there and Σ u_i ℓ_i; sets `total_weight`."""
        raise NotImplementedError

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        """One pass: the cut at w and Σ u_i ℓ_i(w)."""
        raise NotImplementedError

    def step(self, k: float, w_b: np.ndarray) -> float:
        """Make w_b + k(w − w_b) the best point, `w_b` being already moved; returns Σ u_i ℓ_i there. The data is not read."""
        raise NotImplementedError

    def steepest_at_zero(self) -> float:
        """max_j |∂R/∂w_j| of the mean loss R at w = 0; this is the first pass, like `start`.

        For λ at or above C̄ times this the elastic net has w = 0. It is the least such λ if R has a gradient at 0.
        """
        return float(np.abs(self.start()[0].a).max(initial=0.0))

    def refine(self) -> bool:
        """From the next pass on compute cuts with nearly exact sums, at twice the work; False if they are, or cannot be."""
        return False

    def sigma_for(self, C: float, whole: float = 1.0) -> float:
        """σ of the first accelerated pass with this C; 1: plain. `whole` is the curvature at which a share moves by 1."""
        statistics = self._runner.feed.data.manifest.statistics
        length = float(self._magnitudes.sum()) / self.total_weight
        curvature = C * self.total_weight * length * length / max(statistics.nnz, statistics.n_rows)
        return min(1.0, _FIRST * whole / curvature) if curvature > 0.0 else 1.0

    def column_sizes(self) -> np.ndarray:
        """Σ_i u_i |x_ij| of each feature j (d,), approximately."""
        return self._magnitudes[: len(self._magnitudes) - (self._bias != 0.0)]

    def doubt(self, k: float) -> float:
        """Estimated rounding that a `step` of k would add to Σ u_i ℓ_i, before it is taken. The data is not read."""
        return self._risk.rounding.slope * self._drift.ahead(k, self._scale)

    def _read(self, work: Pass[Sums]) -> Sums:
        sums, report = self._runner.run(work)
        self.passes += 1
        self.traffic += report.traffic
        return sums

    def _learn(self, totals: Totals) -> None:
        """Take over the totals of the first pass."""
        self.total_weight = totals.weight
        error = self._learning.vector_error(self._scale.rows, self._scale.rows)
        np.add(totals.magnitudes, error, out=self._magnitudes)
        self.raised = 2.0 * self.mean_loss_at_zero * self._learning.weight_error(self._scale.rows)  # where the loss at 0 applies

    @property
    def mean_loss_at_zero(self) -> float:
        """R(0), approximately."""
        return 1.0

    @property
    def loss_at_zero(self) -> float:
        """Upper bound on Σ u_i ℓ_i at w = 0."""
        return self._all_weight()

    def _all_weight(self) -> float:
        """Upper bound on Σ u_i."""
        return above(self.total_weight, self._learning.weight_error(self._scale.rows))

    def _spread(self, w: np.ndarray) -> float:
        """⟨S, |w|⟩ of streamcut.foundation.rounding."""
        return (1.0 + (self._width > 1)) * vectors.spread(w, self._width, self._magnitudes)

    def _scored(self, w: np.ndarray) -> None:
        """Note that the margins of w are computed, or about to be."""
        self._drift.scored = self._spread(w)

    def _loss_at(self, w: np.ndarray, computed: np.ndarray) -> float:
        """Σ u_i ℓ_i(w), from the sums of a pass at w itself."""
        return self._loss_above(self._summed(computed), self._drift.fresh(self._spread(w), self._scale))

    def _summed(self, sums: np.ndarray) -> float:
        """The sum represented by (total, rounding lost)."""
        return float(sums.sum())

    def _loss_above(self, computed: float, error: float) -> float:
        loss = loss_above(computed, self._scale.rows, self.total_weight, error, self._risk.rounding)
        self.raised = loss - computed
        return loss

    def _cut(self, sums: CutSums) -> Cut:
        assert sums.a is not None
        return self._divided(sums.a, sums.b)

    def _divided(self, a: np.ndarray, b: np.ndarray) -> Cut:
        """The cut of the sums a (folds, D), which is overwritten, and b [coarse, rest]."""
        M = self.total_weight
        if len(a) > 1:
            vectors.add(a[0], a[1])
        a[0] /= M
        offset = float(b.sum()) / M
        scale = self._cut_scale
        return Cut(a[0], offset, scale.cut_error(self._grids, scale.length * offset, offset, M, self._risk.rounding))
