"""The master problem's quadratic program: max_β ⟨b, β⟩ − ½ βᵀGβ over β ≥ 0, Σβ = total.

Sequential minimal optimisation alone is quick while cuts are few for their dimension, and crawls when they are many (G then
is singular and its SMO path a zigzag). So bursts of SMO, which choose the cuts that matter, alternate with Newton steps on the
face that they chose, which finish it.
"""

from __future__ import annotations

import numpy as np

from streamcut.compiled import simplex_qp

_STEPS_PER_CUT = 1000
_ROUNDS = 200
_PATIENCE = 5  # rounds: where G is so ill-conditioned that these don't halve the gap, another cut does more for it


def solve_master(G: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float) -> float:
    """Improve the feasible `beta` (T,) in place until the dual gap is at most `tolerance`, or rounding stops it; returns the gap.

    G (T, T) symmetric positive semidefinite, singular allowed; b (T,); all float64.
    """
    gradient = np.empty_like(b)
    gap = least = np.inf
    late = 0  # rounds without a gap half as large
    for _ in range(_ROUNDS):
        before = gap
        gap, steps = simplex_qp.smo(G, b, total, beta, gradient, tolerance, _STEPS_PER_CUT * len(b))
        late = 0 if gap < 0.5 * least else late + 1
        least = min(least, gap)
        if gap <= tolerance or steps == 0 or late == _PATIENCE:
            break
        if gap < before:  # also true at first
            _finish_face(G, b, beta)
    return gap


def _finish_face(G: np.ndarray, b: np.ndarray, beta: np.ndarray) -> None:
    """Maximise over the β that are not 0, in place; whichever reaches 0 on the way leaves the face.

    Flat directions of G (no curvature) get a tiny one instead: the step then runs along them until some β is 0.
    """
    while True:
        face = np.flatnonzero(beta)
        if len(face) < 2:
            return
        gradient = b[face] - G[face] @ beta
        inside = _zero_sum_basis(len(face))
        values, vectors = np.linalg.eigh(inside.T @ G[np.ix_(face, face)] @ inside)
        along = inside @ vectors
        step = along @ ((along.T @ gradient) / np.maximum(values, 1e-14 * max(values[-1], 1e-300)))
        falling = step < 0.0
        limits = beta[face][falling] / -step[falling]
        reach = min(1.0, limits.min(initial=np.inf))
        moved = np.maximum(beta[face] + reach * step, 0.0)
        if reach < 1.0:
            moved[np.flatnonzero(falling)[np.argmin(limits)]] = 0.0
        beta[face] = moved * (beta[face].sum() / moved.sum())
        if reach == 1.0:
            return


def _zero_sum_basis(n: int) -> np.ndarray:
    """Orthonormal columns (n, n − 1) that each sum to 0 (Helmert)."""
    basis = np.zeros((n, n - 1))
    for k in range(1, n):
        basis[:k, k - 1] = 1.0
        basis[k, k - 1] = -k
        basis[:, k - 1] /= np.sqrt(k * (k + 1.0))
    return basis
