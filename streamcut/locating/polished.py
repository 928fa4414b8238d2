"""A point much nearer to the optimum than a model, by Newton's method on its rows; proofs from there hold for the same optimum.

Given     weights, and the rows; two passes a step: F with its slope, and its curvature.
Returns   the weights where F no longer falls, or where half the squared Newton step is below a part _NEAR of F.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamcut.io.dataset import Dataset
from streamcut.locating.problem import Located
from streamcut.locating.sums import Curvature, Slope, rows_of, slope

_NEAR = 1e-16
_STEPS = 30
_SHORTEST = 2.0**-20
_FALLS = 1e-4  # of the decrease that the slope predicts
_DAMPING = 1e-13  # of the largest on the diagonal


def polished(problem: Located, data: Dataset, at: Slope) -> Located | None:
    """The problem at weights near the optimum; `at` is F there. None if F has no gradient (an L1 penalty) or does not fall."""
    if problem.model.l1 != 0.0:
        return None
    now, begun = problem, at.primal
    for _ in range(_STEPS):
        step = _step(now, data, at)
        if step is None or not float(at.gradient @ step) > _NEAR * at.primal:
            break
        found = _shortened(now, data, at, step)
        if found is None:
            break
        now, at = found
    return now if at.primal < begun else None


def _step(problem: Located, data: Dataset, at: Slope) -> np.ndarray | None:
    """H⁻¹g, or None if it cannot be computed."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    H = Curvature(problem, data.manifest.statistics)
    for rows in rows_of(problem, data):
        H.add(rows, problem.risk.loss.curvature_within(rows.z, rows.z)[0])
    M, diagonal = H.total, np.arange(len(at.gradient))
    M[diagonal, diagonal] += _DAMPING * float(M[diagonal, diagonal].max())
    try:
        step = cho_solve(cho_factor(M, lower=True, overwrite_a=True), at.gradient)
    except (LinAlgError, ValueError):
        return None
    return step if np.isfinite(step).all() else None


def _shortened(problem: Located, data: Dataset, at: Slope, step: np.ndarray) -> tuple[Located, Slope] | None:
    """A point along −step where F is lower, and F's slope there; None: there is none."""
    part, promised = 1.0, float(at.gradient @ step)
    while part >= _SHORTEST:
        near = replace(problem, at=problem.at - part * step)
        with np.errstate(over="ignore", invalid="ignore"):
            there = slope(near, data)
        if there.primal <= at.primal - _FALLS * part * promised:
            return near, there
        part *= 0.25
    return None
