"""Ordered pairs of rows: ranking inside queries, ordinal regression, and the area under the ROC curve (Joachims 2006).

    R(w) = Σ over pairs (i, j) with y_i > y_j, and from one query if there are queries, of u_ij max(0, 1 − (s_i − s_j))

with Σ u_ij = 1: u_ij = 1/|P| for the normalisation "pairs", the paper's; 1/(Q·|P_q|) for "queries", in which each of the Q
queries with pairs has equal weight. Labels are compared, not assumed to be 1 … R. With two labels and no queries 1 − R is at most
the area under the ROC curve. A constant feature cancels in every pair, so there is no bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from streamcut.compiled import pair_curvature, pairs, score_ranges
from streamcut.errors import BadInputError, CorruptError
from streamcut.losses.scores import Scores


@dataclass(frozen=True, slots=True)
class Pairs:
    """A GroupRisk whose groups are the queries; the code of a row is the rank of its label in its query."""

    normalisation: str = "pairs"
    grouped: ClassVar[Literal[True]] = True
    code_type: ClassVar[type] = np.int32
    coefficient_sum: ClassVar[float] = 2.0  # each pair gives its weight to both of its rows
    room_bytes: ClassVar[int] = 24  # two arrays of keys, two of indices

    def encode(self, labels: np.ndarray, starts: np.ndarray, codes: np.ndarray) -> None:
        pairs.number_levels(labels, starts, *_sorting_room(starts), codes)

    def sizes(self, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Number of pairs in each group."""
        sizes = np.empty(len(starts) - 1, np.int64)
        pairs.count_pairs(codes, starts, _tree(codes), sizes)
        return sizes

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Weight of a pair in each group; all 0 when there are no pairs at all."""
        if self.normalisation == "pairs":
            return np.full(len(sizes), 1.0 / max(float(sizes.sum()), 1.0))
        return 1.0 / (max(np.count_nonzero(sizes), 1) * np.maximum(sizes, 1).astype(np.float64))

    def evaluate(
        self, codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        sums = np.zeros((2, 2))
        pairs.hinge_pairs(codes, starts, weights, scores, *_sorting_room(starts), _tree(codes), out, sums)
        return sums

    def near(
        self, codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, scores: np.ndarray, up: np.ndarray, down: np.ndarray
    ) -> None:
        """Fill `up` and `down`, the weights of each row's pairs near their kink (streamcut.compiled.pair_curvature)."""
        room = _sorting_room(starts)
        pair_curvature.near_pairs(codes, starts, weights, scores, _WIDTH, *room, _tree(codes), up, down)


@dataclass(frozen=True, slots=True)
class Cells:
    """`count` ranges of scores, each `width` wide, the first from `low` on."""

    low: float
    width: float
    count: int

    def of(self, scores: np.ndarray) -> np.ndarray:
        """The cell of each score; scores outside get the first or the last."""
        cells = np.floor((scores - self.low) / self.width)
        return np.clip(cells, 0, self.count - 1).astype(np.int64)

    def inside(self, scores: np.ndarray) -> np.ndarray:
        """Whether each score is in a cell."""
        return (scores >= self.low) & (scores < self.low + self.count * self.width)


# Passes to 1e-3, ROC area of a9a, ijcnn1 and rankings of MQ2007, MQ2008, ohsumed, C = 0.1, 1, 10 (926 by OCAS): pairs within 0.03
# of their kink 304, 0.1 284, 0.3 292, 1 271; of ROC area alone with 16 cells of scores 86, 32 84, 64 78, 128 74, 256 76.
_WIDTH, _CELLS = 1.0, 128
_FEW = 4
_WHOLE = 5  # scores, levels, counts, and scratch of the sort


