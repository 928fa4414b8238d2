"""How well a model does on labelled rows, streamed; only scores are kept, for the measures that compare them with each other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from streamcut.models.linear import LinearModel
from streamcut.prediction import as_model, scored_chunks

QUERIES_AT_ONCE = 1 << 18
_MEASURES = (
    "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "precision", "recall", "f1", "mean_hinge_loss",
    "rows", "weight", "true_positives", "false_positives", "true_negatives", "false_negatives",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Measures over rows of weight u_i (1 unless given); None where a measure is undefined, such as the AUC of one class.

    The four counts are sums of u_i. `average_precision`, `precision`, `recall` and `f1` speak of the positive label.
    """

    rows: int
    weight: float
    true_positives: float
    false_positives: float
    true_negatives: float
    false_negatives: float
    mean_hinge_loss: float | None
    roc_auc: float | None
    average_precision: float | None

    @property
    def accuracy(self) -> float | None:
        return _ratio(self.true_positives + self.true_negatives, self.weight)

    @property
    def balanced_accuracy(self) -> float | None:
        """Mean of the two recalls."""
        specificity = _ratio(self.true_negatives, self.true_negatives + self.false_positives)
        return None if self.recall is None or specificity is None else 0.5 * (self.recall + specificity)

    @property
    def precision(self) -> float | None:
        return _ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float | None:
        return _ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float | None:
        return _ratio(2 * self.true_positives, 2 * self.true_positives + self.false_positives + self.false_negatives)

    def measures(self) -> dict[str, float | None]:
        """Every measure by its name: accuracy and its kind first, what they were counted from last."""
        return {name: getattr(self, name) for name in _MEASURES}


def evaluate(
    model: LinearModel | str | os.PathLike, data: Any, *, ignore_extra_features: bool = False, index_base: int = 1
) -> Evaluation:
    """Measure `model` on `data`: an opened data set, the path of a store or of an svmlight file, (X, y) or (X, y, row weights).

    `ignore_extra_features` and `index_base` are those of `predict`.
    Needs 8 bytes a row to sort the scores (16 more where rows have weights), and as much again while it does.
    Raises BadInputError for labels or features that the model does not know.
    """
    model = as_model(model)
    kept: dict[bool, list[tuple[np.ndarray, np.ndarray | None]]] = {True: [], False: []}
    counts = {(truth, said): 0.0 for truth in (True, False) for said in (True, False)}
    rows, loss, weight = 0, 0.0, 0.0
    for chunk, scores in scored_chunks(model, data, ignore_extra_features=ignore_extra_features, index_base=index_base):
        positive = model.is_positive(chunk.y, chunk.first_row)
        u = chunk.weight
        hinge = np.maximum(0.0, 1.0 - np.where(positive, scores, -scores))
        rows += chunk.n_rows
        weight += chunk.n_rows if u is None else float(u.sum())
        loss += float(hinge.sum() if u is None else u @ hinge)
        for truth, said in counts:
            these = (positive == truth) & ((scores > 0) == said)
            counts[truth, said] += float(np.count_nonzero(these) if u is None else u[these].sum())
        for truth, parts in kept.items():
            these = positive == truth if u is None else (positive == truth) & (u > 0)
            parts.append((scores[these], None if u is None else u[these]))
    above, below = _Ranking(kept[True]), _Ranking(kept[False])
    auc, precision = _ranking_measures(above, below)
    return Evaluation(
        rows=rows,
        weight=weight,
        true_positives=counts[True, True],
        false_positives=counts[False, True],
        true_negatives=counts[False, False],
        false_negatives=counts[True, False],
        mean_hinge_loss=_ratio(loss, weight),
        roc_auc=auc,
        average_precision=precision,
    )


class _Ranking:
    """Scores of one class in ascending order, and the weight that lies below a score. Empties `parts` to free its memory."""

    def __init__(self, parts: list[tuple[np.ndarray, np.ndarray | None]]) -> None:
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


def _ranking_measures(positives: _Ranking, negatives: _Ranking) -> tuple[float | None, float | None]:
    """(ROC AUC, average precision).

    AUC: how often a positive scores above a negative, ties counting half. Average precision: the mean over the positives of the
    precision when everything with at least their score is called positive; this is scikit-learn's sum over thresholds, since
    thresholds without a positive of their own add nothing to it.
    """
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


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
