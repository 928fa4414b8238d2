"""scikit-learn's linear estimators, as they are constructed in Python."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from streamcut.errors import OtherProgramError
from streamcut.flags.translation import (
    Counts,
    Keywords,
    Translation,
    several_classes,
    take_loss,
    weigh_classes,
)
from streamcut.solver_table import SOLVER_TABLE

_OF_LABELS = {"hinge": "hinge", "squared_hinge": "squared-hinge", "log_loss": "logistic"}
_OF_NUMBERS = {
    "squared_error": "squared",
    "huber": "huber",
    "epsilon_insensitive": "epsilon-insensitive",
    "squared_epsilon_insensitive": "squared-epsilon-insensitive",
}
_FROM_EPSILON = {"huber": "--delta", "epsilon-insensitive": "--epsilon", "squared-epsilon-insensitive": "--epsilon"}
_HOW = ("tol", "max_iter", "random_state", "verbose", "solver", "warm_start", "n_jobs", "copy_X")
_SGD = (*_HOW, "shuffle", "learning_rate", "eta0", "power_t", "early_stopping", "validation_fraction", "n_iter_no_change",
        "average")  # fmt: skip
_ELASTIC = ("LogisticRegression", "SGDClassifier", "SGDRegressor", "ElasticNet")


@dataclass(frozen=True)
class _Kind:
    """losses     by the estimator's names, the first being its default
    strength   the parameter that sets the strength of losses or regularisation, and its default
    C          its translation: "C" itself, "1/alpha", or "1/(alpha·rows)"
    intercept  whether it is the weight of a constant feature of value `intercept_scaling`; if not, it is free
    """

    task: str
    losses: dict[str, str]
    strength: tuple[str, float]
    C: str
    intercept: bool
    idle: tuple[str, ...]
    epsilon: float = 0.0


def _first(name: str, losses: dict[str, str], *others: str) -> dict[str, str]:
    return {each: losses[each] for each in (name, *others)}


_KINDS = {
    "LinearSVC": _Kind("binary", _first("squared_hinge", _OF_LABELS, "hinge"), ("C", 1.0), "C", True, (*_HOW, "dual")),
    "LogisticRegression": _Kind("binary", {"log_loss": "logistic"}, ("C", 1.0), "C", False, (*_HOW, "dual")),
    "SGDClassifier": _Kind("binary", _OF_LABELS, ("alpha", 1e-4), "1/(alpha·rows)", False, (*_SGD, "epsilon")),
    "LinearSVR": _Kind(
        "regression", _first("epsilon_insensitive", _OF_NUMBERS, "squared_epsilon_insensitive"), ("C", 1.0), "C", True,
        (*_HOW, "dual"),
    ),
    "SGDRegressor": _Kind("regression", _OF_NUMBERS, ("alpha", 1e-4), "1/(alpha·rows)", False, _SGD, 0.1),
    "Ridge": _Kind("regression", {"squared_error": "squared"}, ("alpha", 1.0), "1/alpha", False, _HOW),
    "Lasso": _Kind("regression", {"squared_error": "squared"}, ("alpha", 1.0), "1/(alpha·rows)", False, _HOW),
    "ElasticNet": _Kind("regression", {"squared_error": "squared"}, ("alpha", 1.0), "1/(alpha·rows)", False, _HOW),
    "PoissonRegressor": _Kind("regression", {"poisson": "poisson"}, ("alpha", 1.0), "1/(alpha·rows)", False, _HOW),
}  # fmt: skip


def sklearn(text: str, counts: Counts) -> Translation:
    name, found, against_rest = _call(text)
    if name not in _KINDS:
        raise OtherProgramError(f"sklearn: {name} has no counterpart here; those that have: {', '.join(_KINDS)}")
    kind, given = _KINDS[name], Keywords(name, found)
    weights = (given.take("class_weight", None) or {}) if kind.task == "binary" else {}
    balanced = weights == "balanced"
    if not isinstance(weights, dict) and not balanced:
        given.refuse(f"class_weight={weights!r}", "write 'balanced' or the weights themselves, for example {1: 2.5}")
    several = kind.task == "binary" and (counts.several or against_rest)
    together = _together(name, given) and several and not against_rest
    if several and weights:
        given.refuse(f"class_weight={weights!r}", "class weights are not supported for several classes")
    part = _l1_part(name, kind, given)
    given.only("positive", False, False)
    loss = str(given.take("loss", next(iter(kind.losses))))
    if loss not in kind.losses:
        given.refuse(f"loss={loss!r}", f"supported losses are {', '.join(kind.losses)}")
    if part == 1.0 and (several or kind.losses.get(loss) not in (SOLVER_TABLE["working-set"].losses or ())):
        given.refuse("'l1'", "‖w‖₁ without ½‖w‖² is supported for two classes and regression, with smooth losses")
    epsilon = float(given.take("epsilon", kind.epsilon)) if kind.task == "regression" else 0.0
    bias = _bias(kind, given, alone=not together and part in (0.0, 1.0))
    strength = float(given.take(*kind.strength))
    if strength <= 0:
        given.refuse(f"{kind.strength[0]}={strength:g}", "it must be above 0; without regularisation there is nothing to certify")
    dropped = given.drop(*kind.idle)
    given.check()
    if kind.C == "1/(alpha·rows)":
        strength *= counts.needed("rows", f"{name}'s alpha is per row")
    done = Translation({"--task": kind.task} if kind.task != "binary" else {})
    if together:
        done.options |= {"--task": "multiclass", **({"--loss": "softmax"} if name == "LogisticRegression" else {})}
    elif several:
        several_classes(done, kind.losses[loss], counts.classes)
    else:
        take_loss(done, kind.losses[loss], kind.task)
    if (option := _FROM_EPSILON.get(kind.losses[loss])) is not None:
        done.number(option, epsilon)
    C = strength if kind.C == "C" else 1.0 / strength
    if part == 1.0:
        done.number("--l1-only", 1.0)
    elif part:
        C /= 1.0 - part  # ours always has ½‖w‖², regardless of other penalties
        done.number("--l1", part / (1.0 - part))
    if balanced:
        why = "balanced weights are rows / (2 · rows of the class)"
        rows, positives = counts.needed("rows", why), counts.needed("positives", why)
        if positives >= rows:
            raise OtherProgramError(f"--positives: {positives} of {rows} rows leave none for the other class")
        weights = {0.0: rows / (2.0 * (rows - positives)), 1.0: rows / (2.0 * positives)}
        done.number("--C", C * weights[0.0])
        done.number("--positive-weight", weights[1.0] / weights[0.0])
    else:
        weigh_classes(done, C, {float(label): float(weight) for label, weight in weights.items()})
    if bias is None:
        done.options["--intercept"] = "free"
    else:
        done.number("--bias", bias)
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how scikit-learn solves the problem, not what it solves; left out")
    return done


def _together(name: str, given: Keywords) -> bool:
    """Whether this estimator trains several classes as one problem, also by scikit-learn's older parameters."""
    usual = name == "LogisticRegression"
    how = given.take("multi_class", "multinomial" if usual else "ovr")
    if how not in ("ovr", "crammer_singer" if name == "LinearSVC" else "multinomial", "auto", "deprecated"):
        given.refuse(f"multi_class={how!r}", "it is ovr, crammer_singer or multinomial here")
    return how != "ovr" and (usual or how == "crammer_singer")