@dataclass(frozen=True, slots=True)
class PairsOfLevels:
    """A risk of one group (OneGroupRisk) for a few known labels, `labels`, ascending.

    Sorted scores of each level are enough: a row finds the number of its active partners in each other level by bisection. These
    are Joachims's sweeps over the levels, without sorting row numbers too. With more than `FEW` levels one sort and a Fenwick
    tree are faster, if `numbers` float64 per row fit in memory. Only the counting differs.
    """

    labels: tuple[float, ...]
    normalisation: str = "pairs"  # with one group both normalisations agree
    grouped: ClassVar[Literal[False]] = False
    apart: ClassVar[bool] = False
    coefficient_sum: ClassVar[float] = 2.0
    MOST: ClassVar[int] = 64  # with more, bisection in each of them takes too long

    @property
    def classes(self) -> int:
        return len(self.labels)

    @property
    def numbers(self) -> int:
        return _WHOLE if self.classes > _FEW else 1

    def encode(self, labels: np.ndarray, codes: np.ndarray) -> None:
        classes = np.array(self.labels)
        levels = np.searchsorted(classes, labels)
        wrong = classes[np.minimum(levels, len(classes) - 1)] != labels
        if wrong.any():
            label = labels[np.argmax(wrong)]
            raise CorruptError(f"a row has label {label:g}, which the manifest does not list; see `streamcut info --check`")
        codes[:] = levels

    def evaluate(self, scores: Scores) -> tuple[float, float]:
        n = int(scores.counts.sum())
        if scores.room >= self.numbers * n > n:
            active, firsts = _count_by_tree(scores)
        else:
            active, firsts = _count_by_bisection(scores)
        levels = scores.counts.tolist()
        factor = 1.0 / (sum(count * sum(levels[:level]) for level, count in enumerate(levels)) or 1)
        middle = float(np.median(firsts))  # Σ c = 0: a shift of the scores changes only the rounding

        def weigh(_: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> np.ndarray:
            sums = np.zeros(2)
            score_ranges.weigh(rows["c"], factor, some, middle, sums)
            return sums

        offset = factor * active
        return math.fsum([offset, *(value for sums in scores.sweep(weigh) for value in sums)]), offset


def near_by_cells(risk: PairsOfLevels, scores: Scores) -> Cells:
    """Fill the row state's `up` and `down` (see Pairs.near) from the counts of each level in a cell."""
    ends = np.array(list(scores.sweep(lambda _, some, rows: (some.min(), some.max()))))
    low, high = ends[:, 0].min(), ends[:, 1].max()
    width = max((high - low) / _CELLS, 1e-9 * max(abs(low), abs(high), 1.0)) * (1.0 + 1e-9)
    cells = Cells(float(low), float(width), _CELLS)

    def count(_: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> np.ndarray:
        return np.bincount(rows["code"] * np.int64(_CELLS) + cells.of(some), minlength=risk.classes * _CELLS)

    counts = sum(scores.sweep(count), np.zeros(risk.classes * _CELLS, np.int64)).reshape(risk.classes, _CELLS)
    levels = scores.counts.tolist()
    pairs_of_all = sum(n * sum(levels[:level]) for level, n in enumerate(levels)) or 1
    below = np.zeros((risk.classes + 1, _CELLS))
    below[1:] = np.cumsum(counts, axis=0) / (pairs_of_all * width)
    above = below[-1] - below[1:]

    def fill(_: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> None:
        for name, table, partner in (("up", below, some - 1.0), ("down", above, some + 1.0)):
            rows[name][:] = np.where(cells.inside(partner), table[rows["code"], cells.of(partner)], 0.0)

    for _ in scores.sweep(fill):
        pass
    return cells


def _count_by_bisection(scores: Scores) -> tuple[int, list[float]]:
    """c⁻ − c⁺ of each row as its coefficient; returns the number of active pairs, and some scores."""
    up_to = np.zeros(len(scores.counts), np.int64)  # rows of each level up to the range's lower bound
    active, firsts = 0, []
    for r in range(len(scores.inside)):
        counts = _count_in_range(scores, r, up_to)
        active += sum(one for one, _ in counts)
        firsts = [score for _, score in counts]
        up_to += scores.inside[r] + scores.ties[r]
    return active, firsts


def _count_in_range(scores: Scores, r: int, up_to: np.ndarray) -> list[tuple[int, float]]:
    """(active pairs, first score) of each block of rows. Each range is freed before the next."""
    values, starts = scores.sorted_range(r)
    low, high = float(scores.bounds[r]), float(scores.bounds[r + 1])
    partners = [_Partners.sorted(values[first:last]) for first, last in pairwise(starts.tolist())]
    levels = list(zip(range(len(partners)), up_to.tolist(), scores.counts.tolist(), strict=True))

    def count(_: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> tuple[int, float]:
        if r == 0:
            rows["c"][:] = 0.0
        active = 0
        for (level, before, total), p in zip(levels, partners, strict=True):
            active += pairs.count_partners(
                some, rows["code"], low, high, level, before, total, p.values, p.guide, p.origin, p.scale, rows["c"]
            )
        return active, float(some[0])

    return list(scores.sweep(count))


@dataclass(frozen=True, slots=True)
class _Partners:
    """Ascending scores, and a guide to them (`fill_guide`)."""

    values: np.ndarray
    guide: np.ndarray
    origin: float
    scale: float

    @classmethod
    def sorted(cls, values: np.ndarray) -> _Partners:
        guide = np.zeros(len(values) // pairs.GUIDED + 2, np.int32)
        origin, scale = 0.0, 0.0
        if len(values):
            few = len(values) // 1000  # outliers would leave too few bins for the other scores
            origin, last = float(values[few]), float(values[-1 - few])
            scale = (len(guide) - 1) / (last - origin) if last > origin else 0.0
        scale = scale if math.isfinite(scale) else 0.0
        pairs.fill_guide(values, origin, scale, guide)
        return cls(values, guide, origin, scale)


def _count_by_tree(scores: Scores) -> tuple[int, list[float]]:
    """The same by one sort of all rows."""
    whole, codes = scores.whole()
    starts, counts, sums = np.array([0, len(whole)]), np.empty(len(whole)), np.zeros((2, 2))
    pairs.hinge_pairs(codes, starts, np.ones(1), whole, *_sorting_room(starts), _tree(codes), counts, sums)

    def keep(first: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> float:
        rows["c"][:] = counts[first : first + len(some)]
        return some[0]

    return int(sums[1].sum()), list(scores.sweep(keep))


def _sorting_room(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    largest = int(np.diff(starts).max())
    if largest > np.iinfo(np.int32).max:
        raise BadInputError(f"a query of {largest:,} rows is too long; the limit is 2,147,483,647 rows")
    return np.empty(largest, np.uint64), np.empty(largest, np.int32), np.empty(largest, np.uint64), np.empty(largest, np.int32)


def _tree(codes: np.ndarray) -> np.ndarray:
    return np.empty(int(codes.max()) + 2, np.int64)
