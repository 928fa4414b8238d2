"""The problem that a linear model claims to solve, if its optimum can be located; others are refused by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.errors import UsageError, given, spelled
from streamcut.loss_table import ROW_LOSSES
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.linear import LinearModel

TASKS = ("binary", "regression")
LIKELIHOODS = ("logistic", "squared", "poisson")


def expect_locatable(model: Any) -> LinearModel:
    """`model`, if it is linear and its certificate is about its weights. Raises UsageError."""
    if not isinstance(model, LinearModel) or model.task not in TASKS:
        what = f"a {model.kind} model of task {model.task}" if hasattr(model, "kind") else f"{type(model).__name__}"
        raise UsageError(f"{what} has no proved predictions; linear models for two classes or for numbers have")
    if "rounded" in model.parameters:
        raise UsageError(
            "the weights of a compact model are rounded, and nothing is proved about them; give the model that it was made from"
        )
    if not model.certificate.lower_bound <= model.certificate.primal:
        raise UsageError("the model's lower bound is above its objective; `streamcut verify` says more")
    return model


def bends(model: LinearModel) -> bool:
    """Whether its loss is smooth and a sum over single rows."""
    name = str(model.parameters.get("loss"))
    return name in ROW_LOSSES and row_loss(name, model.parameters).smooth


def gap_part(model: LinearModel, gap: float) -> float:
    """`gap` as a fraction of its objective."""
    primal = model.certificate.primal
    return gap / primal if primal > 0.0 else 0.0


def tighter(part: float) -> str:
    """How to train to a gap that proves more than the `part` of F reached."""
    finer = 10.0 ** (math.ceil(math.log10(part)) - 2) if part > 0.0 else 1e-6
    return spelled(f"train with {given('tol-relative', float(f'{finer:.0e}'))}")


def is_scaled(model: LinearModel) -> bool:
    """Whether it was trained on scaled features."""
    return model.parameters.get("scale", "none") != "none"


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """F(v) = ½ Σ_j ridge_j v_j² + C Σ u_i ℓ_i(⟨v, (x_i, bias)⟩) and the point v = `at` near its optimum.

    at, ridge   float64 (D,), the bias feature or the free intercept last if `bias` is not 0; ridge 0 for a free one, else 1
    gap         F(at) − min F was at most this when training ended
    """

    model: LinearModel
    risk: PointwiseRisk
    at: np.ndarray
    ridge: np.ndarray
    bias: float
    free: bool

    @property
    def bound(self) -> float:
        return self.model.certificate.lower_bound


def located_problem(model: LinearModel) -> Located:
    """The problem of a model with a smooth loss of single rows. Raises UsageError for others."""
    name = str(model.parameters.get("loss"))
    if name not in ROW_LOSSES:
        raise UsageError(
            f"loss {name!r} is not one of single rows, so there is no ellipsoid; its predictions have the ball alone"
        )
    risk = PointwiseRisk(row_loss(name, model.parameters, (model.labels or (-1.0, 1.0))[1]), model.positive_weight)
    if not risk.loss.smooth:
        raise UsageError(
            f"loss {name!r} has no curvature, so its optimum is known to be in a ball at most; predict without training data, or "
            "train with a smooth loss: logistic, squared-hinge, smoothed-hinge, squared, huber"
        )
    at = np.ascontiguousarray(model.augmented_weights, np.float64).copy()
    ridge = np.ones(len(at))
    if model.free:
        ridge[-1] = 0.0
    return Located(model, risk, at, ridge, model.bias, model.free)
