"""The best point of a plane: F over {p·w_b + q·w} of two vectors, for a loss that is known point by point.

Along a line F is minimised exactly; in a plane a cutting plane method in two dimensions comes close enough: whatever it finds,
F is evaluated there before anything is claimed. With H the products of both vectors and x = (p, q)

    F(x) = ½ xᵀHx + rest(x),    rest(x) ≥ max_j rest(x_j) + ⟨g_j, x − x_j⟩,

    repeat
        rest and its subgradient at x: a tangent
        x ← the minimiser of ½ xᵀHx + the largest of all tangents; its value there is a lower bound
    until all but a part of the decrease that the bound leaves open is reached, or that is too little to matter
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamcut.bundle.master import solve_master

_LEFT = 0.1  # of the decrease may be left
_MOST_STEPS = 12
_FLAT = 1e-12  # of the larger curvature: less is none, both vectors point the same way
_QP = 0.01  # of what is open: the gap to which the small master problems are solved

Rest = Callable[[np.ndarray], tuple[float, np.ndarray]]  # x → (rest(x), a subgradient there)


def minimise_over_plane(H: np.ndarray, rest: Rest, start: np.ndarray, matters: float) -> tuple[np.ndarray, float]:
    """(x, by how much F is lower there than at `start`); the start itself where no more than `matters` can be gained.

    H (2, 2) positive semidefinite; start (2,).
    """
    curvature, Q = np.linalg.eigh(H)
    bent = curvature > _FLAT * max(curvature[-1], 0.0)
    if not bent.any():
        return start, 0.0
    E = Q[:, bent] / np.sqrt(curvature[bent])  # x = start + E y, and ½ xᵀHx = ½‖y + y_0‖² and a constant
    y_0 = E.T @ (H @ start)
    away = 0.5 * float(start @ H @ start) - 0.5 * float(y_0 @ y_0)
    best, x, F_start, F_best = start, start, np.nan, np.inf
    slopes, offsets, beta = np.empty((0, E.shape[1])), np.empty(0), np.empty(0)
    for step in range(_MOST_STEPS):
        value, gradient = rest(x)
        F = 0.5 * float(x @ H @ x) + value
        if step == 0:
            F_start = F
        if not np.isfinite([F, *gradient]).all():  # where powers of e are too large; the best so far will do
            break
        if F_best > F:
            best, F_best = x, F
        slopes = np.vstack([slopes, E.T @ gradient])
        offsets = np.append(offsets, value + float(gradient @ (start - x)) - float(slopes[-1] @ y_0))
        beta = np.append(beta, float(step == 0))
        with np.errstate(over="ignore"):
            gram = slopes @ slopes.T
        if not np.isfinite(gram).all():
            break
        solve_master(gram, offsets, 1.0, beta, _QP * matters)
        u = -(beta @ slopes)
        bound = float(beta @ offsets) - 0.5 * float(u @ u) + away
        if F_best - bound <= max(matters, _LEFT * (F_start - bound)):
            break
        x = start + E @ (u - y_0)
    return best, max(0.0, F_start - F_best) if F_best < np.inf else 0.0
