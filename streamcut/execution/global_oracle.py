"""Cuts, losses and steps for risks that need the scores of all rows at once: pairs, and measures of a whole labelling.

An exact cut takes two passes: scores, which are sorted here and give each row its coefficient, and the weighted sum of rows.

Row state, all in whole arrays that this process looks at between passes:

    code  what the risk makes of a row's label        z    scores of the w that was scored last
    z_b   scores of the best point (`keep_best`)      c    coefficients of the rows in the next cut

Rows are worked on in blocks of whole groups. Which they are depends on the data alone and their sums are added exactly, so
neither threads nor shards nor memory change a bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from streamcut.errors import BadInputError, CorruptError
from streamcut.execution.feed import Traffic
from streamcut.execution.global_passes import LabelPass, ScoresPass, SumPass
from streamcut.execution.oracle import Cut
from streamcut.execution.runner import Pass, PassRunner
from streamcut.passes import pairs
from streamcut.passes.linear import exact_rounder

BLOCK_ROWS = 1 << 17  # a block has at least so many rows, and ends where a group does


class GlobalRisk(Protocol):
    """A convex risk of the scores of all rows, a sum over groups of rows (`starts[g]:starts[g + 1]`) that don't see each other.

    code_type        of the numbers that stand for labels
    coefficient_sum  at least Σ |c_i| of any cut
    room_bytes       memory for each row that `evaluate` works on, its arguments not counted
    """

    code_type: ClassVar[type]
    coefficient_sum: ClassVar[float]
    room_bytes: ClassVar[int]

    def encode(self, labels: np.ndarray, starts: np.ndarray, codes: np.ndarray) -> None:
        """Fill `codes`; all for a block of whole groups, as below."""

    def sizes(self, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """What there is to lose in each group, int64; 0: nothing."""

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Weight of each of all groups, float64, from all sizes."""

    def evaluate(
        self, codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        """Fill `out` with a subgradient c of the risk; returns [[risk, rounding lost], [offset b, rounding lost]].

        The risk at any scores s is at least ⟨c, s⟩ + b, and equal to it at `scores`.
        """


@dataclass(frozen=True, slots=True)
class _Value:
    """Risk, offset of its cut, and slope along z − z_b, at one point of the line."""

    risk: float
    offset: float
    slope: float


class GlobalOracle:
    """F(w) = ½‖w‖² + C̄ R(w) over the rows of a runner, C̄ = C·(number of rows), with w of length D = d, or d + 1 with a bias.

    It is also the `SmoothLoss` of streamcut.bundle.line_search, from w_b to the w that was scored last. Losses are m·R, so that
    C is their factor as in the binary task. `passes`, `traffic` count the looks at the data.

    workers  threads for blocks of groups. Raises BadInputError in `start` when no two rows can be compared.
    """

    def __init__(self, runner: PassRunner, risk: GlobalRisk, *, C: float, bias: float, keep_best: bool, workers: int = 1) -> None:
        statistics = runner.feed.data.manifest.statistics
        self.dimension = statistics.n_features + (bias != 0.0)
        self.C = C
        self.passes = 0
        self.traffic = Traffic()
        self.guess = 1.0
        self._n = statistics.n_rows
        self._runner = runner
        self._risk = risk
        self._bias = bias
        self._workers = workers
        self._rounder = exact_rounder(risk.coefficient_sum * max(statistics.max_abs_value, bias))
        self._starts = np.zeros((statistics.groups or 1) + 1, np.int64)
        self._starts[-1] = self._n
        self._weights = np.empty(0)
        self._looked: dict[float, float] = {}  # the risk at steps of this line
        for name in ("z", "c") + ("z_b",) * keep_best:
            runner.row_state.add(name)
        runner.row_state.add("code", risk.code_type)

    @property
    def c_bar(self) -> float:
        """C̄ = C·(number of rows): the factor of R."""
        return self.C * self._n

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) that a checkpoint keeps; release the row state after each look at the arrays."""
        numbers = {"guess": self.guess, "passes": self.passes, "traffic": asdict(self.traffic)}
        return numbers, {"starts": self._starts, **{f"rows.{name}": array for name, array in self._runner.rows.items()}}

    def restore(self, numbers: dict[str, Any], fill: Callable[[str, np.ndarray, Callable[[], None]], None]) -> None:
        """Go on from what `saved` gave; `fill` reads an array by name, and calls what it is given now and then."""
        self.guess, self.passes, self.traffic = numbers["guess"], numbers["passes"], Traffic(**numbers["traffic"])
        fill("starts", self._starts, lambda: None)
        for name, array in self._runner.rows.items():
            fill(f"rows.{name}", array, self.release)
        self._weigh()

    def release(self) -> None:
        """Let go of the row state's pages, if it lives in scratch files."""
        self._runner.row_state.release(0, self._n)

    def start(self) -> tuple[Cut, float]:
        """A pass for the labels, and one for the cut at w = 0; returns it and m·R(0)."""
        runs = self._read(LabelPass())
        if runs:
            rows, qid = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
            starts = rows[np.append(True, qid[1:] != qid[:-1])]
            if len(starts) != len(self._starts) - 1:
                raise CorruptError(
                    f"{len(starts):,} queries, but the manifest has {len(self._starts) - 1:,}; see `streamcut check`"
                )
            self._starts[:-1] = starts
        for _ in self._map(self._encode):
            pass
        self._weigh()
        value = self._value(None, keep=True)
        return self._cut(value), self._n * value.risk

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        """Two passes: the cut at w and m·R(w)."""
        self.score(w)
        value = self._value(None, keep=True)
        return self._cut(value), self._n * value.risk

    def score(self, w: np.ndarray) -> None:
        """One pass: the scores of w, for the line search."""
        self._read(ScoresPass(w, self._bias))
        self._looked.clear()

    def cut_between(self, mu: float) -> Cut:
        """One pass: the cut at w_b + μ(w − w_b) by scores that are known."""
        return self._cut(self._value(mu, keep=True))

    def at(self, k: float) -> tuple[float, float]:
        """m·R at w_b + k(w − w_b) and its slope in k. The data is not read."""
        value = self._value(k)
        self._looked[k] = value.risk
        return self._n * value.risk, self._n * value.slope

    def step(self, k: float) -> float:
        """Make w_b + k(w − w_b) the best point; returns m·R there. The data is not read."""
        risk = self._looked[k] if k in self._looked else self._value(k).risk

        def move(groups: tuple[int, int]) -> None:
            rows, _ = self._rows_of(groups)
            pairs.between(rows["z_b"], rows["z"], k, rows["z_b"])

        for _ in self._map(move):
            pass
        self._looked.clear()
        self.guess = k
        return self._n * risk

    def _value(self, k: float | None, *, keep: bool = False) -> _Value:
        """At w_b + k(w − w_b), or at w when k is None; `keep`: its coefficients become `c`."""

        def evaluate(groups: tuple[int, int]) -> np.ndarray:
            rows, starts = self._rows_of(groups)
            z, scores = rows["z"], rows["z"]
            if k is not None:
                scores = np.empty(len(z))
                pairs.between(rows["z_b"], z, k, scores)
            coefficients = rows["c"] if keep else np.empty(len(z))
            sums = np.zeros((3, 2))
            sums[:2] = self._risk.evaluate(rows["code"], starts, self._weights[slice(*groups)], scores, coefficients)
            if k is not None:
                pairs.slope(coefficients, rows["z_b"], z, sums[2])
            return sums

        parts = list(self._map(evaluate))
        return _Value(*(math.fsum(value for sums in parts for value in sums[line]) for line in range(3)))

    def _encode(self, groups: tuple[int, int]) -> None:
        rows, starts = self._rows_of(groups)
        self._risk.encode(rows["z"], starts, rows["code"])
        rows["z"][:] = 0.0

    def _weigh(self) -> None:
        """Find the weights of the groups."""

        def sizes(groups: tuple[int, int]) -> np.ndarray:
            rows, starts = self._rows_of(groups)
            return self._risk.sizes(rows["code"], starts)

        found = np.concatenate(list(self._map(sizes)))
        if not found.any():
            where = "" if len(found) == 1 else " of one query (qid)"
            raise BadInputError(f"no two rows{where} have different labels: there is nothing to rank")
        self._weights = self._risk.weights(found)

    def _map(self, work: Callable[[tuple[int, int]], Any]) -> Iterator[Any]:
        """What `work` makes of each block of groups (first, last + 1), in their order."""

        def one(groups: tuple[int, int]) -> Any:
            try:
                return work(groups)
            finally:
                self._runner.row_state.release(int(self._starts[groups[0]]), int(self._starts[groups[1]]))

        blocks = list(self._blocks())
        workers = min(self._workers, len(blocks))
        if workers == 1:
            yield from map(one, blocks)
            return
        with ThreadPoolExecutor(workers, "groups") as pool:
            yield from pool.map(one, blocks)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        first, groups = 0, len(self._starts) - 1
        while first < groups:
            last = int(np.searchsorted(self._starts, self._starts[first] + BLOCK_ROWS))
            yield first, min(last, groups)
            first = last

    def _rows_of(self, groups: tuple[int, int]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The row state of a block of groups, and where they start in it."""
        starts = self._starts[groups[0] : groups[1] + 1]
        rows = slice(int(starts[0]), int(starts[-1]))
        return {name: array[rows] for name, array in self._runner.rows.items()}, starts - starts[0]

    def _cut(self, value: _Value) -> Cut:
        return Cut(self._read(SumPass(self.dimension, self._bias, self._rounder)), value.offset)

    def _read(self, work: Pass) -> Any:
        partial, report = self._runner.run(work)
        self.passes += 1
        for name in Traffic.__slots__:
            setattr(self.traffic, name, getattr(self.traffic, name) + getattr(report.traffic, name))
        return partial
