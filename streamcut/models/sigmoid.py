"""Probabilities from scores: Platt's sigmoid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """P(positive | score s) = 1 / (1 + exp(A·s + B)), fitted on `rows` rows."""

    A: float
    B: float
    rows: int = 0

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the positive label, float64 (n,)."""
        return expit(-(self.A * scores + self.B))
