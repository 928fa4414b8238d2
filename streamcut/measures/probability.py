"""Measures of probabilities: their distance from the outcomes, and their calibration.

log_loss           mean of −log p of the true class, p at least 2⁻⁵², as in scikit-learn
brier_score        mean of (1 − p)² for two classes, p of the true class; for several Σ_k (p_k − 1[k is true])²
calibration_error  mean |share of hits − mean probability| over 15 bins of equal width (Guo et al. 2017: ECE)
reliability        the bins that hold rows: `mean` probability, `share` of hits, `weight`

For two classes the bins are of the probability of the positive label, for several that of the most likely class; each of
several classes also has a calibration_error of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BINS = 15
LOSSES = ("log_loss", "brier_score", "calibration_error")  # lower is better
LEAST = float(np.finfo(np.float64).eps)


def ratio(part: float, whole: float) -> float | None:
    """part / whole, None when there is nothing to divide by."""
    return part / whole if whole else None


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
        return [ratio(float(np.abs(own).sum()), self._weight) for own in off]

    def _add(self, truth: np.ndarray, brier: np.ndarray, p: np.ndarray, hit: np.ndarray, u: np.ndarray | None) -> None:
        weight = np.ones(len(p)) if u is None else u
        self._weight += float(weight.sum())
        self._log -= float(weight @ np.log(np.maximum(truth, LEAST)))
        self._brier += float(weight @ brier)
        bins = _bins(p)
        for row, values in zip(self._bins, (weight, weight * p, weight * hit), strict=True):
            row += np.bincount(bins, values, BINS)

    def measures(self) -> dict[str, Any]:
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
