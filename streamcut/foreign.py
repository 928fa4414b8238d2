"""Linear models of other programs, and what they say about their problems: estimators of scikit-learn, and files (LIBLINEAR's
text, our JSON).

scikit-learn is not imported: an estimator is recognised by its class name and module, and its parameters are read from it.
Nothing is unpickled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, CorruptError, UsageError
from streamcut.foundation.opened import read_file, readable
from streamcut.io.manifest import Statistics
from streamcut.io.remote import is_url, read_object, size_of
from streamcut.loss_table import HINGE_OF_CLASSES, JOINT_LOSSES, ROW_LOSSES
from streamcut.models.linear import LinearModel
from streamcut.problem import FREE, NONE, REGULARISED, Problem

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


@dataclass(frozen=True, slots=True, eq=False)
class Foreign:
    """weights (d,) or (d, K) and intercept, a number or (K,), float64, and the problem as far as it is recorded.

    what      the model, for messages
    lacks     what it does not say of the problem: C, loss, intercept; options are those that it says
    per_row   its C is that of mean losses, to be divided by the number of rows
    balanced  classes weigh rows ÷ (2 · their rows)
    words     the labels as the model has them, where they are no numbers; or where it regresses on labels
    divisors  (d,): what features are divided by first; None: nothing
    """

    what: str
    weights: np.ndarray
    intercept: float | np.ndarray
    problem: Problem
    lacks: tuple[str, ...] = ()
    per_row: bool = False
    balanced: bool = False
    words: tuple[object, ...] | None = None
    divisors: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.weights).all() and np.isfinite(self.intercept).all()):
            raise UsageError(f"{self.what}: its weights are not all finite numbers, so it has no objective")

    def completed(
        self, C: float | None = None, loss: str | None = None, intercept: str | float | None = None, epsilon: float | None = None
    ) -> Foreign:
        """The model with what it does not say, or should have said. Raises UsageError, naming what is still missing."""
        problem, several = self.problem, self.weights.ndim == 2
        joint = "" if "loss" in self.lacks else problem.loss
        named, options = loss or joint, dict(problem.options) | ({} if epsilon is None else {"epsilon": epsilon})
        record = ROW_LOSSES.get(named)
        missing = [f"--{name}" for name in (record.options if record else ()) if name not in options]
        given = {"C": C, "loss": loss, "intercept": intercept}
        missing += [f"--{name}" for name in self.lacks if given[name] is None]
        if missing:
            raise UsageError(f"{self.what} does not say what it minimises; give {', '.join(missing)}")
        if joint in JOINT_LOSSES and named != joint:
            raise UsageError(f"{self.what} is one problem of all its classes, with the {joint} loss, not {named}")
        if named in JOINT_LOSSES and not several:
            raise UsageError(
                f"{self.what} has one score per row; the {named} loss is of several classes, which have a score each"
            )
        if intercept is not None:
            problem = with_intercept(problem, intercept)
        if named in JOINT_LOSSES and problem.intercept == FREE:
            raise UsageError(
                f"intercept 'free': certify takes the {named} loss of several classes with a bias feature "
                "(--intercept 1, a constant column of X), or none; one against the rest may have free ones"
            )
        if problem.intercept == NONE and np.any(self.intercept):
            most = float(np.abs(self.intercept).max())
            raise UsageError(f"{self.what} has an intercept of {most:g}; give --intercept=free or the bias feature's value")
        task = "multiclass" if several else "regression" if record and record.targets == "numbers" else "binary"
        problem = replace(problem, task=task, loss=named, options=tuple(options.items()), C=problem.C if C is None else C)
        TrainOptions(**problem.training())  # raises for losses of another task and numbers out of bounds
        return replace(self, problem=problem, lacks=(), per_row=self.per_row and C is None)

    def in_numbers(self, data: object) -> object:
        """(X, y, …) with labels as numbers, where they are words to the model; other data as it is."""
        if self.words is None or not isinstance(data, tuple):
            return data
        X, y, *weight = data
        words, y = np.asarray(self.words), np.asarray(y)
        if not np.isin(y, words).all():
            raise BadInputError(f"{self.what} knows labels {self._names()}, and the data has others")
        if lacking := [word for word in self.words if not (y == word).any()]:
            raise BadInputError(f"{self.what} knows labels {self._names()}, and the data has no {lacking[0]!r}")
        numbers = np.asarray(self.problem.labels or (-1.0, 1.0))
        return (X, numbers[np.searchsorted(words, y)], *weight)

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

    def _labels(self, present: dict[float, int] | None) -> tuple[float, ...] | None:
        """The labels, which have to be those of the rows, `present`."""
        regresses = self.problem.task == "regression"
        labels = self.problem.labels or (None if not present else (min(present), max(present)))
        if regresses:
            labels = None if self.words is None else (-1.0, 1.0)
        if labels is not None and (odd := sorted(set(present or ()) ^ set(labels))):
            if self.words is not None:  # rows with these labels have them as numbers by now
                numbers = ", ".join(f"{label:g}" for label in labels)
                raise BadInputError(
                    f"{self.what} knows labels {self._names()}; give (X, y) with these, or rows with {numbers} in their place"
                )
            some = ", ".join(f"{label:g}" for label in odd[:10])
            raise BadInputError(f"{self.what} and the data do not have the same labels: {some}")
        return None if regresses else labels


def with_intercept(problem: Problem, said: str | float) -> Problem:
    """`problem` with an intercept "free", "none", or of a constant feature of this value, whose weight is regularised."""
    if said in (FREE, NONE):
        return replace(problem, intercept=str(said), bias=float(said == FREE))
    try:
        value = float(said)
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value >= 0.0):
        raise UsageError(f"intercept {said!r}: it is 'free', 'none', or the value of a bias feature whose weight is regularised")
    return replace(problem, intercept=REGULARISED if value else NONE, bias=value)


# --- estimators of scikit-learn -------------------------------------------------------------------------------------------------

_SVM = {"hinge": "hinge", "squared_hinge": "squared-hinge"}
_SVR = {"epsilon_insensitive": "epsilon-insensitive", "squared_epsilon_insensitive": "squared-epsilon-insensitive"}


class _Kind(NamedTuple):
    """losses    ours by its parameter `loss`; "" stands for a class without it
    C         as given; or 1 / alpha for the sum, or for the mean, of the losses
    constant  the intercept is the weight of a feature of value intercept_scaling
    """

    losses: dict[str, str]
    C: Literal["C", "1/alpha", "1/mean alpha"] = "C"
    constant: bool = False


_KINDS = {
    "LogisticRegression": _Kind({"": "logistic"}),
    "LinearSVC": _Kind(_SVM, constant=True),
    "SGDClassifier": _Kind(_SVM | {"log_loss": "logistic"}, "1/mean alpha"),
    "RidgeClassifier": _Kind({"": "squared"}, "1/alpha"),
    "Ridge": _Kind({"": "squared"}, "1/alpha"),
    "LinearSVR": _Kind(_SVR, constant=True),
    "SGDRegressor": _Kind(_SVR | {"squared_error": "squared", "huber": "huber"}, "1/mean alpha"),
    "PoissonRegressor": _Kind({"": "poisson"}, "1/mean alpha"),
}
_SCALERS = ("StandardScaler", "MaxAbsScaler")


def foreign(model: BaseEstimator) -> Foreign:
    """What a live object says. Raises UsageError, naming what has no counterpart."""
    name = type(model).__name__
    if type(model).__module__.split(".")[0] != "sklearn":
        raise UsageError(f"{name} is not a linear model that certify knows; give its file, or one of {', '.join(_KINDS)}")
    if name == "Pipeline":
        return _pipeline(model)
    if name == "OneVsRestClassifier":
        return _one_vs_rest(model)
    if name not in _KINDS:
        raise UsageError(f"{name} has no counterpart here; these have one: {', '.join(_KINDS)}")
    if (fitted := _of(model, "coef_")) is None:
        raise UsageError(f"{name} is not fitted")
    problem, params = _problem(name, model.get_params()), model.get_params()
    coef, classes, per_row = np.asarray(fitted, np.float64), _of(model, "classes_"), _KINDS[name].C == "1/mean alpha"
    outputs, intercept = coef.reshape(-1, coef.shape[-1]), np.atleast_1d(np.asarray(model.intercept_, np.float64))
    if len(outputs) == 1:
        if params.get("multi_class") == "crammer_singer":
            raise UsageError(f"{name}(multi_class='crammer_singer'): of two classes it has no counterpart here")
        result = Foreign(name, outputs[0].copy(), float(intercept[0]), problem, per_row=per_row)
    elif classes is None:
        raise UsageError(f"{name} has {len(outputs)} outputs; certify takes classes, or one number")
    else:  # without intercepts there is a single 0
        if name == "LogisticRegression" and params["solver"] != "liblinear" and params.get("multi_class") != "ovr":
            problem = replace(problem, loss="softmax")
        elif params.get("multi_class") == "crammer_singer":
            problem = replace(problem, loss=HINGE_OF_CLASSES)
        intercept = np.resize(intercept, len(outputs))
        result = Foreign(name, np.ascontiguousarray(outputs.T), intercept, problem, per_row=per_row)
    return result if classes is None else _with_classes(result, classes, params.get("class_weight"))


def _of(model: BaseEstimator, name: str) -> Any:
    """Attribute `name` of an estimator, None if it has none: many only exist once it is fitted, or with some parameters."""
    return getattr(model, name, None)


def _problem(name: str, params: dict[str, Any]) -> Problem:
    """The problem that an estimator of this name solves, by its parameters."""
    kind, penalty, ratio = _KINDS[name], params.get("penalty", "l2"), params.get("l1_ratio")

    def refuse(parameter: str, why: str) -> UsageError:
        return UsageError(f"{name}({parameter}={params.get(parameter)!r}): {why}")

    if penalty in ("deprecated", "elasticnet") or (name == "LogisticRegression" and "penalty" not in params):
        penalty = "elasticnet" if ratio else "l2"  # newer releases express it by l1_ratio and C
    if penalty != "l2":
        raise UsageError(f"{name}(penalty={penalty!r}): only penalty 'l2' is certified")
    if params.get("positive"):
        raise refuse("positive", "weights are not constrained here")
    if (asked := params["loss"] if "" not in kind.losses else "") not in kind.losses:
        raise refuse("loss", f"losses here are {', '.join(kind.losses)}")
    strength = params["C" if kind.C == "C" else "alpha"]
    if np.ndim(strength) or not 0.0 < strength < np.inf:
        raise refuse("C" if kind.C == "C" else "alpha", "it must be one number above 0, else there is nothing to certify")
    fit: str | float = FREE
    if kind.constant or params.get("solver") == "liblinear":
        fit = params["intercept_scaling"]
    if not params.get("fit_intercept", True):
        fit = NONE
    loss = kind.losses[asked]
    options = tuple((name, float(params["epsilon"])) for name in ROW_LOSSES[loss].options)
    C = float(strength) if kind.C == "C" else 1.0 / float(strength)
    return with_intercept(Problem(loss=loss, options=options, C=C), fit)


def _with_classes(base: Foreign, classes: np.ndarray, weights: Mapping[object, float] | str | None) -> Foreign:
    """`base` with labels and weights of classes, unless its loss is of numbers: it regresses on −1 and 1."""
    names = tuple(label.item() if isinstance(label, np.generic) else label for label in classes)
    numbers = all(isinstance(name, int | float) for name in names)
    several, problem, words = base.weights.ndim == 2, base.problem, None if numbers else names
    if several and weights is not None:
        raise UsageError(f"{base.what}: class weights of several classes; give (X, y, row weights) with class_weight=None")
    if problem.loss not in JOINT_LOSSES and ROW_LOSSES[problem.loss].targets == "numbers":
        if weights is not None:
            raise UsageError(f"{base.what}(class_weight): give (X, y, row weights) with class_weight=None instead")
        return replace(base, words=names)
    labels = tuple(map(float, names)) if numbers else tuple(map(float, range(len(names)))) if several else (-1.0, 1.0)
    problem = replace(problem, labels=labels)
    if weights is not None and not isinstance(weights, str):
        low, high = (float(weights.get(name, 1.0)) for name in names)
        if min(low, high) <= 0.0:
            raise UsageError(f"{base.what}: class weights {weights}: they must be above 0")
        problem = replace(problem, C=problem.C * low, positive_weight=high / low)
    return replace(base, problem=problem, words=words, balanced=weights == "balanced")


def _one_vs_rest(model: BaseEstimator) -> Foreign:
    """OneVsRestClassifier: one problem per class, read from its estimators."""
    if _of(model, "estimators_") is None:
        raise UsageError("OneVsRestClassifier is not fitted")
    what = f"OneVsRestClassifier of {type(model.estimator).__name__}"
    if _of(model, "multilabel_") or len(model.estimators_) != len(model.classes_):
        raise UsageError(
            f"{what} has {len(model.estimators_)} outputs for {len(model.classes_)} labels; certify takes several classes"
        )
    parts = [foreign(one) for one in model.estimators_]
    d = len(parts[0].weights)
    weighed = [one.balanced or one.problem.positive_weight != 1.0 for one in parts]
    if any(weighed) or any(one.divisors is not None or len(one.weights) != d for one in parts):
        raise UsageError(f"{what}: its estimators scale, or weigh classes; scale before it, and give (X, y, row weights)")
    W, b = np.column_stack([one.weights for one in parts]), np.array([one.intercept for one in parts])
    return _with_classes(replace(parts[0], what=what, weights=W, intercept=b), model.classes_, None)


def _pipeline(model: BaseEstimator) -> Foreign:
    """Scalers and an estimator: the problem is in scaled features, and centring goes into a free intercept."""
    *before, (_, last) = model.steps
    fitted = foreign(last)
    d = len(fitted.weights)
    divisors, shift = np.ones(d), np.zeros(d)
    for name, scaler in before:
        if scaler in (None, "passthrough"):
            continue
        if (kind := type(scaler).__name__) not in _SCALERS:
            raise UsageError(
                f"Pipeline: step {name!r} is a {kind}; {' and '.join(_SCALERS)} are folded into the problem, others not"
            )
        scale = np.ones(d) if _of(scaler, "scale_") is None else np.asarray(scaler.scale_, np.float64)
        if _of(scaler, "with_mean"):
            shift = shift + np.asarray(scaler.mean_, np.float64)  # a step gives ((x ÷ divisors − shift) − centre) ÷ scale
        shift, divisors = shift / scale, divisors * scale
    if shift.any() and fitted.problem.intercept != FREE:
        raise UsageError("Pipeline: centred features are the same problem only with a free intercept; use with_mean=False")
    intercept = fitted.intercept - shift @ fitted.weights
    return replace(fitted, divisors=divisors, intercept=intercept, what=f"Pipeline with {fitted.what}")


# --- files ----------------------------------------------------------------------------------------------------------------------

_LIBLINEAR = {
    "L2R_LR": "logistic",
    "L2R_LR_DUAL": "logistic",
    "L2R_L2LOSS_SVC": "squared-hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared-hinge",
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    **{record.liblinear: name for name, record in JOINT_LOSSES.items() if record.liblinear},
    "L2R_L2LOSS_SVR": "squared-epsilon-insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared-epsilon-insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon-insensitive",
}
_MOST_FEATURES = 1 << 31
_TIMES = 8  # the size of a file: memory of its text as objects


def read_foreign(path: str, expect: Callable[[int], None] = lambda size: None) -> Foreign:
    """What is said in the file `path` of another program; `expect` is called with the bytes needed before they are allocated.

    Raises UsageError for files that certify does not read, CorruptError for a damaged one, NotFoundError.
    """
    size = size_of(path) if is_url(path) else os.path.getsize(path)
    expect(_TIMES * (size or 0))
    content = read_object(path) if is_url(path) else read_file(path)
    with readable(path, CorruptError, "not a well-formed model"):
        if content.startswith(b"solver_type "):
            return _liblinear(path, content.decode("ascii"))
        if content.lstrip()[:1] == b"{":
            return _json(path, json.loads(content), expect)
    raise UsageError(
        f"{path} is not a linear model that certify reads: a model of streamcut, LIBLINEAR's text, or the JSON of `export`; "
        "an estimator of scikit-learn is certified in Python, by streamcut.certify(estimator, data)"
    )


def _liblinear(path: str, text: str) -> Foreign:
    head, _, body = text.partition("\nw\n")
    header = {name: rest for name, _, rest in (line.partition(" ") for line in head.split("\n"))}
    solver = header["solver_type"]
    if solver not in _LIBLINEAR:
        raise UsageError(f"{path}: solver_type {solver} is not ½‖w‖² and a loss of rows; these are: {', '.join(_LIBLINEAR)}")
    loss, numbers = _LIBLINEAR[solver], [float(word) for word in header.get("label", "").split()]
    bias, d = float(header["bias"]), int(header["nr_feature"])
    joint, has_bias = loss in JOINT_LOSSES, bias >= 0.0
    scores = len(numbers) if len(numbers) > 2 or joint else 1
    values = np.array(body.split(), np.float64)
    if len(values) != (d + has_bias) * scores or not 0 <= d < _MOST_FEATURES:
        suffix = f" of {scores} classes" if scores > 1 else ""
        raise CorruptError(f"{path}: {len(values):,} weights for {d:,} features{' and a bias' * has_bias}{suffix}")
    W = values.reshape(-1, scores)
    intercepts = W[d] * bias if has_bias else np.zeros(scores)
    problem = with_intercept(Problem(loss=loss), max(bias, 0.0))
    return _made(path, W[:d], intercepts, numbers[::-1] if scores == 1 else numbers, problem, ("C",))


def _json(path: str, record: dict[str, Any], expect: Callable[[int], None]) -> Foreign:
    """What `export --to json` writes, or the same by hand: features (from 0), weights (one list per score), intercepts."""
    if record.get("recipe") is not None:
        raise UsageError(f"{path} has a recipe for its features; certify the model file that it was made from")
    features = np.array(record["features"], np.int64)
    d, intercepts = int(record["n_features"]), [float(value) for value in record["intercepts"]]
    K = len(intercepts)
    weights = np.array(record["weights"], np.float64).reshape(len(features), K)
    if not 0 <= d < _MOST_FEATURES or (len(features) and not 0 <= features.min() <= features.max() < d):
        raise CorruptError(f"{path}: its features are not all below n_features, {d:,}")
    expect(8 * d * K)
    w = np.zeros((d, K))
    w[features] = weights
    labels = np.array(record.get("labels") or [], np.float64)
    if K > 1 and len(labels) != K:
        raise UsageError(f"{path} has {K} scores per row, but no numbers as their labels")
    return _made(path, w, np.array(intercepts), labels.tolist(), Problem(), ("C", "loss", "intercept"))


def _made(
    path: str, W: np.ndarray, intercepts: np.ndarray, labels: list[float], problem: Problem, lacks: tuple[str, ...]
) -> Foreign:
    """The model of weights (d, K); labels (negative, positive) of one score, or one per score."""
    if len(intercepts) == 1:
        if len(labels) not in (0, 2):
            raise CorruptError(f"{path}: one score per row, but {len(labels)} labels; two classes have two, numbers none")
        return Foreign(path, W[:, 0].copy(), float(intercepts[0]), replace(problem, labels=tuple(labels) or None), lacks)
    order = np.argsort(labels)
    problem = replace(problem, labels=tuple(sorted(labels)))
    return Foreign(path, np.ascontiguousarray(W[:, order]), intercepts[order], problem, lacks)
