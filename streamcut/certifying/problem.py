"""A linear model and the problem, or the problems, that it claims to solve."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import ONE_VS_REST, LinearModel

FREE = "free"


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """min over w and b of ½‖w‖² + C Σ u_i ℓ(⟨w, x_i⟩ + b), and the w and b to be certified.

    For several classes: one such problem for each against the rest, or a joint one (`strategy`).

    weights     float64 (d,), for features divided by `divisors`; intercept: float, or (K,) with weights (d, K)
    strategy    of several classes, as a model has it; "" for two, or numbers
    C, loss     None if the model does not record them
    fit         how b is found: "free", or the value of a constant feature whose weight is regularised (0: b = 0); None: unknown
    labels      (negative, positive), or all of several classes, increasing; None for numbers; classes: the same as the model
                wrote them, where they are words
    divisors    float64 (d,): what the values of each feature are divided by; None: nothing
    options     of the loss, such as {"epsilon": 0.1}
    balanced    classes weigh rows ÷ (2 · their rows)
    per_row     C is this number ÷ rows of the data
    what        the model, for messages
    """

    weights: np.ndarray
    intercept: Any
    what: str
    C: float | None = None
    loss: str | None = None
    fit: float | str | None = None
    labels: tuple[float, ...] | None = None
    classes: tuple[Any, ...] | None = None
    positive_weight: float = 1.0
    divisors: np.ndarray | None = None
    options: dict[str, float] = field(default_factory=dict)
    balanced: bool = False
    per_row: float | None = None
    task: str | None = None
    strategy: str = ""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise UsageError(f"{self.what}: its weights are not all finite numbers, so it has no objective")

    def completed(
        self, C: float | None, loss: str | None, intercept: str | float | None, epsilon: float | None = None
    ) -> Problem:
        """The problem with missing parts filled in or overridden. Raises UsageError naming options that are still missing."""
        found = self
        if C is not None:
            found = replace(found, C=C, per_row=None)
        if loss is not None:
            found = replace(found, loss=loss)
        if intercept is not None:
            found = replace(found, fit=_fit(intercept))
        if epsilon is not None:
            found = replace(found, options=found.options | {"epsilon": epsilon})
        if found.strategy == ONE_VS_REST and found.loss in JOINT_LOSSES:  # as from a file that has scores alone
            found = replace(found, strategy=found.loss)
        own = ROW_LOSSES[found.loss].options if found.loss in ROW_LOSSES else ()
        missing = [f"--{name}" for name in own if name not in found.options]
        missing += [
            name
            for name, there in (
                ("--C", found.C is not None or found.per_row is not None),
                ("--loss", found.loss is not None),
                ("--intercept", found.fit is not None),
            )
            if not there
        ]
        if missing:
            raise UsageError(f"{self.what} does not say what it minimises; give {', '.join(missing)}")
        assert found.loss is not None
        if found.strategy in JOINT_LOSSES and found.loss != found.strategy:
            raise UsageError(f"{self.what} is one problem of all its classes, with the {found.strategy} loss, not {found.loss}")
        if found.loss not in ROW_LOSSES and found.strategy not in JOINT_LOSSES:
            raise UsageError(f"loss {found.loss!r}: choose one of {', '.join(ROW_LOSSES)}")
        task = "binary" if found.strategy in JOINT_LOSSES or ROW_LOSSES[found.loss].targets == "labels" else "regression"
        if found.strategy:
            if task == "regression":
                raise UsageError(f"loss {found.loss!r} is one for numbers, and {self.what} has {len(found.intercept)} classes")
            if found.fit == FREE and found.strategy in JOINT_LOSSES:
                raise UsageError(
                    f"intercept 'free': certify takes the {found.strategy} loss of several classes with a bias feature "
                    "(--intercept 1, a constant column of X), or none; one against the rest may have free ones"
                )
            task = "multiclass"
        if found.task not in (None, task):
            raise UsageError(f"loss {found.loss!r} is one for a {task} model, and {self.what} is of task {found.task}")
        if found.C is not None and not 0.0 < found.C < np.inf:
            raise UsageError(f"C is {found.C:g}; without regularisation there is nothing to certify, it must be above 0")
        if found.fit == 0.0 and np.any(found.intercept):
            most = float(np.abs(found.intercept).max()) if found.strategy else found.intercept
            raise UsageError(f"{self.what} has an intercept of {most:g}; give --intercept=free or the bias feature's value")
        return replace(found, task=task)

    def padded(self, features: int) -> Problem:
        """Padded by zero weights to `features` features."""
        missing = features - len(self.weights)
        weights = np.concatenate([self.weights, np.zeros((missing, *self.weights.shape[1:]))])
        divisors = None if self.divisors is None else np.append(self.divisors, np.ones(missing))
        return replace(self, weights=weights, divisors=divisors)

    def model(self) -> LinearModel:
        """A model with these weights, about which nothing is proved."""
        free, bias = self.fit == FREE, 1.0 if self.fit == FREE else float(self.fit or 0.0)
        nothing = Certificate(0.0, 0.0, 1.0, None, None, False, StopReason.MAX_PASSES)
        said = {"intercept": FREE if free else "regularised" if bias else "none"} | ({} if free or not bias else {"bias": bias})
        return LinearModel(
            weights=np.ascontiguousarray(self.weights), intercept=self.intercept, bias=bias, labels=self.labels,
            C=float(self.C or 0.0), task=self.task or "", strategy=self.strategy, positive_weight=self.positive_weight,
            certificates=(nothing,) * (len(self.labels or ()) if self.strategy == ONE_VS_REST else 1),
            parameters={"loss": self.loss, "C": self.C} | said | self.options,
        )  # fmt: skip


def _fit(intercept: str | float) -> float | str:
    """What --intercept says."""
    if intercept in (FREE, "none"):
        return FREE if intercept == FREE else 0.0
    try:
        value = float(intercept)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value >= 0.0):
        raise UsageError(
            f"intercept {intercept!r}: it is 'free', 'none', or the value of a bias feature whose weight is regularised"
        )
    return value
