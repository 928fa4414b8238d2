"""Measures of a classifier for several classes, all from the confusion matrix."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.measures.probability import LOSSES, ProbabilityMeasures, ratio
from streamcut.measures.trained_loss import TrainedLoss


class MulticlassMeasures:
    """Measures over rows of weight u_i (1 unless given); None where one is undefined, such as the recall of an absent class.

    Balanced accuracy is the mean recall of the classes that occur; macro F1 the mean F1 of those that occur or are predicted;
    micro F1 is the accuracy, since every row has one label. The mean loss is the trained one: Crammer-Singer, softmax, or the
    sum over all classes of the loss against the rest. A model with probabilities is also measured by them.
    """

    row_bytes: ClassVar[tuple[int, int]] = (0, 0)
    to_choose: ClassVar[tuple[str, ...]] = ("accuracy", "balanced_accuracy", "macro_f1", "micro_f1")
    losses: ClassVar[tuple[str, ...]] = (*LOSSES, "mean_loss")

    def __init__(self, model: Any) -> None:
        self._model, self._trained_loss = model, TrainedLoss(model)
        self._confusion = np.zeros((len(model.labels), len(model.labels)))
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

    def measures(self) -> dict[str, Any]:
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
            for label, hit, truth, claim in zip(self._model.labels, hits, truths, claims, strict=True)
        ]
        if self._probability is not None:
            for each, error in zip(classes, self._probability.calibration_errors(len(classes)), strict=True):
                each["calibration_error"] = error
        accuracy = ratio(float(hits.sum()), total)
        return {
            "accuracy": accuracy,
            "balanced_accuracy": _mean([each["recall"] for each in classes]),
            "macro_f1": _mean([each["f1"] for each in classes]),
            "micro_f1": accuracy,
            **({} if self._probability is None else self._probability.measures()),
            "mean_loss": ratio(self._loss, total),
            "rows": self._rows,
            "weight": total,
            "labels": [self._model.label_word(label) for label in self._model.labels],
            "classes": classes,
            "confusion_matrix": confusion.tolist(),
        }


def _mean(values: list[float | None]) -> float | None:
    """Mean of those that are defined."""
    defined = [value for value in values if value is not None]
    return ratio(sum(defined), len(defined))
