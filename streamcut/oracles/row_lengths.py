"""The sizes of rows, for rounding bounds (streamcut.foundation.rounding)."""

from __future__ import annotations

import math

import numpy as np

from streamcut.compiled import vectors
from streamcut.foundation.rounding import UNSEEN, RowScale
from streamcut.io.manifest import Statistics

_LONGER = 1.0 + 1e-6  # squares of rows were summed in float64


def row_scale(statistics: Statistics, bias: float, width: int = 1) -> RowScale:
    """Row sizes, including a bias feature; with several classes a row adds to its own class, and as much to others."""
    more = bias != 0.0
    return RowScale(
        rows=statistics.n_rows,
        entries=(statistics.nnz + more * statistics.n_rows) * width,
        row_entries=statistics.max_row_nnz + more,
        length=(math.sqrt(statistics.max_squared_norm + bias * bias) * _LONGER + UNSEEN) * (1.5 if width > 1 else 1.0),
    )


def longest(scale: RowScale, w: np.ndarray) -> float:
    """Upper bound on Σ_j |x_ij w_j| over rows i."""
    return scale.length * math.sqrt(vectors.dot(w, w)) * _LONGER + UNSEEN
