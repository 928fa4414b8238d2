"""Predictions with a proof: which labels are those of the exact optimum, and bounds on its scores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import Shown
from streamcut.locating.problem import bends, expect_locatable, gap_part, tighter
from streamcut.locating.regions import Nowhere, Region, region_of

_LIKELY = 4e-15  # absolute: an exponential and a division are off by less
_PRECISE = 1e-4  # of F: a gap that proves most labels of most data


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CertifiedAnswers(Shown):
    """What a model predicts for n rows, and what is proved of the exact optimum of its problem.

    labels    float64 (n,), or words (object, n): the model's, whether proved or not; for numbers, its predictions
    proved    bool (n,): the exact optimum gives the row the same label; for numbers: it is bounded by `low` and `high`
    low, high float64 (n,): between them is the optimum's probability of the positive label where the model has probabilities,
              what it predicts where targets are numbers, and else its score
    advice    if few of the labels are proved: why, and what would prove more
    """

    labels: np.ndarray
    proved: np.ndarray
    low: np.ndarray
    high: np.ndarray
    advice: str = ""

    @property
    def share(self) -> float:
        """The fraction of the rows that are proved."""
        return float(self.proved.mean()) if len(self.proved) else 0.0

    def shown(self) -> dict[str, Any]:
        return {"rows": len(self.labels), "proved": self.share, "advice": self.advice or None}


class Certifier:
    """Proves the answers of `model` for blocks of rows; `nothing` says why nothing is proved, if that is so.

    region   where the optimum's scores are, if more is known than the model records
    refuted  rows to which the optimum is proved to give the other label

    Raises UsageError for models that have no proofs or need the rows that they were trained on.
    """

    def __init__(self, model: Any, nothing: str = "", region: Region | None = None) -> None:
        self.model, self._nothing = expect_locatable(model), nothing
        self._region: Region = Nowhere() if nothing else region or region_of(self.model)
        self._with_rows = region is not None or self.model.optimum is not None
        self.rows = self.proved = self.refuted = 0

    def scores(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of the optimum's scores, float64 (n,); the model's are `found`."""
        return self._region.within(chunk, found)

    def answers(self, found: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(proved, low, high) of CertifiedAnswers for these scores; the model's are `found`."""
        model = self.model
        if model.task == "regression":
            proved = np.isfinite(low) & np.isfinite(high)
            with np.errstate(over="ignore", invalid="ignore"):
                ends = [model.labels_of(each) for each in (low, high)]
            if model.parameters.get("loss") == "poisson":
                ends = [np.nextafter(ends[0] * (1.0 - _LIKELY), -np.inf), np.nextafter(ends[1] * (1.0 + _LIKELY), np.inf)]
        else:
            proved, ends = np.where(found > 0.0, low > 0.0, high <= 0.0), [low, high]
            self.refuted += int(np.count_nonzero(np.where(found > 0.0, high <= 0.0, low > 0.0)))
            if model.has_probabilities:
                both = [np.asarray(model.probabilities_of(each)) for each in (low, high)]
                ends = [np.maximum(np.minimum(*both) - _LIKELY, 0.0), np.minimum(np.maximum(*both) + _LIKELY, 1.0)]
        self.rows += len(low)
        self.proved += int(np.count_nonzero(proved))
        return proved, ends[0], ends[1]

    @property
    def advice(self) -> str:
        """The advice of CertifiedAnswers for all rows so far."""
        share = self.proved / self.rows if self.rows else 1.0
        if self._nothing or share > 0.5 or self.model.task == "regression":
            return self._nothing
        found = "proved nothing" if share == 0.0 else f"proved only {100.0 * share:.2g} % of the labels"
        if self.refuted > self.rows // 4:
            return f"{found}: the optimum is proved to give {self.refuted:,} rows the other label; train further"
        part = gap_part(self.model, self.model.certificate.gap)
        helps = [tighter(part)] if part > _PRECISE or self._with_rows else []
        if not self._with_rows and bends(self.model):
            helps.append("give the rows that it was trained on (trained_on, --trained-on)")
        if not bends(self.model):
            helps.append("a loss with curvature (logistic, squared-hinge) proves more")
        return f"{found}: gap {part:.1g} of F; {'; '.join(helps)}"


def certified_answers(certifier: Certifier, chunks: Iterable[tuple[Chunk, np.ndarray]]) -> CertifiedAnswers:
    """The answers for rows and their scores."""
    parts: list[tuple[np.ndarray, ...]] = []
    for chunk, found in chunks:
        parts.append((certifier.model.labels_of(found), *certifier.answers(found, *certifier.scores(chunk, found))))
    if not parts:
        nothing = np.empty(0)
        return CertifiedAnswers(nothing, np.empty(0, bool), nothing, nothing)
    labels, proved, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    return CertifiedAnswers(np.asarray(certifier.model.in_label_words(labels)), proved, low, high, certifier.advice)
