"""Measures of a binary classifier: scores are kept, for the measures that compare them with each other."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.measures.probability import LOSSES, ProbabilityMeasures, ratio
from streamcut.measures.separation import Scored, Separation
from streamcut.models.model import Model


class BinaryMeasures:
    """Measures over rows of weight u_i (1 unless given); None where one is undefined, such as the AUC of one class.

    The four counts are sums of u_i. `average_precision`, `precision`, `recall` and `f1` are for the positive label. A model
    with probabilities is also measured by them (streamcut.measures.probability). Needs 8 bytes a row to sort the scores (16
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

    def measures(self) -> dict[str, float | int | None]:
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
