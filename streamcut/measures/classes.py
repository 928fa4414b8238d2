"""Measures of classifiers: of their labels, their scores, and their probabilities.

log_loss           mean of −log p of the true class, p at least 2⁻⁵², as in scikit-learn
brier_score        mean of (1 − p)² for two classes, p of the true class; for several Σ_k (p_k − 1[k is true])²
calibration_error  mean |share of hits − mean probability| over 15 bins of equal width (Guo et al. 2017: ECE)
reliability        the bins that hold rows: `mean` probability, `share` of hits, `weight`

For two classes the bins are of the probability of the positive label, for several that of the most likely class; each of
several classes also has a calibration_error.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.measures.separation import Scored, Separation, ratio
from streamcut.measures.trained_loss import TrainedLoss
from streamcut.models.model import Model

BINS = 15
LOSSES = ("log_loss", "brier_score", "calibration_error")  # lower is better
LEAST = float(np.finfo(np.float64).eps)


class ProbabilityMeasures:
    """Sums over rows: memory does not grow with them."""

    def __init__(self) -> None:
        self._weight = self._log = self._brier = 0.0
        self._bins = np.zeros((3, BINS))  # weight, Σ u p, Σ u hit
        self._off: np.ndarray | None = None  # (K, BINS): Σ u (p − hit) of each of several classes

    def add_binary(self, positive: np.ndarray, p: np.ndarray, u: np.ndarray | None) -> None:
        """Rows of the class `positive` bool (n,) with probabilities `p` (n,) of it, and weights (n,) or None."""
        truth = np.where(positive, p, 1.0 - p)
        self._add(truth, (1.0 - truth) ** 2, p, positive, u)

    def add_classes(self, target: np.ndarray, p: np.ndarray, u: np.ndarray | None) -> None:
        """Rows of class `target` int (n,) with probabilities `p` (n, K), and weights (n,) or None."""
        truth = p[np.arange(len(p)), target]
        brier = (p * p).sum(axis=1) - 2.0 * truth + 1.0
        self._add(truth, brier, p.max(axis=1), p.argmax(axis=1) == target, u)
        if self._off is None:
            self._off = np.zeros((p.shape[1], BINS))
        for k, off in enumerate(self._off):
            error = p[:, k] - (target == k)
            off += np.bincount(_bins(p[:, k]), error if u is None else u * error, BINS)

    def calibration_errors(self, classes: int) -> list[float | None]:
        """One per class, by bins of its own probability; None if there are no rows."""
        off = np.zeros((classes, BINS)) if self._off is None else self._off
        return [ratio(float(np.abs(gaps).sum()), self._weight) for gaps in off]

    def _add(self, truth: np.ndarray, brier: np.ndarray, p: np.ndarray, hit: np.ndarray, u: np.ndarray | None) -> None:
        weight = np.ones(len(p)) if u is None else u
        self._weight += float(weight.sum())
        self._log -= float(weight @ np.log(np.maximum(truth, LEAST)))
        self._brier += float(weight @ brier)
        bins = _bins(p)
        for row, values in zip(self._bins, (weight, weight * p, weight * hit), strict=True):
            row += np.bincount(bins, values, BINS)

    def measures(self) -> dict[str, object]:
        """Every measure by its name (JSON types); None if there are no rows."""
        weight, means, hits = self._bins
        full = np.flatnonzero(weight)
        bins = [
            {"mean": float(means[i] / weight[i]), "share": float(hits[i] / weight[i]), "weight": float(weight[i])}
            for i in full.tolist()
        ]
        return {
            "log_loss": ratio(self._log, self._weight),
            "brier_score": ratio(self._brier, self._weight),
            "calibration_error": ratio(float(np.abs(means - hits).sum()), self._weight),
            "reliability": bins,
        }


def _bins(p: np.ndarray) -> np.ndarray:
    """The bin of each probability."""
    return np.minimum((p * BINS).astype(np.int64), BINS - 1)


class BinaryMeasures:
    """Measures over rows of weight u_i (1 by default); None where one is undefined, such as the AUC of one class.

    The four counts are sums of u_i. `average_precision`, `precision`, `recall` and `f1` are for the positive label. A model
    with probabilities is also measured by them. Needs 8 bytes a row to sort the scores (16
    more if rows have weights), and as much again while sorting.
    """

    row_bytes: ClassVar[tuple[int, int]] = (24, 72)
    to_choose: ClassVar[tuple[str, ...]] = (
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "precision", "recall", "f1",
    )  # fmt: skip
    losses: ClassVar[tuple[str, ...]] = (
        *LOSSES, *(f"mean_{name.replace('-', '_')}_loss" for name, loss in ROW_LOSSES.items() if loss.targets == "labels"),
    )  # fmt: skip

    def __init__(self, model: Model) -> None:
        self._model = model
        self._kept: dict[bool, Scored] = {True: [], False: []}
        self._counts = {(truth, said): 0.0 for truth in (True, False) for said in (True, False)}
        self._rows, self._loss, self._weight = 0, 0.0, 0.0
        problem = model.problem
        self._name = problem.loss if problem.loss in ROW_LOSSES else "hinge"  # for models of a measure of the whole data
        self._risk = PointwiseRisk.of(replace(problem, loss=self._name))
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

    @cached_property
    def separation(self) -> Separation:
        """How the scores separate the two classes. No rows can be added afterwards."""
        return Separation(self._kept[True], self._kept[False])

    def measures(self) -> dict[str, object]:
        """Every measure by its name: accuracy and the like first, the counts behind them last."""
        hits, false = self._counts[True, True], self._counts[False, True]
        correct_rejections, misses = self._counts[False, False], self._counts[True, False]
        recall, specificity = ratio(hits, hits + misses), ratio(correct_rejections, correct_rejections + false)
        return {
            "accuracy": ratio(hits + correct_rejections, self._weight),
            "balanced_accuracy": None if recall is None or specificity is None else 0.5 * (recall + specificity),
            "roc_auc": self.separation.roc_auc,
            "average_precision": self.separation.average_precision,
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


class MulticlassMeasures:
    """Measures over rows of weight u_i (1 by default); None where one is undefined, such as the recall of an absent class.

    Balanced accuracy is the mean recall of the classes that occur; macro F1 the mean F1 of those that occur or are predicted;
    micro F1 is the accuracy, since every row has one label. The mean loss is the trained one: Crammer-Singer, softmax, or the
    sum over all classes of the loss against the rest. A model with probabilities is also measured by them.
    """

    row_bytes: ClassVar[tuple[int, int]] = (0, 0)
    to_choose: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", "macro_f1", "micro_f1")
    losses: ClassVar[tuple[str, ...]] = (*LOSSES, "mean_loss")

    def __init__(self, model: Model) -> None:
        self._model, self._labels, self._trained_loss = model, model.labels or (), TrainedLoss(model)
        self._confusion = np.zeros((len(self._labels), len(self._labels)))
        self._rows, self._loss = 0, 0.0
        self._probability = ProbabilityMeasures() if model.has_probabilities else None

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for labels that the model does not know."""
        target = self._model.classes_of(chunk.y, chunk.first_row)
        u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        np.add.at(self._confusion, (target, scores.argmax(axis=1)), u)
        self._rows += chunk.n_rows
        self._loss += float(u @ self._trained_loss.values(target, scores).sum(axis=1))
        if self._probability is not None:
            self._probability.add_classes(target, self._model.probabilities_of(scores), chunk.weight)

    def measures(self) -> dict[str, object]:
        """Every measure by its name: overall figures first, then those of each class, and the confusion matrix.

        `confusion_matrix[t][p]` is the weight of rows of the t-th label (of `labels`) that were predicted as the p-th.
        """
        confusion = self._confusion
        total, hits = float(confusion.sum()), np.diag(confusion)
        truths, claims = confusion.sum(axis=1), confusion.sum(axis=0)
        classes: list[dict[str, Any]] = [
            {
                "label": self._model.label_word(label),
                "precision": ratio(float(hit), float(claim)),
                "recall": ratio(float(hit), float(truth)),
                "f1": ratio(2 * float(hit), float(truth + claim)),
                "support": float(truth),
            }
            for label, hit, truth, claim in zip(self._labels, hits, truths, claims, strict=True)
        ]
        if self._probability is not None:
            for line, error in zip(classes, self._probability.calibration_errors(len(classes)), strict=True):
                line["calibration_error"] = error
        accuracy = ratio(float(hits.sum()), total)
        return {
            "accuracy": accuracy,
            "balanced_accuracy": _mean([line["recall"] for line in classes]),
            "macro_f1": _mean([line["f1"] for line in classes]),
            "micro_f1": accuracy,
            **({} if self._probability is None else self._probability.measures()),
            "mean_loss": ratio(self._loss, total),
            "rows": self._rows,
            "weight": total,
            "labels": [self._model.label_word(label) for label in self._labels],
            "classes": classes,
            "confusion_matrix": confusion.tolist(),
        }


def _mean(values: list[float | None]) -> float | None:
    """Mean of those that are defined."""
    defined = [value for value in values if value is not None]
    return ratio(sum(defined), len(defined))
