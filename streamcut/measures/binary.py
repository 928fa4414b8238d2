"""Measures of a binary classifier: scores are kept, for the measures that compare them with each other."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from streamcut.chunk import Chunk
from streamcut.config import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.measures.probability import ProbabilityMeasures
from streamcut.measures.ratio import ratio
from streamcut.models.linear import LinearModel

QUERIES_AT_ONCE = 1 << 18

Scored = list[tuple[np.ndarray, np.ndarray | None]]  # scores of rows, and their weights unless all are 1


class BinaryMeasures:
    """Measures over rows of weight u_i (1 unless given); None where one is undefined, such as the AUC of one class.

    The four counts are sums of u_i. `average_precision`, `precision`, `recall` and `f1` speak of the positive label.
    A model that has probabilities is measured by them, too (streamcut.measures.probability).
    Needs 8 bytes a row to sort the scores (16 more where rows have weights), and as much again while it does.
    """

    to_choose: ClassVar[tuple[str, ...]] = (
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "precision", "recall", "f1",
    )  # fmt: skip

    def __init__(self, model: LinearModel) -> None:
        self._model = model
        self._kept: dict[bool, Scored] = {True: [], False: []}
        self._counts = {(truth, said): 0.0 for truth in (True, False) for said in (True, False)}
        self._rows, self._loss, self._weight = 0, 0.0, 0.0
        name = model.parameters.get("loss", "hinge")
        self._name = name if name in ROW_LOSSES else "hinge"  # of models for a measure of the whole data
        self._risk = PointwiseRisk(row_loss(self._name, model.parameters, (model.labels or (-1.0, 1.0))[1]))
        self._probability = ProbabilityMeasures() if model.has_probabilities else None

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for labels that the model does not know."""
        positive = self._model.is_positive(chunk.y, chunk.first_row)
        u = chunk.weight
        losses = self._risk.values(chunk.y, scores)
        self._rows += chunk.n_rows
        self._weight += chunk.n_rows if u is None else float(u.sum())
        self._loss += float(losses.sum() if u is None else u @ losses)
        if self._probability is not None:
            self._probability.add_binary(positive, self._model.probabilities_of(scores), u)
        for truth, said in self._counts:
            these = (positive == truth) & ((scores > 0) == said)
            self._counts[truth, said] += float(np.count_nonzero(these) if u is None else u[these].sum())
        for truth, parts in self._kept.items():
            these = positive == truth if u is None else (positive == truth) & (u > 0)
            parts.append((scores[these], None if u is None else u[these]))

    def measures(self) -> dict[str, float | int | None]:
        """Every measure by its name: accuracy and its kind first, what they were counted from last. Forgets the rows."""
        auc, average_precision = ranking_measures(self._kept[True], self._kept[False])
        hits, false = self._counts[True, True], self._counts[False, True]
        correct_rejections, misses = self._counts[False, False], self._counts[True, False]
        recall, specificity = ratio(hits, hits + misses), ratio(correct_rejections, correct_rejections + false)
        return {
            "accuracy": ratio(hits + correct_rejections, self._weight),
            "balanced_accuracy": None if recall is None or specificity is None else 0.5 * (recall + specificity),
            "roc_auc": auc,
            "average_precision": average_precision,
            "precision": ratio(hits, hits + false),
            "recall": recall,
            "f1": ratio(2 * hits, 2 * hits + false + misses),
            **({} if self._probability is None else self._probability.measures()),
            f"mean_{self._name.replace('-', '_')}_loss": ratio(self._loss, self._weight),
            "rows": self._rows,
            "weight": self._weight,
            "true_positives": hits,
            "false_positives": false,
            "true_negatives": correct_rejections,
            "false_negatives": misses,
        }


class _Ranking:
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
        """Weight of what is < `scores` (side "left") or ≤ `scores` ("right")."""
        places = np.searchsorted(self.scores, scores, side=side)
        return places.astype(np.float64) if self.weights is None else self._before[places]


def ranking_measures(above: Scored, below: Scored) -> tuple[float | None, float | None]:
    """(ROC AUC, average precision) of the positive rows `above` and the negative rows `below`, which are emptied.

    AUC: how often a positive scores above a negative, ties counting half. Average precision: the mean over the positives of the
    precision when everything with at least their score is called positive; this is scikit-learn's sum over thresholds, since
    thresholds without a positive of their own add nothing to it.
    """
    positives, negatives = _Ranking(above), _Ranking(below)
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
