"""How scores separate two classes: curves, and the areas under them."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

QUERIES_AT_ONCE = 1 << 18

Scored = list[tuple[np.ndarray, np.ndarray | None]]  # scores of rows, and their weights unless all are 1


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None when there is nothing to divide by."""
    return part / whole if whole else None


class Separation:
    """Two classes by their scores. Takes over `above` (positive rows) and `below` (negative), which are emptied."""

    def __init__(self, above: Scored, below: Scored) -> None:
        self._positives, self._negatives = _Sorted(above), _Sorted(below)

    @property
    def of_two(self) -> bool:
        """Whether there are rows of both classes."""
        return self._positives.total > 0.0 and self._negatives.total > 0.0

    @property
    def roc_auc(self) -> float | None:
        """How often a positive scores above a negative, ties counting half; None without rows of both classes."""
        return self._areas[0]

    @property
    def average_precision(self) -> float | None:
        """Mean over the positives of the precision when everything with at least their score is called positive.

        This is scikit-learn's sum over thresholds, since thresholds without a positive of their own add nothing to it.
        """
        return self._areas[1]

    @cached_property
    def _areas(self) -> tuple[float | None, float | None]:
        positives, negatives = self._positives, self._negatives
        if not positives.total:
            return None, None
        won = precise = 0.0
        for start in range(0, len(positives.scores), QUERIES_AT_ONCE):
            scores = positives.scores[start : start + QUERIES_AT_ONCE]
            u = 1.0 if positives.weights is None else positives.weights[start : start + QUERIES_AT_ONCE]
            lower = negatives.weight_below(scores, "left")
            won += float(np.sum(u * 0.5 * (lower + negatives.weight_below(scores, "right"))))
            true = np.maximum(u, positives.total - positives.weight_below(scores, "left"))  # rounding may have swallowed a tiny u
            precise += float(np.sum(u * true / (true + (negatives.total - lower))))
        auc = won / (positives.total * negatives.total) if negatives.total else None
        return auc, precise / positives.total

    def curves(self, count: int = 1000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(false positive rate, recall, precision) when all rows that score at least some threshold are called positive, from the
        greatest down: at about `count` scores of each class, evenly spread over its rows, the least and greatest among them."""
        both = self._positives, self._negatives
        score = np.unique(np.concatenate([rows.spread(count) for rows in both]))[::-1]
        true, false = (rows.total - rows.weight_below(score, "left") for rows in both)
        return false / self._negatives.total, true / self._positives.total, true / (true + false)

    @property
    def share(self) -> float:
        """The share of positive rows."""
        return self._positives.total / (self._positives.total + self._negatives.total)


class _Sorted:
    """Scores of one class in ascending order, and the weight that lies below a score. Empties `parts` to free its memory."""

    def __init__(self, parts: Scored) -> None:
        weighted = any(weights is not None for _, weights in parts)
        self.scores = np.concatenate([scores for scores, _ in parts] or [np.empty(0)])
        self.weights = None
        if weighted:
            self.weights = np.concatenate([np.ones(len(s)) if u is None else u for s, u in parts])
        parts.clear()
        if self.weights is None:
            self.scores.sort()
        else:
            order = np.argsort(self.scores)
            self.scores, self.weights = self.scores[order], self.weights[order]
            self._before = np.concatenate(([0.0], np.cumsum(self.weights)))

    @property
    def total(self) -> float:
        return float(len(self.scores)) if self.weights is None else float(self._before[-1])

    def weight_below(self, scores: np.ndarray, side: Literal["left", "right"]) -> np.ndarray:
        """Weight of values < `scores` (side "left") or ≤ `scores` ("right")."""
        ranks = np.searchsorted(self.scores, scores, side=side)
        return ranks.astype(np.float64) if self.weights is None else self._before[ranks]

    def spread(self, count: int) -> np.ndarray:
        """At most `count` of the scores, at even steps of rank, both ends among them."""
        if len(self.scores) <= count:
            return self.scores
        return self.scores[np.linspace(0, len(self.scores) - 1, count).astype(np.int64)]
