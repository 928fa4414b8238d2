"""Small quadratic programs with equalities, by Mehrotra's predictor-corrector method."""

from __future__ import annotations

from typing import Any

import numpy as np

_ROUNDS = 60
_CENTRED = 0.995  # of the way to the boundary
_LEAST = 1e-40  # so that quotients stay finite
_MOST = 1e6  # largest ratio of the scales of two variables
_NOTHING = 1e-26  # of the largest number: the remaining gain of a variable


def interior_point(Q: np.ndarray, c: np.ndarray, E: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, multipliers of Ex = e) that minimise ½xᵀQx + cᵀx over x ≥ 0 with Ex = e, approximately: Mehrotra's predictor-corrector.

    Q (n, n) is positive semidefinite; for a few dozen cuts a round takes less than a millisecond.
    """
    n, m = len(c), len(e)
    scale = _scales(np.diagonal(Q))
    Q, c, E = Q * (scale[:, None] * scale), c * scale, E * scale
    size = max(float(np.abs(Q).max()), float(np.abs(c).max()), 1e-300)
    Q, c = Q / size, c / size
    x, s, y = np.full(n, 1.0 / n), np.ones(n), np.zeros(m)
    K = np.zeros((n + m, n + m))
    K[:n, n:], K[n:, :n] = -E.T, E
    diagonal = np.arange(n)
    for _ in range(_ROUNDS):
        dual, primal, mu = Q @ x + c - E.T @ y - s, E @ x - e, float(x @ s) / n
        if mu < _NOTHING:
            break
        K[:n, :n] = Q
        K[diagonal, diagonal] += s / x + 1e-16

        def step(target: float, second: Any, at: tuple[np.ndarray, ...] = (x, s, dual, primal)) -> tuple[np.ndarray, ...]:
            now, slack, off, feasible = at
            toward = (target - second) / now - slack
            direction = _solved(K, np.append(toward - off, -feasible))
            return direction[:n], toward - slack / now * direction[:n], direction[n:]

        dx, ds, dy = step(0.0, 0.0)
        if not np.isfinite(dx).all():  # the variables differ by more than float64 can hold: x cannot be improved
            break
        ahead = float((x + _reach(x, dx) * dx) @ (s + _reach(s, ds) * ds)) / n
        dx, ds, dy = step(mu * (ahead / mu) ** 3, dx * ds)
        if not np.isfinite(dx).all():
            break
        alpha, beta = _reach(x, dx), _reach(s, ds)
        x, s, y = np.maximum(x + alpha * dx, _LEAST), np.maximum(s + beta * ds, _LEAST), y + beta * dy
    return x * scale, y * size


def _scales(diagonal: np.ndarray) -> np.ndarray:
    """Factors of the variables that equalise the diagonal."""
    largest = float(diagonal.max(initial=0.0))
    return np.where(diagonal > 0.0, np.minimum(np.sqrt(largest / np.maximum(diagonal, _LEAST)), _MOST), 1.0)


def _solved(K: np.ndarray, right: np.ndarray) -> np.ndarray:
    """K⁻¹ right, or the least squares solution; NaN where there is neither."""
    for solve in (np.linalg.solve, lambda K, right: np.linalg.lstsq(K, right, rcond=None)[0]):
        try:
            solution = solve(K, right)
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(solution).all():
            return solution
    return np.full(len(right), np.nan)


def _reach(x: np.ndarray, dx: np.ndarray) -> float:
    """The largest fraction of dx that keeps x positive."""
    falls = dx < 0.0
    return min(1.0, _CENTRED * float((-x[falls] / dx[falls]).min())) if falls.any() else 1.0
