"""Fitted estimators of scikit-learn and the problems that they claim to solve: one table of classes.

scikit-learn is not imported: an estimator is recognised by its class name and module, and its parameters are read from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from streamcut.certifying.foreign import Foreign, intercept_of
from streamcut.errors import UsageError
from streamcut.loss_table import HINGE_OF_CLASSES, JOINT_LOSSES, ROW_LOSSES
from streamcut.problem import FREE, NONE

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


def foreign(model: Any) -> Foreign:
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
    if not hasattr(model, "coef_"):
        raise UsageError(f"{name} is not fitted")
    said, given = _problem(name, model.get_params()), model.get_params()
    coef = np.asarray(model.coef_, np.float64)
    outputs, intercept = coef.reshape(-1, coef.shape[-1]), np.atleast_1d(np.asarray(model.intercept_, np.float64))
    if len(outputs) == 1:
        if given.get("multi_class") == "crammer_singer":
            raise UsageError(f"{name}(multi_class='crammer_singer'): of two classes it has no counterpart here")
        found = Foreign(name, outputs[0].copy(), float(intercept[0]), said, per_row=_KINDS[name].C == "1/mean alpha")
    elif not hasattr(model, "classes_"):
        raise UsageError(f"{name} has {len(outputs)} outputs; certify takes classes, or one number")
    else:  # without intercepts there is a single 0
        if name == "LogisticRegression" and given["solver"] != "liblinear" and given.get("multi_class") != "ovr":
            said["loss"] = "softmax"
        elif given.get("multi_class") == "crammer_singer":
            said["loss"] = HINGE_OF_CLASSES
        intercept = np.resize(intercept, len(outputs))
        found = Foreign(name, np.ascontiguousarray(outputs.T), intercept, said, per_row=_KINDS[name].C == "1/mean alpha")
    return _with_classes(found, model.classes_, given.get("class_weight")) if hasattr(model, "classes_") else found


def _problem(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Fields of Problem by the parameters of an estimator of this name."""
    kind, penalty, ratio = _KINDS[name], given.get("penalty", "l2"), given.get("l1_ratio")

    def refuse(parameter: str, why: str) -> UsageError:
        return UsageError(f"{name}({parameter}={given.get(parameter)!r}): {why}")

    if penalty in ("deprecated", "elasticnet") or (name == "LogisticRegression" and "penalty" not in given):
        penalty = "elasticnet" if ratio else "l2"  # newer releases express it by l1_ratio and C
    if penalty != "l2":
        raise UsageError(f"{name}(penalty={penalty!r}): only penalty 'l2' is certified")
    if given.get("positive"):
        raise refuse("positive", "weights are not constrained here")
    if (asked := given["loss"] if "" not in kind.losses else "") not in kind.losses:
        raise refuse("loss", f"losses here are {', '.join(kind.losses)}")
    strength = given["C" if kind.C == "C" else "alpha"]
    if np.ndim(strength) or not 0.0 < strength < np.inf:
        raise refuse("C" if kind.C == "C" else "alpha", "it must be one number above 0, else there is nothing to certify")
    fit: str | float = FREE
    if kind.constant or given.get("solver") == "liblinear":
        fit = given["intercept_scaling"]
    if not given.get("fit_intercept", True):
        fit = NONE
    loss = kind.losses[asked]
    own = [(name, float(given["epsilon"])) for name in ROW_LOSSES[loss].options]
    C = float(strength) if kind.C == "C" else 1.0 / float(strength)
    return {"loss": loss, "options": dict(own), "C": C, **intercept_of(fit)}


def _with_classes(found: Foreign, classes: Any, weights: Any) -> Foreign:
    """`found` with labels and weights of classes, unless its loss is of numbers: it regresses on −1 and 1."""
    names = tuple(each.item() if hasattr(each, "item") else each for each in classes)
    numbers = all(isinstance(each, int | float) for each in names)
    several, said, words = found.weights.ndim == 2, dict(found.said), None if numbers else names
    if several and weights is not None:
        raise UsageError(f"{found.what}: class weights of several classes; give (X, y, row weights) with class_weight=None")
    if said["loss"] not in JOINT_LOSSES and ROW_LOSSES[said["loss"]].targets == "numbers":
        if weights is not None:
            raise UsageError(f"{found.what}(class_weight): give (X, y, row weights) with class_weight=None instead")
        return replace(found, words=names)
    said["labels"] = tuple(map(float, names)) if numbers else tuple(map(float, range(len(names)))) if several else (-1.0, 1.0)
    if weights is not None and weights != "balanced":
        low, high = (float(weights.get(each, 1.0)) for each in names)
        if min(low, high) <= 0.0:
            raise UsageError(f"{found.what}: class weights {weights}: they must be above 0")
        said |= {"C": said["C"] * low, "positive_weight": high / low}
    return replace(found, said=said, words=words, balanced=weights == "balanced")


def _one_vs_rest(model: Any) -> Foreign:
    """OneVsRestClassifier: one problem per class, read from its estimators."""
    if not hasattr(model, "estimators_"):
        raise UsageError("OneVsRestClassifier is not fitted")
    what = f"OneVsRestClassifier of {type(model.estimator).__name__}"
    if getattr(model, "multilabel_", False) or len(model.estimators_) != len(model.classes_):
        raise UsageError(
            f"{what} has {len(model.estimators_)} outputs for {len(model.classes_)} labels; certify takes several classes"
        )
    each = [foreign(one) for one in model.estimators_]
    d = len(each[0].weights)
    if any(one.divisors is not None or one.balanced or "positive_weight" in one.said or len(one.weights) != d for one in each):
        raise UsageError(f"{what}: its estimators scale, or weigh classes; scale before it, and give (X, y, row weights)")
    W, b = np.column_stack([one.weights for one in each]), np.array([one.intercept for one in each])
    return _with_classes(replace(each[0], what=what, weights=W, intercept=b), model.classes_, None)


def _pipeline(model: Any) -> Foreign:
    """Scalers and an estimator: the problem is in scaled features, and centring goes into a free intercept."""
    *before, (_, last) = model.steps
    found = foreign(last)
    d = len(found.weights)
    divisors, shift = np.ones(d), np.zeros(d)
    for name, scaler in before:
        if scaler in (None, "passthrough"):
            continue
        if (kind := type(scaler).__name__) not in _SCALERS:
            raise UsageError(
                f"Pipeline: step {name!r} is a {kind}; {' and '.join(_SCALERS)} are folded into the problem, others not"
            )
        scale = np.ones(d) if getattr(scaler, "scale_", None) is None else np.asarray(scaler.scale_, np.float64)
        if getattr(scaler, "with_mean", False):
            shift = shift + np.asarray(scaler.mean_, np.float64)  # a step gives ((x ÷ divisors − shift) − centre) ÷ scale
        shift, divisors = shift / scale, divisors * scale
    if shift.any() and found.said["intercept"] != FREE:
        raise UsageError("Pipeline: centred features are the same problem only with a free intercept; use with_mean=False")
    intercept = found.intercept - shift @ found.weights
    return replace(found, divisors=divisors, intercept=intercept, what=f"Pipeline with {found.what}")
