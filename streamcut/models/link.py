"""Probabilities from scores: implied by the loss, or fitted afterwards (streamcut.calibration)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """P(positive | score s) = 1 / (1 + exp(A·s + B)), fitted on `rows` rows (0: not fitted)."""

    A: float = -1.0
    B: float = 0.0
    rows: int = 0

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the positive label, float64 (n,), for scores (n,)."""
        z = self.A * scores + self.B
        small = np.exp(-np.abs(z))
        return np.where(z > 0.0, small, 1.0) / (1.0 + small)


@dataclass(frozen=True, slots=True)
class SoftmaxLink:
    """P(class k | scores s) ∝ exp(scale·s_k + offsets_k), fitted on `rows` rows (0: not fitted); no offsets: all 0."""

    scale: float = 1.0
    offsets: tuple[float, ...] = ()
    rows: int = 0

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, float64 (n, K), for scores (n, K)."""
        return _softmax(self.scale * scores + (np.array(self.offsets) if self.offsets else 0.0))


@dataclass(frozen=True, slots=True)
class Odds:
    """P(class k | scores s) ∝ 1 / (1 + exp(−s_k)): for one-vs-rest models whose scores are log-odds."""

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the classes, float64 (n, K), for scores (n, K); where all underflow, those of a softmax."""
        return _softmax(np.minimum(scores, 0.0) - np.log1p(np.exp(-np.abs(scores))))


def _softmax(scores: np.ndarray) -> np.ndarray:
    parts = np.exp(scores - scores.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


Link = Sigmoid | SoftmaxLink  # links that can be fitted
OwnLink = Link | Odds  # links that losses imply
