"""Numbers on a budget: support vector and quantile regression by BSCA and BSGD."""

from __future__ import annotations

import numpy as np
import pytest
from kit.shared.budgeted_regression import GAMMA, NEVER, _rows
from reference.kernels import matrix
from scipy.optimize import minimize

import streamcut
from streamcut.compiled import budget as passes
from streamcut.kernels.kernel import Kernel
from streamcut.losses import row_loss
from streamcut.solvers.budget import MODES, new_slots
from streamcut.solvers.budget_problem import Problem

TUBE = {"loss": "epsilon-insensitive", "epsilon": 0.2, "quantile": 0.5}
PART = {"loss": "quantile", "epsilon": 0.1, "quantile": 0.8}


def _problem(options, d, n, C=2.0, kernel=None, **more):
    loss = row_loss(options["loss"], options)
    return Problem(kernel or Kernel("rbf", gamma=GAMMA), C, (float("nan"),), n, d, loss=loss, **more)


def _box(options, C):
    """(low, high, ε) of the α of a row."""
    if options["loss"] == "quantile":
        return (options["quantile"] - 1.0) * C, options["quantile"] * C, 0.0
    return -C, C, options["epsilon"]


@pytest.mark.parametrize("options", [TUBE, PART], ids=lambda options: options["loss"])
def test_without_a_budget_the_dual_reaches_its_optimum(options):
    X, y, weight = _rows(weighted=True)
    problem = _problem(options, 5, 60, offset=7.0)
    rows = problem.rows(streamcut.rows(X, y, weight=weight).read(0), float("nan"))
    model, alpha, random = new_slots(problem, None, MODES["none"]), np.zeros(60), np.random.default_rng(1)
    for _ in range(300):
        passes.ascend(random.permutation(60), rows, alpha, NEVER, problem.kernel.compiled, MODES["none"], model)
    low, high, epsilon = _box(options, 2.0)
    K, z = matrix(problem.kernel, X, X), y - 7.0

    def lost(parts):  # α = p − q
        a = parts[:60] - parts[60:]
        slope = K @ a - z
        return 0.5 * a @ K @ a - a @ z + epsilon * parts.sum(), np.concatenate([slope + epsilon, epsilon - slope])

    limits = [(0.0, high * u) for u in weight] + [(0.0, -low * u) for u in weight]
    best = minimize(lost, np.zeros(120), jac=True, bounds=limits, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-14})
    ours = alpha @ z - epsilon * np.abs(alpha).sum() - 0.5 * alpha @ K @ alpha
    assert ours == pytest.approx(-best.fun, rel=1e-6)
    assert model.sums[passes.ALPHA] == pytest.approx(alpha @ z - epsilon * np.abs(alpha).sum())
    assert (low * weight <= alpha).all()
    assert (alpha <= high * weight).all()
    residual = z - K @ alpha
    primal = 0.5 * alpha @ K @ alpha
    primal += weight @ (np.maximum(residual - epsilon, 0.0) * high - np.maximum(-residual - epsilon, 0.0) * low)
    assert primal == pytest.approx(ours, rel=1e-4)
