"""What a training minimises: the only description of it, kept by every model and in its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamcut.loss_table import HINGE_OF_CLASSES, JOINT_LOSSES, LABELLING_LOSSES, ROW_LOSSES

ONE_VS_REST = "one-vs-rest"
FREE, REGULARISED, NONE = "free", "regularised", "none"
_WITH_LOSS = ("binary", "regression", "multiclass")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """min over w and b of ½‖w‖² + λ‖w‖₁ + C Σ_i u_i ℓ(⟨w, x_i⟩ + b; y_i), u_i the weight of row i; hashable, in JSON types.

    task             of `train`, but "auto"
    loss             ℓ, a name of ROW_LOSSES, of JOINT_LOSSES for all classes together, or of LABELLING_LOSSES
    options          of the loss and task by name: epsilon, delta, quantile, k, nu, normalisation
    l1               λ; l1_only: without ½‖w‖²
    intercept        b is "free", "none", or "regularised": `bias` times the weight of a constant feature of that value
    bias             0: there is no b
    scale            what features are divided by: "none", or as `train` has it
    labels           (negative, positive), or all of several classes, increasing; None or none: numbers, or a ranking
    rest             two classes: the negative label stands for every label that is not the positive one
    positive_weight  factor on u_i for rows of the positive label
    """

    task: str = "binary"
    loss: str = "hinge"
    options: tuple[tuple[str, Any], ...] = ()
    C: float = 1.0
    l1: float = 0.0
    l1_only: bool = False
    intercept: str = NONE
    bias: float = 0.0
    scale: str = "none"
    labels: tuple[float, ...] | None = None
    rest: bool = False
    positive_weight: float = 1.0

    @property
    def strategy(self) -> str:
        """Of several classes: "one-vs-rest" for a problem for each class, or the name of the joint loss; else ""."""
        return "" if self.task != "multiclass" else self.loss if self.loss in JOINT_LOSSES else ONE_VS_REST

    @property
    def free(self) -> bool:
        """Whether the intercept is unregularised."""
        return self.intercept == FREE

    @property
    def constant(self) -> float:
        """The value of the constant feature whose weight is regularised; 0 if there is none."""
        return self.bias if self.intercept == REGULARISED else 0.0

    @property
    def of_rows(self) -> bool:
        """Whether the loss is a sum over rows."""
        return self.task in _WITH_LOSS and self.loss not in LABELLING_LOSSES

    def training(self) -> dict[str, Any]:
        """The options of `train` that pose this problem on rows that are scaled already."""
        said: dict[str, Any] = {"task": self.task, **dict(self.options)}
        if self.task in _WITH_LOSS:
            said["loss"] = "hinge" if self.loss == HINGE_OF_CLASSES else self.loss
        if self.of_rows:
            said["intercept"] = self.intercept
        if self.task != "one-class":  # which finds C by ν, and its intercept from the weights
            said |= {"C": self.C, "bias": 1.0 if self.free else self.bias}
        if self.strategy in (ONE_VS_REST, HINGE_OF_CLASSES):
            said["strategy"] = self.strategy
        if self.task == "binary" and self.labels:
            said |= {"positive_label": self.labels[1], "positive_weight": self.positive_weight}
        if self.l1:
            said["l1_only" if self.l1_only else "l1"] = self.l1
        return said


def options_of_problem(task: str, loss: str) -> tuple[str, ...]:
    """The names of the options that the loss, or the task, has."""
    options = ROW_LOSSES[loss].options if loss in ROW_LOSSES else ("k",) if loss in ("prec@k", "rec@k") else ()
    return (*options, *{"ranking": ("normalisation",), "one-class": ("nu",)}.get(task, ()))
