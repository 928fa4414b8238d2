"""Measures of rankings: swapped pairs, NDCG and mean average precision over queries, and the area under the ROC curve.

Without queries (qid) all rows form one. The means are over all queries, as in LETOR's tools; there a query without relevant rows
counts 0 in NDCG and average precision, and so it does here. Gains are 2^label − 1, as there; the discount is 1/log₂(1 + place),
the usual one today (LETOR's tools use 1 for the first two places, then 1/log₂ place). Labels above 0 are relevant.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import numpy as np

from streamcut.compiled import rankings
from streamcut.errors import BadInputError
from streamcut.foundation.chunk import Chunk
from streamcut.measures.separation import Scored, Separation, ratio
from streamcut.models.model import Model

CUTOFFS = (1, 5, 10)
_HIGHEST = 60.0  # 2^label is then still well within float64


class RankingMeasures:
    """Keeps 24 bytes a row, and takes 80 while it sorts them. NDCG is None for labels below 0 or above 60."""

    row_bytes: ClassVar[tuple[int, int]] = (112, 112)
    to_choose: ClassVar[tuple[str, ...]] = ("pairwise_accuracy", *(f"ndcg_at_{k}" for k in CUTOFFS), "map")
    losses: ClassVar[tuple[str, ...]] = ("swapped_pairs", "mean_swapped_pairs")

    def __init__(self, model: Model) -> None:
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] = []

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for rows with weights."""
        if chunk.weight is not None:
            raise BadInputError("the rows have weights, which rankings do not take; leave them out")
        self._parts.append((chunk.y.copy(), scores.copy(), None if chunk.qid is None else chunk.qid.copy()))

    def measures(self) -> dict[str, object]:
        """Overall figures first. Forgets the rows.

        pairwise_accuracy   1 − swapped_pairs
        swapped_pairs       of all pairs of one query with different labels, the fraction in the wrong order; ties count half
        mean_swapped_pairs  the same for each query, averaged over the queries that have such pairs
        """
        table = self.per_query()
        pairs, swapped = table["pairs"], table["swapped"]
        wrong = ratio(float(swapped.sum()), float(pairs.sum()))
        with_pairs = pairs > 0
        mean_wrong = float(np.mean(swapped[with_pairs] / pairs[with_pairs])) if with_pairs.any() else None
        means = {"map": table["average_precision"].mean(), **{f"ndcg_at_{k}": table[f"ndcg_at_{k}"].mean() for k in CUTOFFS}}
        return {
            "pairwise_accuracy": None if wrong is None else 1.0 - wrong,
            "swapped_pairs": wrong,
            "mean_swapped_pairs": mean_wrong,
            **{name: None if np.isnan(mean) else float(mean) for name, mean in means.items()},
            "rows": int(table["rows"].sum()),
            "queries": len(pairs),
            "pairs": int(pairs.sum()),
        }

    def per_query(self) -> dict[str, np.ndarray]:
        """Columns with an entry for each query, in the order of the data. Forgets the rows."""
        y, scores, qid = self._rows()
        new = np.append(True, qid[1:] != qid[:-1]) if len(y) else np.empty(0, bool)
        starts = np.append(np.flatnonzero(new), len(y))
        query = np.cumsum(new)
        by_label = np.lexsort((-y, query))
        ideal = y[by_label]
        levels = np.empty(len(y), np.int64)
        levels[by_label], pairs = _ranks(ideal, new)
        by_score = np.lexsort((-scores, query))
        y, scores, levels = y[by_score], scores[by_score], levels[by_score]
        swapped, precision = np.empty(len(starts) - 1), np.empty(len(starts) - 1)
        ndcg = np.empty((len(starts) - 1, len(CUTOFFS)))
        rankings.swapped_pairs(levels, scores, starts, np.empty(int(levels.max(initial=0)) + 2, np.int64), swapped)
        with np.errstate(over="ignore"):
            gains, best = np.exp2(y) - 1.0, np.exp2(ideal) - 1.0
        rankings.gains_and_precision(gains, y > 0.0, scores, starts, best, np.array(CUTOFFS), ndcg, precision)
        if y.min(initial=0.0) < 0.0 or y.max(initial=0.0) > _HIGHEST:
            ndcg[:] = np.nan
        sizes = np.diff(starts)
        return {
            "qid": qid[starts[:-1]],
            "rows": sizes,
            "pairs": pairs,
            "swapped": swapped,
            "average_precision": precision,
            **{f"ndcg_at_{k}": ndcg[:, c] for c, k in enumerate(CUTOFFS)},
        }

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        parts, self._parts = self._parts, []
        y = np.concatenate([part[0] for part in parts] or [np.empty(0)])
        scores = np.concatenate([part[1] for part in parts] or [np.empty(0)])
        qid = np.concatenate([np.zeros(len(p[0]), np.int64) if p[2] is None else p[2] for p in parts] or [np.empty(0, np.int64)])
        return y, scores, qid


def _ranks(falling: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(the rank of each label in its query, int64 (n,), 0 for the lowest; the pairs of each query with different labels).

    `falling` labels descend within each query; `new` says where one begins.
    """
    if not len(falling):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts = np.append(np.flatnonzero(new), len(new))
    run = np.cumsum(np.append(True, falling[1:] != falling[:-1]) | new) - 1  # of equal labels of a query
    sizes, lengths = np.diff(starts), np.bincount(run)
    equal = np.add.reduceat(lengths * lengths, run[starts[:-1]])
    return np.repeat(run[starts[1:] - 1], sizes) - run, (sizes * sizes - equal) // 2


class RocAreaMeasures:
    """ROC area and average precision, the larger label of the rows being the positive one. Keeps 16 bytes a row."""

    row_bytes: ClassVar[tuple[int, int]] = (32, 80)
    to_choose: ClassVar[tuple[str, ...]] = ("roc_auc", "average_precision")
    losses: ClassVar[tuple[str, ...]] = ()

    def __init__(self, model: Model) -> None:
        self._scores: dict[float, Scored] = {}
        self._rows = 0

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for a third label."""
        self._rows += chunk.n_rows
        for label in np.unique(chunk.y):
            these = chunk.y == label
            weight = None if chunk.weight is None else chunk.weight[these]
            self._scores.setdefault(float(label), []).append((scores[these], weight))
        if len(self._scores) > 2:
            some = ", ".join(f"{label:g}" for label in sorted(self._scores))
            raise BadInputError(f"the area under the ROC curve needs two labels; these rows have {some}")

    @cached_property
    def separation(self) -> Separation | None:
        """How the scores separate the two labels, None with one label. No rows can be added afterwards."""
        if len(self._scores) < 2:
            return None
        low, high = sorted(self._scores)
        return Separation(self._scores[high], self._scores[low])

    def measures(self) -> dict[str, object]:
        """Every measure by its name; None with one label only."""
        separation = self.separation
        auc, precision = (None, None) if separation is None else (separation.roc_auc, separation.average_precision)
        return {"roc_auc": auc, "average_precision": precision, "rows": self._rows}
