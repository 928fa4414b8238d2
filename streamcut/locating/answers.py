"""Predictions with a proof: which labels are those of the exact optimum, and between which numbers its scores are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import Shown
from streamcut.locating.problem import bends, expect_locatable, gap_part, tighter
from streamcut.locating.regions import Nowhere, Region, region_of
from streamcut.models.linear import LinearModel

_LIKELY = 4e-15  # an exponential and a division are off by less, of 1
_PRECISE = 1e-4  # of F: a gap that proves most labels of most data


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CertifiedAnswers(Shown):
    """What a model says of n rows, and what is proved of the exact optimum of its problem.

    labels    float64 (n,), or words (object, n): the model's, whether they are proved or not; of numbers what it predicts
    proved    bool (n,): the exact optimum gives the row the same label; of numbers: it is known to within `low` and `high`
    low, high float64 (n,): between them is the optimum's probability of the positive label where the model has probabilities,
              what it predicts where targets are numbers, and else its score
    advice    where few of the labels are proved: why, and what would prove more
    """

    labels: np.ndarray
    proved: np.ndarray
    low: np.ndarray
    high: np.ndarray
    advice: str = ""

    @property
    def share(self) -> float:
        """The part of the rows that are proved."""
        return float(self.proved.mean()) if len(self.proved) else 0.0

    def shown(self) -> dict[str, Any]:
        return {"rows": len(self.labels), "proved": self.share, "advice": self.advice or None}


class Certifier:
    """Proves the answers of `model` for blocks of rows; `nothing` says why there is no proof for any, if that is so.

    Raises UsageError for models that have no proofs, and for those that need the rows that they were trained on.
    """

    def __init__(self, model: Any, nothing: str = "") -> None:
        self.model, self._nothing = expect_locatable(model), nothing
        self._region: Region = Nowhere() if nothing else region_of(self.model)
        self.rows = self.proved = 0

    def scores(self, chunk: Chunk, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) of the optimum's scores, float64 (n,); the model's are `found`."""
        return self._region.within(chunk, found)

    def answers(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(proved, low, high) of CertifiedAnswers, of such scores."""
        model = self.model
        if model.task == "regression":
            proved = np.isfinite(low) & np.isfinite(high)
            with np.errstate(over="ignore", invalid="ignore"):
                ends = [model.labels_of(each) for each in (low, high)]
            if model.parameters.get("loss") == "poisson":
                ends = [np.nextafter(ends[0] * (1.0 - _LIKELY), -np.inf), np.nextafter(ends[1] * (1.0 + _LIKELY), np.inf)]
        else:
            proved, ends = (low > 0.0) | (high <= 0.0), [low, high]
            if model.has_probabilities:
                both = [np.asarray(model.probabilities_of(each)) for each in (low, high)]
                ends = [np.maximum(np.minimum(*both) - _LIKELY, 0.0), np.minimum(np.maximum(*both) + _LIKELY, 1.0)]
        self.rows += len(low)
        self.proved += int(np.count_nonzero(proved))
        return proved, ends[0], ends[1]

    @property
    def advice(self) -> str:
        """As CertifiedAnswers has it, of all rows so far."""
        return self._nothing or advice(self.model, self.proved / self.rows if self.rows else 1.0)


def certified_answers(certifier: Certifier, chunks: Iterable[tuple[Chunk, np.ndarray]]) -> CertifiedAnswers:
    """The answers for rows and their scores."""
    parts: list[tuple[np.ndarray, ...]] = []
    for chunk, found in chunks:
        parts.append((certifier.model.labels_of(found), *certifier.answers(*certifier.scores(chunk, found))))
    if not parts:
        nothing = np.empty(0)
        return CertifiedAnswers(nothing, np.empty(0, bool), nothing, nothing)
    labels, proved, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
    return CertifiedAnswers(np.asarray(certifier.model.in_label_words(labels)), proved, low, high, certifier.advice)


def advice(model: LinearModel, share: float) -> str:
    """What would prove more labels than this share of them; "" where most are proved."""
    if share > 0.5 or model.task == "regression":
        return ""
    part = gap_part(model, model.certificate.gap)
    found = "proved nothing" if share == 0.0 else f"proved only {100.0 * share:.2g} % of the labels"
    helps = [tighter(part)] if part > _PRECISE else []
    if model.optimum is None and bends(model):
        helps.append("give the rows that it was trained on (trained_on, --trained-on)")
    if not helps:
        helps.append(
            tighter(part) if model.optimum is not None else "a loss with curvature (logistic, squared-hinge) proves more"
        )
    return f"{found}: gap {part:.1g} of F; {' and '.join(helps)}"
