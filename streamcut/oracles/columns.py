"""The oracle of columns: steps of dual ascent, losses along lines, and the rounding errors of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.compiled import splitmix, vectors
from streamcut.compiled.problems import ActiveColumns, Alone, Order, Single, Together
from streamcut.errors import UsageError
from streamcut.execution.row_state import CacheSize
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import EPSILON, UNSEEN, CutError, Drift, above, gamma, loss_above
from streamcut.losses.pointwise import Column, ColumnsRisk, values_of
from streamcut.models.certificate import Cut
from streamcut.oracles.columns_cache import ColumnsCache, Sweeps, solve_at_once, solving_bytes
from streamcut.oracles.columns_passes import (
    AscentPass,
    ColumnSlopesPass,
    ColumnStepPass,
    ColumnSums,
    EnterPass,
    RandomOrder,
    SweepsPass,
    kinds_of,
)
from streamcut.oracles.linear import LinearOracle

ORDER = RandomOrder(nnz=1 << 16, batch=32)  # rows of a group stay in the second cache level
_VISITS = 2  # steps per pair while its row is in cache and it is free
_CLOSE = 100.0  # times the least gain of a sweep: the gap to which cached rows are solved at once
# Of the first σ where shares come from each other. 300 rows × 50, 5 classes, C = 0.1 to 1000: 2 to 10 times fewer passes than
# with plain ones in between; C = 100 to a relative gap of 1e-3: 80 passes, with σ a quarter as long 180.
_MOST, _LONGER_STEPS = 0.3, 4.0
_WHOLE = 1.0 + 2.0**-40  # Σ u of M, regardless of the grid of the sum
_LONGER = 1.0 + 1e-6  # a length that was computed in float64


@dataclass(frozen=True, slots=True)
class Start:
    """Where a pass starts, for the A active columns: `W` (D, A) is scored, steps begin at `running` (D, A).

    sigma (A)  σ: steps are those for σC; enough (A): sweeps end when one gains no more than this
    at_once (A)  whether to solve for all cached rows at once before sweeps, with few features; None: for no column
    pulls (A)    C U of a free intercept before the pass, None if it is not free
    """

    W: np.ndarray
    running: np.ndarray
    sigma: np.ndarray
    enough: np.ndarray
    at_once: np.ndarray | None = None
    pulls: np.ndarray | None = None


class ColumnsOracle(LinearOracle):
    """F_a(w) = ½‖w‖² + l1_a‖w‖₁ + C_a Σ u_i ℓ over the rows of each of the `columns`.

    `at_once` columns (None: all) are trained at a time, as many as the row state has slots for.

    With `free` the last number of w is an unpenalised intercept, in units of `bias`; `cuts` are the pairs that bound it,
    by column (streamcut.bundle.intercept), known after the first pass of one of its kind.

    `active` (A) are the columns in training. Each lane has a cache of `size` (None: none), swept at most `sweeps` times
    after each pass. Lanes of more than a batch are read from `streams` positions at once. With L lanes steps are L times shorter,
    as if each saw L copies of itself: their sum never lowers the dual (Ma et al. 2015, CoCoA+, σ′ = L).
    """

    kept: tuple[str, ...] = (
        *LinearOracle.kept, "_drifts", "_reaches", "_version", "_taken", "weights", "active", "_place", "pairs",
    )  # fmt: skip
    resized = ("active",)

    def __init__(
        self, runner: Runner, risk: ColumnsRisk, columns: Sequence[Column], *, bias: float, size: CacheSize | None,
        sweeps: int, seed: int = 0, streams: int = 1, order: RandomOrder = ORDER, at_once: int | None = None, free: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(runner, risk.pointwise, C=columns[0].C, bias=bias, keep_margins=False, width=risk.width)
        self.free, self.cuts = free, dict[int, tuple[Cut, Cut]]()
        self.columns, self.risk = tuple(columns), risk
        self.at_once = len(columns) if at_once is None else at_once
        K, rows = self.at_once * risk.width, runner.row_state
        if risk.labels is None:
            rows.add("target")
        else:
            rows.add("t", np.int32)
        for name in ("z", "z_b"):
            rows.add(name, np.float64, (K,))
        self._of_lines, self._group = risk.loss, self._grouping()
        rows.add("codes", self._of_lines.code_type, (2, K))
        if risk.folds is not None:
            rows.add("fold", np.int16)
        self._Cs, self._l1, self._classes, self._left_out = (
            values_of(columns, name, kind)
            for name, kind in (("C", np.float64), ("l1", np.float64), ("of_class", np.float64), ("fold", np.int16))
        )
        self.active = np.arange(self.at_once)
        self._place = np.arange(len(columns)) % self.at_once  # of each column in the row state; last known for inactive ones
        self._taken = False  # whether the slots belonged to other columns
        self.weights = np.zeros(len(columns))  # Σ u of the rows of each column, known after the first pass
        self.raises: np.ndarray = np.zeros(self.at_once)  # by which the last losses of active columns were raised for rounding
        self._drifts, self._reaches = ([Drift() for _ in columns] for _ in range(2))  # the latter for single rows
        self._version = 0  # of the codes, that holds the shares of U
        self._sweeps, self._seed, self._order = sweeps, seed, order
        statistics = runner.feed.data.manifest.statistics
        self._streams = streams if order.has_streams(statistics, runner.lanes) else 1
        self._caches: dict[int, ColumnsCache] = {}
        if size is not None and sweeps > 0:
            self._caches = {start: ColumnsCache(size, risk, K) for start in runner.lanes.bounds[:-1]}
        self.lanes, alone = len(runner.lanes), not self._l1.any() and risk.group is None
        self.solves = bool(self._caches) and alone and solving_bytes(risk.loss, statistics, self.dimension) > 0

    def _grouping(self) -> Alone | Together:
        if self.risk.group is not None:
            return Together(self.risk.group)
        return Single() if self.at_once == 1 else Alone()

    # -- properties of the active columns: arrays (A) --------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The numbers in the weights of a problem."""
        return self.dimension * self.risk.width

    @property
    def costs(self) -> np.ndarray:
        """C."""
        return self._Cs[self.active]

    @property
    def l1s(self) -> np.ndarray | None:
        """The λ of active columns; None where all are 0."""
        return self._l1[self.active] if self._l1.any() else None

    @property
    def totals(self) -> np.ndarray:
        """M: the total row weight of each column."""
        return self.weights[self.active]

    @property
    def magnitudes(self) -> np.ndarray:
        """S (D,) of streamcut.foundation.rounding."""
        return self._magnitudes

    @property
    def costly(self) -> slice:
        """The penalised numbers of w: all but a free intercept, the last."""
        return slice(0, self.dimension - self.free)

    def first_sigmas(self) -> np.ndarray:
        """σ of the first accelerated pass of each active column; 1: plain steps are short enough."""
        whole = max(1.0, self._loss.least_curvature) if self._loss.smooth else self.unit
        most = 1.0
        if self.shares_come_from_each_other:
            most, whole = _MOST / self.lanes, _LONGER_STEPS * whole
        return np.array([min(most, self.sigma_for(C, whole)) for C in self.costs.tolist()])

    @property
    def shares_come_from_each_other(self) -> bool:
        """Whether a class's share can rise only where others fall, to a bound: plain passes are then slow with any C."""
        return self.risk.group is not None and not self._loss.smooth

    def drop_caches(self) -> None:
        """Free the memory of cached rows: no passes follow."""
        self._caches = {}

    def enter(self, columns: range) -> None:
        """Start training these columns and no others, from w = 0 and no shares. The data is not read."""
        self.active, self.cuts = self.active[:0], {}
        self.join(columns)

    def join(self, columns: Sequence[int]) -> None:
        """Train these columns, too, from w = 0 and no shares, in free slots. The data is not read."""
        new = np.array(columns)
        self._place[new] = np.setdiff1d(np.arange(self.at_once), self._place[self.active])[: len(new)]
        if self._taken:
            self._runner.run(EnterPass(self.risk.loss, self.active_columns(new, self._Cs[new])))
        self.active, self._taken = np.append(self.active, new), True
        kinds = self._sorts()
        cuts = {kinds[column]: pair for column, pair in self.cuts.items() if column in kinds}
        self.cuts = {column: cuts[kind] for column, kind in kinds.items() if kind in cuts}

    def active_columns(self, columns: np.ndarray, cost: np.ndarray) -> ActiveColumns:
        positive = None if self.risk.labels is None else self._classes[columns]
        left_out = None if self.risk.folds is None else self._left_out[columns]
        width = self.risk.width
        l1 = np.repeat(self._l1[columns], width) if self._l1.any() else None
        slots = (self._place[columns, None] * width + np.arange(width)).reshape(-1)
        return ActiveColumns(slots, positive, left_out, cost, l1, self._bias, self.free, self._group)

    # -- passes ----------------------------------------------------------------------------------------------------------------

    def steepest_at_zero(self) -> np.ndarray:  # type: ignore[override]
        """max_j |∂R/∂w_j| of the mean loss R of every column (K,) at w = 0: a pass for as many columns as have slots."""
        steepest, K = np.empty(len(self.columns)), len(self.columns)
        for start in range(0, K, self.at_once):
            group = range(start, min(start + self.at_once, K))
            self.enter(group)
            nothing = np.zeros((self.dimension, len(group) * self.risk.width))
            sums = self.ascend(Start(nothing, nothing, np.ones(len(group)), np.zeros(len(group))), visits=0)
            steepest[group.start : group.stop] = (
                np.abs(sums.U).max(axis=0, initial=0.0).reshape(len(group), -1).max(axis=1) / self.totals
            )
        return steepest

    def ascend(self, start: Start, *, visits: int = _VISITS) -> ColumnSums:
        """One pass, then sweeps: the changes in U, b and the running weights. The first pass learns the `weights`."""
        first = self.total_weight == 0.0
        statistics, lanes = self._runner.feed.data.manifest.statistics, self.lanes
        columns = self.active_columns(self.active, self.costs * start.sigma * lanes)
        versions, seed = (self._version, 1 - self._version), (self.passes, self._seed)
        streams = self._order.streams(statistics, self._streams, *seed) if self._streams > 1 else None
        work = AscentPass(
            self.risk, self._grids, columns, start.W, start.running, versions, self._drawn(visits),
            self._caches, seed, first=self._first if first else None, streams=streams,
            equal=self._equal if self.free and not self.cuts.keys() >= set(self.active.tolist()) else None,
        )  # fmt: skip
        sums = self._read(work)
        if first:
            self._learn_of_columns(sums)
        if sums.sides:
            self._learn_of_sides(sums)
        for number, a in enumerate(self.active.tolist()):
            w = start.W[:, number * self.risk.width : (number + 1) * self.risk.width].reshape(-1)
            self._drifts[a].scored, self._reaches[a].scored = self._spread(w), self._longest(w)
        if lanes > 1:
            sums.w /= lanes
        if self._caches and visits:
            enough = start.enough * self.unit
            if self.solves and start.at_once is not None and start.at_once.any():
                pulls = None if start.pulls is None else start.pulls + self.costs * sums.U[-1]
                settings = start.W, start.at_once, _CLOSE * enough, pulls, self._grids.limit
                rows = self._runner.rows.get("fold"), self._runner.lanes.bounds[0]
                plain = self.active_columns(self.active, self.costs)
                sums.solved = solve_at_once(self.risk.loss, plain, self._caches.values(), sums.w, *settings, *rows)
            how = Sweeps(self._sweeps, statistics.nnz, sums.gain, enough, seed, self._grids)
            swept, _ = self._runner.run(SweepsPass(self._caches, how, sums.w, versions[1], sums.b))
            sums.w = swept.w / lanes if lanes > 1 else swept.w
            vectors.add(sums.U.reshape(-1), swept.U.reshape(-1))
            sums.b += swept.b
        self._version = versions[1]
        return sums

    def _learn_of_columns(self, sums: ColumnSums) -> None:
        assert sums.totals is not None
        self._learn(sums.totals)
        self.weights[:] = self.total_weight
        if sums.by_fold is not None:
            if not (sums.by_fold.min() > 0.0 and sums.by_fold.max() < self.total_weight):
                empty = int(np.argmin(sums.by_fold)) + 1
                raise UsageError(
                    f"folds: {len(sums.by_fold)} are too many for these rows: fold {empty} has no rows, or only rows of weight 0"
                )
            without = self._left_out >= 0
            self.weights[without] -= sums.by_fold[self._left_out[without]]

    def _learn_of_sides(self, sums: ColumnSums) -> None:
        """The cuts of active columns; columns of a kind share them."""
        cuts = dict[tuple[float, int], tuple[Cut, Cut]]()
        for column, kind in self._sorts().items():
            if kind not in cuts:
                of, M = sums.sides[kind], float(self.weights[column])
                up, down = (self._divided_by(M, a, b) for a, b in zip(of.a, of.b, strict=True))
                if kind[1] >= 0 and self.risk.labels is not None and (up.a[-1] == 0.0 or down.a[-1] == 0.0):
                    raise UsageError(
                        f"intercept: without fold {kind[1] + 1} all rows of positive weight have one label, where no free "
                        "intercept is optimal; use fewer folds, or a regularised intercept"
                    )
                cuts[kind] = up, down
            self.cuts[column] = cuts[kind]
        sums.sides = {}

    def _drawn(self, visits: int) -> Order:
        """The order of rows in the next pass."""
        statistics = self._runner.feed.data.manifest.statistics
        drawn, near = self._order.drawn(statistics, self.passes, self._seed), self._order.group_rows(statistics)
        rows, turns, firsts = np.empty_like(drawn), np.empty_like(drawn), range(0, len(drawn), near)
        splitmix.sort_groups(drawn, near, turns, np.empty(len(firsts), np.int64), rows)
        random = np.random.default_rng((self.passes, self._seed, 1))
        for first in firsts:
            turns[first : first + near] = random.permutation(min(near, len(rows) - first))
        return Order(rows, turns, min(near, len(rows)), visits)

    def slopes(self, k: np.ndarray) -> np.ndarray:
        """Slopes of Σ u_i ℓ of each active column at w_b + k(w − w_b). The data is not read."""
        return self._look_along(ColumnSlopesPass, k).sum(axis=1)

    def doubts(self, k: np.ndarray) -> np.ndarray:
        """Estimated rounding that steps `k` would add to Σ u_i ℓ, before they are taken. The data is not read."""
        steps = zip(self.active.tolist(), k.tolist(), strict=True)
        return np.array([self._loss.rounding.slope * self._drifts[a].ahead(step, self._scale) for a, step in steps])

    def step_all(self, k: np.ndarray, spreads: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Make w_b + k(w − w_b) the best points; returns an upper bound on Σ u_i ℓ of each column. The data is not read.

        `spreads` are ⟨S, |w_b|⟩ after the step, `lengths` are ‖w_b‖.
        """
        sums, steepest = self._look_along(ColumnStepPass, k)
        losses = np.empty(len(k))
        self.raises = np.empty(len(k))
        for a, (column, step) in enumerate(zip(self.active.tolist(), k.tolist(), strict=True)):
            drift, reach = self._drifts[column], self._reaches[column]
            drift.step(step, (1.0 + (self._width > 1)) * float(spreads[a]) + self._targets.targets, self._scale)
            reach.step(step, self._row_length(float(lengths[a])), self._scale)
            slope = self._loss.steepest(float(steepest[a]), reach.error, self._targets)
            rounding, loss = self._loss.rounding._replace(slope=slope), float(sums[a].sum())
            losses[a] = loss_above(loss, self._scale.rows, self.weights[column], drift.error, rounding)
            self.raises[a] = losses[a] - loss if loss < np.inf else 0.0
        return losses

    def losses_at_zero(self) -> np.ndarray:
        """Upper bounds on Σ u_i ℓ of each active column at w = 0."""
        if self.risk.labels is None:
            return np.full(len(self.active), self.loss_at_zero)
        at_zero, error = self._loss.at_zero, self._learning.weight_error(self._scale.rows)
        totals = (above(weight, error) for weight in self.totals.tolist())
        return np.array([above(at_zero * total, gamma(8.0) * at_zero * total) for total in totals])

    def cut_errors(self, b: np.ndarray, chosen: Sequence[int] | None = None) -> list[CutError]:
        """Errors of the cuts of the active columns, or of the `chosen` of them, in units of M; `b` (1 or 3, A) gives the size of
        their sums."""
        if self.risk.group is not None:
            return self._joint_errors(b[0] / self.totals)
        shares, sizes = (b[0], b[0]) if len(b) == 1 else b[1:] + 2.0 * self._grids.weight_error(self._scale.rows)
        M, scale, loss = self.totals if chosen is None else self.totals[chosen], self._scale, self._loss.rounding
        lines = zip((scale.length * shares / M).tolist(), (sizes / M).tolist(), M.tolist(), strict=True)
        return [scale.cut_error(self._grids, slope, offset, total, loss) for slope, offset, total in lines]

    @property
    def named(self) -> str:
        """The columns in training, if not all of them, from the first to the last: "6–10 of 20"."""
        if self.at_once >= len(self.columns) or not len(self.active):
            return ""
        first, last = int(self.active.min()) + 1, int(self.active.max()) + 1
        return f"{last} of {len(self.columns)}" if first == last else f"{first}–{last} of {len(self.columns)}"

    def _joint_errors(self, offsets: np.ndarray) -> list[CutError]:
        """Of cuts with constants `offsets`: ‖a‖ is bounded by that of a bounded loss, of others by Σ u / M. The number of a row
        in its own class and its constant are sums over the others, with as many roundings."""
        loss: Any = self.risk.loss
        scale, K, errors = self._scale, self.risk.width, []
        rounding = loss.rounding._replace(conjugate=loss.rounding.conjugate + 2 * K)
        for offset, M in zip(np.abs(offsets).tolist(), self.totals.tolist(), strict=True):
            whole = offset if loss.bounded() else _WHOLE
            size = scale.length * whole * (1.0 + K * EPSILON)
            error = scale.cut_error(self._grids, size, offset if loss.bounded() else offset + _WHOLE, M, rounding)
            errors.append(error._replace(slope=error.slope + gamma(2 * K) * size))
        return errors

    def _look_along(self, kind: Any, k: np.ndarray) -> Any:
        return self._runner.run(kind(self._of_lines, self.active_columns(self.active, k), k))[0]

    def _row_length(self, length: float) -> float:
        """Upper bound on Σ_j |x_ij w_j| + target_size over rows i, for ‖w‖ = `length`."""
        return self._scale.length * length * _LONGER + UNSEEN + self._loss.largest_target_size(self._targets)

    # -- checkpoints -----------------------------------------------------------------------------------------------------------

    @property
    def pairs(self) -> list[tuple[Cut, Cut]]:
        """The cuts that bound free intercepts, those of a kind once."""
        return list({kind: self.cuts[column] for column, kind in self._sorts().items() if self.cuts}.values())

    @pairs.setter
    def pairs(self, pairs: list[tuple[Cut, Cut]]) -> None:
        kinds = self._sorts()
        of_kind = dict(zip(dict.fromkeys(kinds.values()), pairs, strict=True)) if pairs else {}
        self.cuts = {column: of_kind[kind] for column, kind in kinds.items() if of_kind}

    def _sorts(self) -> dict[int, tuple[float, int]]:
        """The kinds of the active columns."""
        return dict(zip(self.active.tolist(), kinds_of(self.active_columns(self.active, self.costs)), strict=True))