def _l1_part(name: str, kind: _Kind, given: Keywords) -> float:
    """ρ of (1 − ρ)/2·‖w‖² + ρ‖w‖₁, 0 for ½‖w‖² alone."""
    ratio = given.take("l1_ratio", None)
    if name == "Lasso":
        return 1.0
    if name == "ElasticNet":
        penalty, ratio = "elasticnet", 0.5 if ratio is None else ratio
    else:
        newer = name == "LogisticRegression" and ratio not in (None, 0, 0.0)  # it no longer has a `penalty`
        penalty = given.take("penalty", "elasticnet" if newer else "l2")
    if penalty == "l2":
        return 0.0
    if penalty == "l1" and name in (*_ELASTIC, "LinearSVC"):
        return 1.0
    if penalty != "elasticnet" or name not in _ELASTIC:
        given.refuse(f"penalty={penalty!r}", "supported penalties are 'l2' and, where the estimator has it, 'elasticnet'")
        return 0.0
    part = float(0.15 if ratio is None else ratio)  # type: ignore[arg-type]
    if not 0.0 <= part <= 1.0:
        given.refuse(f"l1_ratio={part:g}", "it must be from 0 to 1")
        return 0.0
    return part


def _call(text: str) -> tuple[str, dict[str, object], bool]:
    """(name, keyword arguments) of a call, and whether a OneVsRestClassifier is around it."""
    try:
        (statement,) = ast.parse(text.strip()).body
        call = getattr(statement, "value", None)  # also of an assignment
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Call):
            call = call.func.value  # the object of a call of `fit`
        assert isinstance(call, ast.Call)
        name = ast.unparse(call.func).split(".")[-1]
        if name == "OneVsRestClassifier":
            (inner,) = [*call.args, *(word.value for word in call.keywords)]
            name, found, _ = _call(ast.unparse(inner))
            return name, found, True
        assert not call.args
        return name, {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}, False
    except (SyntaxError, ValueError, AssertionError):
        raise OtherProgramError(
            f'sklearn: {text!r} is not a call with named literals; write LinearSVC(loss="hinge", C=1)'
        ) from None


def _bias(kind: _Kind, given: Keywords, *, alone: bool) -> float | None:
    """The constant feature's value; None: a free intercept, for problems `alone` only: no elastic net, no joint classes."""
    intercept = given.take("fit_intercept", True)
    if kind.intercept:
        return float(given.take("intercept_scaling", 1.0)) if intercept else 0.0
    if intercept and alone:
        return None
    if intercept:
        what = "its intercept is free; ours is not with ½‖w‖² + λ‖w‖₁, nor for softmax. fit_intercept=False is the same problem"
        given.refuse("fit_intercept=True", what)
    return 0.0
