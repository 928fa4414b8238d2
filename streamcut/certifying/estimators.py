"""Fitted estimators of scikit-learn as the problems that they claim to solve.

scikit-learn is not imported: an estimator is recognised by its class name and module, and its parameters are read from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from streamcut.certifying.problem import FREE, Problem
from streamcut.errors import UsageError
from streamcut.loss_table import HINGE_OF_CLASSES
from streamcut.models.linear import ONE_VS_REST

_SVM = {"hinge": "hinge", "squared_hinge": "squared-hinge"}
_SVR = {"epsilon_insensitive": "epsilon-insensitive", "squared_epsilon_insensitive": "squared-epsilon-insensitive"}
_SGD = _SVM | {"log_loss": "logistic"}
_SGD_NUMBERS = _SVR | {"squared_error": "squared", "huber": "huber"}
_EPSILON = {"huber": "delta", **dict.fromkeys(_SVR.values(), "epsilon")}
_SCALERS = ("StandardScaler", "MaxAbsScaler")


def problem_of(model: Any) -> Problem:
    """The problem of a live object. Raises UsageError, naming what has no counterpart."""
    name = type(model).__name__
    if type(model).__module__.split(".")[0] != "sklearn":
        raise UsageError(f"{name} is not a linear model that certify knows; give its file, or one of {', '.join(_BY_NAME)}")
    if name == "Pipeline":
        return _pipeline(model)
    if name == "OneVsRestClassifier":
        return _one_vs_rest(model)
    if name not in _BY_NAME:
        raise UsageError(f"{name} has no counterpart here; these have one: {', '.join(_BY_NAME)}")
    if not hasattr(model, "coef_"):
        raise UsageError(f"{name} is not fitted")
    coef, intercept = np.asarray(model.coef_, np.float64), np.atleast_1d(np.asarray(model.intercept_, np.float64))
    given = model.get_params()
    outputs = coef.reshape(-1, coef.shape[-1])
    if len(outputs) > 1 and not hasattr(model, "classes_"):
        raise UsageError(f"{name} has {len(outputs)} outputs; certify takes classes, or one number")
    if len(outputs) > 1:
        several = np.ascontiguousarray(outputs.T), np.resize(intercept, len(outputs))  # without intercepts there is a single 0
        problem = Problem(*several, name, strategy=_strategy(name, given))
    else:
        problem = Problem(np.ascontiguousarray(coef.reshape(-1)), float(intercept[0]), name)
    if hasattr(model, "classes_"):
        problem = _with_classes(problem, model.classes_, given.get("class_weight"))
    return _BY_NAME[name](problem, given)


def _strategy(name: str, given: dict[str, Any]) -> str:
    """What an estimator of this name does with several classes."""
    asked = given.get("multi_class")
    if asked == "crammer_singer":
        return HINGE_OF_CLASSES
    return "softmax" if name == "LogisticRegression" and given["solver"] != "liblinear" and asked != "ovr" else ONE_VS_REST


def _one_vs_rest(model: Any) -> Problem:
    """OneVsRestClassifier: one problem per class, read from its estimators."""
    if not hasattr(model, "estimators_"):
        raise UsageError("OneVsRestClassifier is not fitted")
    what = f"OneVsRestClassifier of {type(model.estimator).__name__}"
    if getattr(model, "multilabel_", False) or len(model.estimators_) != len(model.classes_):
        raise UsageError(
            f"{what} has {len(model.estimators_)} outputs for {len(model.classes_)} labels; certify takes several classes"
        )
    each = [problem_of(one) for one in model.estimators_]
    first = each[0]
    if any(
        one.divisors is not None or one.balanced or one.positive_weight != 1.0 or len(one.weights) != len(first.weights)
        for one in each
    ):
        raise UsageError(f"{what}: its estimators scale, or weigh classes; scale before it, and give (X, y, row weights)")
    several = np.column_stack([one.weights for one in each]), np.array([one.intercept for one in each])
    whole = replace(first, weights=several[0], intercept=several[1], what=what, strategy=ONE_VS_REST, labels=None, classes=None)
    return _with_classes(whole, model.classes_, None)


def _with_classes(problem: Problem, classes: Any, weights: Any) -> Problem:
    names = tuple(each.item() if hasattr(each, "item") else each for each in classes)
    numbers = all(isinstance(each, int | float) for each in names)
    if problem.strategy:
        if weights is not None:
            raise UsageError(f"{problem.what}: class weights of several classes; give (X, y, row weights) with class_weight=None")
        labels = tuple(float(each) for each in names) if numbers else tuple(map(float, range(len(names))))
        return replace(problem, labels=labels, classes=names)
    negative, positive = names
    labels = (float(negative), float(positive)) if numbers else (-1.0, 1.0)
    problem = replace(problem, labels=labels, classes=names)
    if weights == "balanced":
        return replace(problem, balanced=True)
    if weights is not None:
        low, high = (float(weights.get(each, 1.0)) for each in (negative, positive))
        if min(low, high) <= 0.0:
            raise UsageError(f"{problem.what}: class weights {weights}: they must be above 0")
        problem = replace(problem, positive_weight=high / low, C=low)  # C times the strength below
    return problem


def _refuse(problem: Problem, what: str, why: str) -> NoReturn:
    raise UsageError(f"{problem.what}({what}): {why}")


def _strength(problem: Problem, C: float) -> Problem:
    return replace(problem, C=C if problem.C is None else C * problem.C)


def _squares_only(problem: Problem, given: dict[str, Any]) -> None:
    """Raise UsageError for a penalty that is not ½‖w‖² alone."""
    ratio, penalty = given.get("l1_ratio"), given.get("penalty", "l2")
    if penalty == "deprecated":  # newer releases express it by l1_ratio and C
        penalty = "l2" if not ratio else "elasticnet"
    elif penalty == "elasticnet" and ratio in (0, 0.0):
        penalty = "l2"
    elif problem.what == "LogisticRegression" and penalty == "l2" and ratio and "penalty" not in given:
        penalty = "elasticnet"
    if penalty != "l2":
        _refuse(problem, f"penalty={penalty!r}", "only penalty 'l2' is certified")
    if given.get("positive"):
        _refuse(problem, "positive=True", "weights are not constrained here")


def _scaled_bias(given: dict[str, Any]) -> float:
    return float(given["intercept_scaling"]) if given["fit_intercept"] else 0.0


def _free(given: dict[str, Any]) -> float | str:
    return FREE if given.get("fit_intercept", True) else 0.0


def _logistic(problem: Problem, given: dict[str, Any]) -> Problem:
    _squares_only(problem, given)
    fit = _scaled_bias(given) if given["solver"] == "liblinear" else _free(given)
    if not np.isfinite(given["C"]):
        _refuse(problem, f"C={given['C']}", "without regularisation there is nothing to certify; try a large C")
    loss = "softmax" if problem.strategy == "softmax" else "logistic"
    return replace(_strength(problem, float(given["C"])), loss=loss, fit=fit)


def _svm(problem: Problem, given: dict[str, Any]) -> Problem:
    _squares_only(problem, given)
    loss = HINGE_OF_CLASSES if problem.strategy == HINGE_OF_CLASSES else _SVM[given["loss"]]
    return replace(_strength(problem, float(given["C"])), loss=loss, fit=_scaled_bias(given))


def _svr(problem: Problem, given: dict[str, Any]) -> Problem:
    own = {"epsilon": float(given["epsilon"])}
    return replace(_strength(problem, float(given["C"])), loss=_SVR[given["loss"]], fit=_scaled_bias(given), options=own)


def _sgd(problem: Problem, given: dict[str, Any]) -> Problem:
    _squares_only(problem, given)
    losses = _SGD if problem.labels is not None else _SGD_NUMBERS
    if given["loss"] not in losses:
        _refuse(problem, f"loss={given['loss']!r}", f"losses here are {', '.join(losses)}")
    if not given["alpha"] > 0.0:
        _refuse(problem, f"alpha={given['alpha']}", "without regularisation there is nothing to certify")
    loss = losses[given["loss"]]
    own = {_EPSILON[loss]: float(given["epsilon"])} if loss in _EPSILON else {}
    per_row = (1.0 if problem.C is None else problem.C) / float(given["alpha"])
    return replace(problem, C=None, per_row=per_row, loss=loss, fit=_free(given), options=own)


def _ridge(problem: Problem, given: dict[str, Any]) -> Problem:
    _squares_only(problem, given)
    alpha = given["alpha"]
    if np.ndim(alpha) or not alpha > 0.0:
        _refuse(problem, f"alpha={alpha}", "it must be one number above 0")
    if problem.balanced or problem.positive_weight != 1.0 or problem.C is not None:
        _refuse(problem, "class_weight", "give (X, y, row weights) with class_weight=None instead")
    return replace(problem, C=1.0 / float(alpha), loss="squared", fit=_free(given), labels=None)


def _poisson(problem: Problem, given: dict[str, Any]) -> Problem:
    if not given["alpha"] > 0.0:
        _refuse(problem, f"alpha={given['alpha']}", "without regularisation there is nothing to certify")
    return replace(problem, per_row=1.0 / float(given["alpha"]), loss="poisson", fit=_free(given))


_BY_NAME = {
    "LogisticRegression": _logistic,
    "LinearSVC": _svm,
    "SGDClassifier": _sgd,
    "RidgeClassifier": _ridge,
    "Ridge": _ridge,
    "LinearSVR": _svr,
    "SGDRegressor": _sgd,
    "PoissonRegressor": _poisson,
}


def _pipeline(model: Any) -> Problem:
    """Scalers and an estimator: the problem is in scaled features, and centring goes into a free intercept."""
    *before, (_, last) = model.steps
    problem = problem_of(last)
    d = len(problem.weights)
    divisors, shift = np.ones(d), np.zeros(d)
    for name, scaler in before:
        if scaler in (None, "passthrough"):
            continue
        kind = type(scaler).__name__
        if kind not in _SCALERS:
            raise UsageError(
                f"Pipeline: step {name!r} is a {kind}; {' and '.join(_SCALERS)} are folded into the problem, others not"
            )
        scale = np.ones(d) if getattr(scaler, "scale_", None) is None else np.asarray(scaler.scale_, np.float64)
        centre = getattr(scaler, "mean_", None) if getattr(scaler, "with_mean", False) else None
        if centre is not None:
            shift = shift + np.asarray(centre, np.float64)  # a step gives ((x ÷ divisors − shift) − centre) ÷ scale
        shift, divisors = shift / scale, divisors * scale
    if shift.any() and problem.fit != FREE:
        raise UsageError("Pipeline: centred features are the same problem only with a free intercept; use with_mean=False")
    intercept = problem.intercept - shift @ problem.weights
    return replace(problem, divisors=divisors, intercept=intercept, what=f"Pipeline with {problem.what}")
