"""Losses of a whole labelling: F₁, the precision/recall break-even point, precision and recall at k, errors (Joachims 2005).

    R(w) = max(0, max over labellings y′ of Δ(y′) − (1/m) Σ over rows with y′_i ≠ y_i of y_i s_i)      y_i = ±1, 0 ≤ Δ ≤ 1

is convex and, if the true labelling is allowed, at least the Δ of the labelling by the scores. With the rate of errors
for Δ it is the mean hinge loss, so C means the same for all of them. (The paper has 2 for 1/m, which makes its C smaller by 4m²
and its weights by 2m.) "prec@k" and "rec@k" allow only labellings with k positives, "prbep" those with the true number of
positives. For any other k the true labelling is excluded, and R no longer bounds Δ, as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from streamcut.compiled import multivariate
from streamcut.errors import UsageError
from streamcut.losses.scores import Scores


@dataclass(frozen=True, slots=True)
class Multivariate:
    """A risk of one group (OneGroupRisk); class 1 has the label `positive`, class 0 all others.

    loss  "f1", "prbep", "prec@k", "rec@k" or "error"; `k` rows for the two that use it
    """

    loss: str
    positive: float
    k: int = 0
    grouped: ClassVar[Literal[False]] = False
    apart: ClassVar[bool] = True  # the walks along positives and negatives are at different scores
    coefficient_sum: ClassVar[float] = 1.0
    classes: ClassVar[int] = 2
    numbers: ClassVar[int] = 1

    def encode(self, labels: np.ndarray, codes: np.ndarray) -> None:
        codes[:] = labels == self.positive

    def evaluate(self, scores: Scores) -> tuple[float, float]:
        worst = self._worst_for_errors(scores) if self.loss == "error" else self._worst(scores)
        flipped = self._flip(scores, worst)
        if worst.delta + flipped >= 0.0:
            return worst.delta + flipped, worst.delta
        self._flip(scores, _Flips(0.0, np.zeros(2, np.int64), np.array([np.inf, -np.inf])))
        return 0.0, 0.0  # no labelling with k positives is worse than the truth

    def _flip(self, scores: Scores, table: _Flips) -> float:
        """Fill the coefficients by `table`; returns Σ coefficient·score. At a threshold the first rows are flipped."""
        m = int(scores.counts.sum())
        counts = _count_flips(scores, table.thresholds)
        left = table.flips - sum(count[:2] for _, count in counts)
        ties = {}
        for first, count in counts:
            ties[first] = np.minimum(left, count[2:])
            left = left - ties[first]

        def flip(first: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> np.ndarray:
            sums = np.zeros(2)
            multivariate.flip(some, rows["code"], table.thresholds, ties[first], 1.0 / m, rows["c"], sums)
            return sums

        return math.fsum(value for sums in scores.sweep(flip) for value in sums)

    def _worst_for_errors(self, scores: Scores) -> _Flips:
        """A hinge loss for each row separately."""
        thresholds = np.array([-1.0, 1.0])
        flips = np.sum([count[:2] for _, count in _count_flips(scores, thresholds)], axis=0)
        return _Flips(float(flips.sum() / scores.counts.sum()), flips, thresholds)

    def _worst(self, scores: Scores) -> _Flips:
        P = int(scores.counts[1])
        if self.loss == "f1":
            hits, alarms, thresholds = _walk_f1(scores)
            return _Flips(1.0 - 2.0 * hits / (P + hits + alarms), np.array([alarms, P - hits]), thresholds)
        k = P if self.loss == "prbep" else self.k
        full = float(P if self.loss == "rec@k" else k)
        hits, thresholds = _walk_at_k(scores, k, full)
        return _Flips(1.0 - hits / full, np.array([k - hits, P - hits]), thresholds)


@dataclass(frozen=True, slots=True)
class _Flips:
    """A labelling: Δ, the numbers of flipped negatives and positives, and the score thresholds of the flips."""

    delta: float
    flips: np.ndarray
    thresholds: np.ndarray


def _count_flips(scores: Scores, thresholds: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """(first row, counts by the kernel of this name) of each block of rows."""

    def count(first: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> tuple[int, np.ndarray]:
        flips = np.zeros(4, np.int64)
        multivariate.count_flips(some, rows["code"], thresholds, flips)
        return first, flips

    return list(scores.sweep(count))


_NONE = np.empty(0)


def _state() -> tuple[np.ndarray, np.ndarray]:
    """`counts` and `sums` of a walk that has flipped nothing."""
    counts, sums = np.zeros(4, np.int64), np.zeros(9)
    sums[multivariate.BEST] = -np.inf
    sums[[multivariate.AT_NEGATIVE, multivariate.LAST_NEGATIVE]] = np.inf
    sums[[multivariate.AT_POSITIVE, multivariate.LAST_POSITIVE]] = -np.inf
    return counts, sums


def _thresholds(sums: np.ndarray) -> np.ndarray:
    return sums[[multivariate.AT_NEGATIVE, multivariate.AT_POSITIVE]]


def _walk_f1(scores: Scores) -> tuple[int, int, np.ndarray]:
    """(hits, false alarms, thresholds) of the worst labelling for F₁."""
    N, P = map(int, scores.counts)
    counts, sums = _state()
    highest, above = scores.stream(1, descending=True), scores.stream(0, descending=True)
    positives = negatives = _NONE
    while True:
        i, j = multivariate.walk_f1(positives, negatives, P, N, counts, sums)
        positives, negatives = positives[: len(positives) - i], negatives[: len(negatives) - j]
        if len(negatives) == 0 and counts[multivariate.ALARMS] < N:
            negatives = _NONE  # frees memory for the next one
            negatives = next(above)
        elif counts[multivariate.HITS] < P:
            positives = _NONE
            positives = next(highest)
        else:
            break
    if counts[multivariate.BEST_HITS] == P:
        sums[multivariate.AT_POSITIVE] = -np.inf
    return int(counts[multivariate.BEST_HITS]), int(counts[multivariate.BEST_ALARMS]), _thresholds(sums)


def _walk_at_k(scores: Scores, k: int, full: float) -> tuple[int, np.ndarray]:
    """(hits, thresholds) of the worst labelling with k positives, where a hit counts 1/full."""
    N, P = map(int, scores.counts)
    counts, sums = _state()
    most, fewest = min(P, k), max(0, k - N)
    counts[multivariate.HITS] = most
    lowest = scores.stream(1, descending=False, skip=max(P - most - 1, 0))
    highest = scores.stream(0, descending=True, skip=max(k - most - 1, 0))
    positives = negatives = _NONE
    if most < P:  # the last of those missed in any case
        positives = next(lowest)
        sums[multivariate.LAST_POSITIVE], positives = positives[0], positives[1:]
    if most < k:
        negatives = next(highest)
        sums[multivariate.LAST_NEGATIVE], negatives = negatives[-1], negatives[:-1]
    while True:
        steps = multivariate.walk_at_k(positives, negatives, fewest, full, float(N + P), counts, sums)
        positives, negatives = positives[steps:], negatives[: len(negatives) - steps]
        if counts[multivariate.HITS] == fewest:
            return int(counts[multivariate.BEST_HITS]), _thresholds(sums)
        if len(positives) == 0:
            positives = _NONE
            positives = next(lowest)
        if len(negatives) == 0:
            negatives = _NONE
            negatives = next(highest)


def rows_of(k: str, n_rows: int) -> int:
    """`k` rows ("100") or a percentage of `n_rows` ("10%", rounded). Raises UsageError."""
    try:
        rows = round(float(k[:-1]) / 100 * n_rows) if k.endswith("%") else int(k)
    except ValueError:
        raise UsageError(f"k: {k!r} is neither a number of rows (100) nor a percentage (10%)") from None
    if not 1 <= rows <= n_rows:
        raise UsageError(f"k: {k} is {rows:,} of {n_rows:,} rows; it must be from 1 to the number of rows")
    return rows
