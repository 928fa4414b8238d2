"""Bounds on measures of the exact optimum on labelled rows, for any model trained to find it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import gamma
from streamcut.locating.answers import Certifier
from streamcut.measures.probability import LEAST
from streamcut.measures.separation import Scored, Separation

Between = tuple[float, float]


class OptimumMeasures:
    """Accuracy, log loss and the ROC area of the exact optimum of a model's problem, each between two bounds.

    A label is right if the whole interval of its row says so, wrong if the whole interval says that, and either otherwise. The
    ROC area is least with the positive rows at the low ends of their intervals and the negative ones at the high ends.
    """

    row_bytes: ClassVar[tuple[int, int]] = (48, 144)

    def __init__(self, certifier: Certifier) -> None:
        if certifier.model.task != "binary":
            raise UsageError(f"certified measures are for two classes, not for a model of task {certifier.model.task}")
        self._certifier = certifier
        self._right = self._wrong = self._weight = 0.0
        self._log = np.zeros(2)
        self._kept: tuple[tuple[Scored, Scored], ...] = (
            ([], []),
            ([], []),
        )  # (positive, negative) rows where the area is least, most

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores; raises BadInputError for labels that the model does not know."""
        positive = self._certifier.model.is_positive(chunk.y, chunk.first_row)
        u = np.ones(chunk.n_rows) if chunk.weight is None else np.asarray(chunk.weight, np.float64)
        low, high = self._certifier.scores(chunk, scores)
        above, below = low > 0.0, high <= 0.0
        self._weight += float(u.sum())
        self._right += float(u[np.where(positive, above, below)].sum())
        self._wrong += float(u[np.where(positive, below, above)].sum())
        _, p_low, p_high = self._certifier.answers(scores, low, high)
        if self._certifier.model.has_probabilities:
            truths = np.where(positive, p_high, 1.0 - p_low), np.where(positive, p_low, 1.0 - p_high)
            self._log += [-float(u @ np.log(np.maximum(truth, LEAST))) for truth in truths]
        for (positives, negatives), (mine, other) in zip(self._kept, ((low, high), (high, low)), strict=True):
            for parts, of_class, ends in ((positives, positive, mine), (negatives, ~positive, other)):
                these = of_class & (u > 0.0)
                parts.append((ends[these], None if chunk.weight is None else u[these]))

    def measures(self) -> dict[str, Between | float | None]:
        """{measure: (low, high)}, None if undefined on these rows; `proved`, the share of the labels that are."""
        rows, weight = self._certifier.rows, self._weight
        own = gamma(rows + 64.0)  # of sums over rows, and of the logarithms in them
        least, most = (Separation(*kept).roc_auc for kept in self._kept)
        log = None
        if weight > 0.0 and self._certifier.model.has_probabilities:
            log = float(self._log[0]) / weight * (1.0 - own), float(self._log[1]) / weight * (1.0 + own)
        return {
            "accuracy": _part(self._right / weight, 1.0 - self._wrong / weight, own) if weight > 0.0 else None,
            "log_loss": log,
            "roc_auc": None if least is None or most is None else _part(least, most, 2.0 * own),
            "proved": self._certifier.proved / rows if rows else 1.0,
        }


def _part(low: float, high: float, own: float) -> Between:
    """Bounds on a fraction, widened by rounding."""
    return max(0.0, low - own), min(1.0, high + own)
