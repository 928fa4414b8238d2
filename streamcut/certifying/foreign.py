"""A linear model of another program, and what it says about its problem."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import Statistics
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES
from streamcut.models.linear import LinearModel
from streamcut.problem import FREE, NONE, REGULARISED, Problem


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """weights (d,) or (d, K) and intercept, a number or (K,), float64, with fields of Problem as far as they are recorded.

    what      the model, for messages
    said      fields of Problem by name, `options` as a dict
    per_row   its C is that of mean losses, to be divided by the number of rows
    balanced  classes weigh rows ÷ (2 · their rows)
    words     the labels as the model has them, where they are no numbers; or where it regresses on labels
    divisors  (d,): what features are divided by first; None: nothing
    """

    what: str
    weights: np.ndarray
    intercept: float | np.ndarray
    said: dict[str, Any] = field(default_factory=dict)
    per_row: bool = False
    balanced: bool = False
    words: tuple[Any, ...] | None = None
    divisors: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise UsageError(f"{self.what}: its weights are not all finite numbers, so it has no objective")

    def completed(self, C: float | None, loss: str | None, intercept: str | float | None, epsilon: float | None) -> Foreign:
        """The model with what it does not say, or should have said. Raises UsageError, naming what is still missing."""
        said, several = dict(self.said), self.weights.ndim == 2
        said |= {name: value for name, value in (("C", C), ("loss", loss)) if value is not None}
        said |= {} if intercept is None else intercept_of(intercept)
        said["options"] = said.get("options", {}) | ({} if epsilon is None else {"epsilon": epsilon})
        named, joint = said.get("loss"), self.said.get("loss")
        record = ROW_LOSSES.get(named or "")
        missing = [f"--{name}" for name in (record.options if record else ()) if name not in said["options"]]
        missing += [f"--{name}" for name in ("C", "loss", "intercept") if name not in said]
        if missing:
            raise UsageError(f"{self.what} does not say what it minimises; give {', '.join(missing)}")
        if joint in JOINT_LOSSES and named != joint:
            raise UsageError(f"{self.what} is one problem of all its classes, with the {joint} loss, not {named}")
        if named in JOINT_LOSSES and not several:
            raise UsageError(
                f"{self.what} has one score per row; the {named} loss is of several classes, which have a score each"
            )
        if named in JOINT_LOSSES and said["intercept"] == FREE:
            raise UsageError(
                f"intercept 'free': certify takes the {named} loss of several classes with a bias feature "
                "(--intercept 1, a constant column of X), or none; one against the rest may have free ones"
            )
        if said["intercept"] == NONE and np.any(self.intercept):
            most = float(np.abs(self.intercept).max())
            raise UsageError(f"{self.what} has an intercept of {most:g}; give --intercept=free or the bias feature's value")
        said["task"] = "multiclass" if several else "regression" if record and record.targets == "numbers" else "binary"
        found = replace(self, said=said, per_row=self.per_row and C is None)
        TrainOptions(**found.problem.training())  # raises for losses of another task and numbers out of bounds
        return found

    @property
    def problem(self) -> Problem:
        """What it minimises, as far as this does not depend on rows."""
        return Problem(**self.said | {"options": tuple(self.said["options"].items())})

    def in_numbers(self, data: Any) -> Any:
        """(X, y, …) with labels as numbers, where they are words to the model; other data as it is."""
        if self.words is None or not isinstance(data, tuple):
            return data
        X, y, *weight = data
        known, y = np.asarray(self.words), np.asarray(y)
        if not np.isin(y, known).all():
            raise BadInputError(f"{self.what} knows labels {self._names()}, and the data has others")
        if lacking := [word for word in self.words if not (y == word).any()]:
            raise BadInputError(f"{self.what} knows labels {self._names()}, and the data has no {lacking[0]!r}")
        numbers = np.asarray(self.said.get("labels") or (-1.0, 1.0))
        return (X, numbers[np.searchsorted(known, y)], *weight)

    def _names(self) -> str:
        """The labels as the model has them."""
        return "" if self.words is None else f"{', '.join(map(repr, self.words[:-1]))} and {self.words[-1]!r}"

    def model(self, statistics: Statistics) -> LinearModel:
        """Itself as a model for rows with these statistics, about which nothing is proved. Raises UsageError, BadInputError."""
        d, n_features = len(self.weights), statistics.n_features
        if d > n_features:
            raise UsageError(f"{self.what} has {d:,} features, the data {n_features:,}; convert it with --n-features")
        problem = replace(self.problem, labels=self._labels(statistics.labels))
        if self.per_row:
            problem = replace(problem, C=problem.C / statistics.n_rows)
        if self.balanced:
            if statistics.weight_sum is not None:
                raise UsageError(f"{self.what}: class_weight='balanced' together with row weights; give explicit class weights")
            low, high = (statistics.n_rows / (2.0 * (statistics.labels or {})[label]) for label in problem.labels or ())
            problem = replace(problem, C=problem.C * low, positive_weight=high / low)
        weights = np.concatenate([self.weights, np.zeros((n_features - d, *self.weights.shape[1:]))])
        return LinearModel(weights=weights, intercept=self.intercept, problem=problem)

    def _labels(self, found: dict[float, int] | None) -> tuple[float, ...] | None:
        """The labels, which have to be those of the rows, `found`."""
        regresses = self.problem.task == "regression"
        labels = self.problem.labels or (None if not found else (min(found), max(found)))
        if regresses:
            labels = None if self.words is None else (-1.0, 1.0)
        if labels is not None and (odd := sorted(set(found or ()) ^ set(labels))):
            if self.words is not None:  # rows with these labels have them as numbers by now
                numbers = ", ".join(f"{label:g}" for label in labels)
                raise BadInputError(
                    f"{self.what} knows labels {self._names()}; give (X, y) with these, or rows with {numbers} in their place"
                )
            some = ", ".join(f"{label:g}" for label in odd[:10])
            raise BadInputError(f"{self.what} and the data do not have the same labels: {some}")
        return None if regresses else labels


def intercept_of(said: str | float) -> dict[str, Any]:
    """The fields of Problem that say "free", "none", or the value of a constant feature whose weight is regularised."""
    if said in (FREE, NONE):
        return {"intercept": said, "bias": float(said == FREE)}
    try:
        value = float(said)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value >= 0.0):
        raise UsageError(f"intercept {said!r}: it is 'free', 'none', or the value of a bias feature whose weight is regularised")
    return {"intercept": REGULARISED if value else NONE, "bias": value}
