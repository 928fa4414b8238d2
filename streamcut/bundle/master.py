"""The master problem's quadratic program: max_β ⟨b, β⟩ − ½ βᵀGβ over β ≥ 0, Σβ = total."""

from __future__ import annotations

import numpy as np

from streamcut.compiled import simplex_qp

_TURNS = 500


def solve_master(G: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float) -> float:
    """Improve the feasible `beta` (T,) in place until the dual gap is at most `tolerance`, or rounding stops it; returns the gap.

    G (T, T) symmetric positive semidefinite, singular allowed; b (T,); all float64.
    """
    return simplex_qp.solve(G, b, total, beta, tolerance, _TURNS, simplex_qp.space(len(b)))
