"""The oracle of risks that need the scores of all rows at once: pairs, and measures of a whole labelling.

An exact cut takes two passes: one for scores, which are sorted here to find each row's coefficient, one for the weighted sum.

Row state, all in whole arrays that this process uses between passes:

    code  the risk's encoding of a row's label        z    scores of the w scored last
    z_b   scores of the best point (`keep_best`)      c    coefficients of the rows in the next cut

Independent groups of rows are processed in blocks of whole groups (Groups); where all rows interact, they
may exceed memory (OneGroup). Blocks depend on the data alone and their sums are added exactly, so neither threads
nor shards nor memory change a bit. An interrupted run does not wait for the end of a sort: these steps are broken off
like passes, except those that move the best point.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamcut.bundle.line_search import minimise_by_tangents
from streamcut.bundle.penalty import SQUARES
from streamcut.compiled import score_ranges, vectors
from streamcut.execution.feed import Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import EPSILON, CutError, Drift, Grids, above, gamma
from streamcut.losses.scores import OneGroupRisk
from streamcut.models.certificate import Cut
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.decomposable import KeptRows, row_scale
from streamcut.oracles.global_passes import LabelPass, ScoresPass, SumPass
from streamcut.oracles.groups import GroupRisk, Groups, OneGroup
from streamcut.oracles.sorted_scores import RowBlocks
from streamcut.protocols import Sums

_LONGER = 1.0 + 1e-6  # for sums over features in float64


class GlobalOracle(KeptRows):
    """F(w) = ½‖w‖² + C̄ R(w) over the rows of a runner, C̄ = C·(number of rows), with w of length D = d, or d + 1 with a bias.

    It is also the `SmoothLoss` of streamcut.bundle.line_search, from w_b to the w scored last. Losses are m·R, so that
    C is their factor as in the binary task. `passes`, `traffic` count reads of the data.

    workers  threads for blocks of rows
    room     bytes that a risk of one group may use for sorting; None: no limit

    Raises BadInputError in `start` when no two rows can be compared.
    """

    kept: tuple[str, ...] = ("guess", "counted", "_drift", "_grids", "_largest", "_groups")
    made_anew: tuple[str, ...] = ("c",)  # recomputed for each cut

    def __init__(
        self,
        runner: Runner,
        risk: GroupRisk | OneGroupRisk,
        *,
        C: float,
        bias: float,
        keep_best: bool,
        workers: int = 1,
        room: int | None = None,
    ) -> None:
        statistics = runner.feed.data.manifest.statistics
        self.dimension = statistics.n_features + (bias != 0.0)
        self.C = C
        self.penalty = SQUARES
        self.passes = 0
        self.unit, self.equal = 1.0, False
        self.raised = 0.0  # by which the last m·R was raised for rounding
        self.traffic = Traffic()
        self.guess = 1.0
        self._n = statistics.n_rows
        self._runner = runner
        self._bias = bias
        self._size = risk.coefficient_sum
        self._scale = row_scale(statistics, bias)
        self._grids = Grids.holding(vector=self._size * max(statistics.max_abs_value, abs(bias)), weight=1.0)
        self._largest = np.zeros(self.dimension)  # max |x| of every feature, once known
        self._drift = Drift()  # of the row with the largest score error
        self._looked: dict[float, float] = {}  # the risk at steps of this line
        self._held: tuple[float, float, float] | None = None  # the step whose coefficients are in `c`, its risk and offset
        self._before_line: tuple[int, Traffic] | None = None  # `passes`, `traffic` before scores whose step is still to come
        self._blocks = RowBlocks(self._n, lambda: runner.rows, runner.row_state.release, workers, stop=runner.stop)
        self._groups: Groups | OneGroup
        if risk.grouped:
            self._groups = Groups(risk, self._blocks, statistics)
        else:
            self._groups = OneGroup(risk, self._blocks, room)
        for name in ("z", "c") + ("z_b",) * keep_best:
            runner.row_state.add(name)
        runner.row_state.add("code", self._groups.code_type)

    @property
    def c_bar(self) -> float:
        """C̄ = C·(number of rows): the factor of R."""
        return self.C * self._n

    @property
    def counted(self) -> tuple[int, Traffic]:
        """An iteration broken off before its step leaves no trace: it is repeated, and not counted twice."""
        return self._before_line or (self.passes, self.traffic)

    @counted.setter
    def counted(self, counts: tuple[int, Traffic]) -> None:
        self.passes, self.traffic = counts

    def restore(self, record: dict[str, object], stored: StoredCheckpoint) -> None:
        super().restore(record, stored)
        self._groups.weigh()

    def start(self) -> tuple[Cut, float]:
        """A pass for the labels, and one for the cut at w = 0; returns it and m·R(0)."""
        labelled = self._read(LabelPass(self.dimension, self._bias))
        self._largest[:] = labelled.largest
        self._groups.begin(labelled.runs)

        def zero(_: int, rows: Rows) -> None:
            rows["z"][:] = 0.0

        self._blocks.each(zero)
        return self._cut_and_loss(0.0)

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        """Two passes: the cut at w and m·R(w)."""
        self.score(w)
        answer = self._cut_and_loss(self._drift.scored)
        self._before_line = None
        return answer

    def score(self, w: np.ndarray) -> None:
        """One pass: the scores of w, for the line search."""
        self._before_line = self.passes, replace(self.traffic)
        self._drift.scored = self._spread(w)
        self._read(ScoresPass(w, self._bias))
        self._looked.clear()
        if self._held is not None and self._held[0] != 0.0:
            self._held = None  # it belonged to another line

    def cut_between(self, mu: float) -> Cut:
        """One pass: the cut at w_b + μ(w − w_b) from known scores."""
        _, offset = self._value(mu)
        return self._cut(offset)

    def at(self, k: float) -> tuple[float, float]:
        """m·R at w_b + k(w − w_b) and its slope in k. The data is not read."""
        risk, _ = self._value(k)
        self._looked[k] = risk

        def slope(_: int, rows: Rows) -> np.ndarray:
            sums = np.zeros(2)
            score_ranges.slope(rows["c"], rows["z_b"], rows["z"], sums)
            return sums

        return self._n * risk, self._n * math.fsum(value for sums in self._blocks.map(slope) for value in sums)

    def line_search(self, A0: float, B0: float) -> float:
        """A k ≥ 0 that nearly minimises F(w_b + k(w − w_b)), A0 = ‖w − w_b‖², B0 = ⟨w_b, w − w_b⟩. The data is not read."""
        return minimise_by_tangents(A0, B0, self.C, self)

    def step(self, k: float, w_b: np.ndarray) -> float:
        """Make w_b + k(w − w_b), evaluated by `at`, the best point, `w_b` being already moved; returns m·R. No data is read."""
        risk = self._looked[k]

        def move(_: int, rows: Rows) -> None:
            score_ranges.between(rows["z_b"], rows["z"], k, rows["z_b"])

        self._blocks.each(move)
        self._looked.clear()
        self._held = None if self._held is None or self._held[0] != k else (0.0, *self._held[1:])
        self.guess = k
        self._before_line = None
        self._drift.step(k, self._spread(w_b), self._scale)
        return self._loss_above(risk, self._drift.error, self._drift.best)

    def column_sizes(self) -> np.ndarray:
        """max_i |x_ij| of each feature j (d,), approximately."""
        return self._largest[: self._runner.feed.data.manifest.statistics.n_features]

    def doubt(self, k: float) -> float:
        """Estimated rounding that a `step` of k would add to m·R, before it is taken. The data is not read."""
        return self._n * self._size * self._drift.ahead(k, self._scale)

    def refine(self) -> bool:
        """From the next pass on compute cuts with nearly exact sums, at twice the work; False if they already are."""
        if self._grids.folds > 1:
            return False
        self._grids = self._grids.finer(self._scale.rows)
        return True

    def _spread(self, w: np.ndarray) -> float:
        """Upper bound on Σ_j |x_ij w_j| over rows i."""
        length = self._scale.length * math.sqrt(vectors.dot(w, w)) * _LONGER
        return min(vectors.spread(w, 1, self._largest) * _LONGER, length)

    def _loss_above(self, risk: float, error: float, spread: float) -> float:
        """Upper bound on m·R from the computed `risk`, whose scores are at most `spread` in size and off by at most `error`.

        R changes by at most Σ|c_i| times the largest change of a score. Sums of c_i s_i and of counts are compensated.
        """
        part = gamma(64.0) + (self._n * EPSILON) ** 2 * 4.0
        loss = self._n * above(risk, self._size * (error + part * spread) + part * (1.0 + risk)) * (1.0 + 4.0 * EPSILON)
        self.raised = loss - self._n * risk
        return loss

    def _value(self, k: float) -> tuple[float, float]:
        """(risk, offset of its cut) at w_b + k(w − w_b), whose coefficients are then in `c`."""
        if self._held is None or self._held[0] != k:
            self._held = None  # if this is broken off, `c` is a mix of both
            self._held = (k, *self._groups.value(k))
        return self._held[1:]

    def _cut_and_loss(self, spread: float) -> tuple[Cut, float]:
        """One pass: the cut and m·R at the scores `z`, at most `spread` in size."""
        self._held = None
        risk, offset = self._groups.value(None)
        return self._cut(offset), self._loss_above(risk, self._drift.fresh(spread, self._scale), spread)

    def _cut(self, offset: float) -> Cut:
        """One pass: the cut of the coefficients found last."""
        return self._cut_of(self._read(SumPass(self.dimension, self._bias, self._grids)), offset)

    def _cut_of(self, a: np.ndarray, offset: float) -> Cut:
        """The cut of slope `a` (folds, D)."""
        if len(a) > 1:
            vectors.add(a[0], a[1])
        slope = self._grids.vector_error(self._n, self._scale.entries) + gamma(32.0) * self._size * self._scale.length
        return Cut(a[0], offset, CutError(slope, gamma(32.0)))

    def _read(self, work: Pass[Sums]) -> Sums:
        partial, report = self._runner.run(work)
        self.passes += 1
        self.traffic += report.traffic
        return partial
