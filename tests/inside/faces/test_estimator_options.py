"""What the estimators can be asked for: every option of their solvers, and what they say to arguments that make no sense."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import numpy as np
import pytest
from kit.shared.estimator_options import rows

from streamcut.config import BUDGETED, CUTTING_PLANES, EXACT_KERNEL, LINEAR, SAMPLED, TrainOptions
from streamcut.errors import MemoryBudgetError, NotFoundError, UsageError
from streamcut.estimators import (
    BudgetedKernelSVM,
    BudgetedKernelSVR,
    KernelSVM,
    LinearSVM,
    LinearSVR,
    LogisticRegression,
    OneClassSVM,
    RankingSVM,
    SequenceSVM,
)
from streamcut.solver_table import SOLVER_TABLE, SolverRecord, solvers_of

TWO = ("binary", "multiclass")
ESTIMATORS = {  # (tasks, solvers, kernel)
    LinearSVM: (TWO, LINEAR, "linear"),
    LogisticRegression: (TWO, LINEAR, "linear"),
    LinearSVR: (("regression",), LINEAR, "linear"),
    BudgetedKernelSVR: (("regression",), BUDGETED, "rbf"),
    OneClassSVM: (("one-class",), solvers_of("one-class"), "linear"),
    RankingSVM: (("ranking",), CUTTING_PLANES, "linear"),
    SequenceSVM: (("sequence",), solvers_of("sequence")[:3], "linear"),
    BudgetedKernelSVM: (TWO, BUDGETED, "rbf"),
    KernelSVM: (TWO, (*EXACT_KERNEL, *SAMPLED), "rbf"),
}
ELSEWHERE = {  # options that no estimator has
    "task": "the estimator's own, and the number of classes",
    "seed": "random_state",
    "positive_label": "labels are classes",
    "positive_weight": "class_weight",
    "validation": "score",
}
CURVED = {"binary": {"loss": "logistic"}, "regression": {"loss": "squared"}}  # what solvers with the curvature of losses train
NAMES = {
    "max_iter": "max_passes",
    "n_jobs": "workers",
    "fit_intercept": "bias",
    "intercept_penalty": "intercept",
}  # scikit-learn's for ours
FEATURES = {"kernel", "gamma", "degree", "coef0", "nystroem", "fourier"}  # a pipeline makes them
LEFT_OUT = {
    LinearSVM: FEATURES | {"k"},
    LogisticRegression: FEATURES | {"k", "loss", "strategy", "scale"},
    LinearSVR: FEATURES,
    OneClassSVM: FEATURES,
    RankingSVM: FEATURES,
    SequenceSVM: FEATURES,
    BudgetedKernelSVM: {"warm_start", "scheduler", "loss"},  # threads only; the hinge alone
    BudgetedKernelSVR: {"warm_start", "scheduler"},
    KernelSVM: {"scheduler"},
}


def _needed(solver: SolverRecord, task: str) -> dict[str, Any]:
    """What it does not go without."""
    return (CURVED.get(task, {}) if solver.curved or solver.columns else {}) | ({"l1_only": 1.0} if solver.columns else {})


def _strategy(solver: str, task: str) -> dict[str, str]:
    """One model per class, where no other is trained."""
    return (
        {"strategy": "one-vs-rest"}
        if task == "multiclass" and solver in LINEAR and solver not in solvers_of("crammer-singer")
        else {}
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_option_of_a_solver_is_in_the_constructor(estimator):
    tasks, solvers, kernel = ESTIMATORS[estimator]
    asked = [
        TrainOptions(task=task, solver=solver, kernel=kernel, **_needed(SOLVER_TABLE[solver], task), **_strategy(solver, task))
        for task in tasks
        for solver in solvers
        if solver in solvers_of(*(("crammer-singer", "one-vs-rest") if task == "multiclass" else (task,)))
    ]
    offered = {name for name in TrainOptions.__dataclass_fields__ if any(options.has(name) for options in asked)}
    own = {NAMES.get(name, name) for name in estimator().get_params()}
    assert offered - own - set(ELSEWHERE) == LEFT_OUT[estimator]
    assert own - offered <= {"class_weight", "random_state", "intercept_scaling", "recipe", "verbose", "probability"}
    assert set(estimator._solvers) - {"auto"} == set(solvers)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_defaults_are_those_of_train(estimator):
    ours = TrainOptions.__dataclass_fields__
    chosen = {"kernel": "rbf", "solver": estimator().solver, "epochs": 5.0, "warm_start": False}
    chosen |= {"loss": "epsilon_insensitive", "epsilon": 0.0, "nu": 0.5, "gamma": "scale"}  # those of scikit-learn
    chosen |= {"loss": "hinge"} if estimator is LinearSVM else {}  # what "auto" stands for
    for name, value in estimator().get_params().items():
        if name in ours:
            assert value in (ours[name].default, chosen.get(name, ours[name].default)), name


# --- parameters ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_parameter_is_described(estimator):
    text = estimator.__doc__
    section = text[text.index("    Parameters\n    ----------\n") : text.index("    Attributes\n    ----------\n")]
    described = re.findall(r"^    (\w+) : .*, default=(.*)\n        \S.*", section, flags=re.M)
    given = inspect.signature(estimator).parameters
    assert [name for name, _ in described] == list(given)
    for name, default in described:
        assert ast.literal_eval(default) == given[name].default, name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_one_parameter_at_most_may_be_positional(estimator):
    given = inspect.signature(estimator).parameters.values()
    names = [each.name for each in given if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert names == {LinearSVR: ["epsilon"], OneClassSVM: []}.get(estimator, ["C"])
    assert [getattr(estimator(0.25), name) for name in names] == [0.25] * len(names)
    with pytest.raises(TypeError, match="positional argument"):
        estimator(*[0.25] * (len(names) + 1))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_attribute_that_fit_sets_is_described(estimator):
    fitted = estimator().fit(*rows())
    section = estimator.__doc__.partition("    Attributes\n    ----------\n")[2].partition("\n\n    Examples\n")[0]
    described = re.findall(r"^    (\w+) : \S", section, flags=re.M)
    assert not any(hasattr(estimator(), name) for name in described), "none is there before"
    public = [name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")]
    assert sorted(described) == sorted(name for name in public if name != "n_features_in_")


OTHER = {  # another value of each parameter
    "C": 0.01, "l1": 1.0, "l1_only": "20%", "scale": "std", "loss": "squared-hinge", "epsilon": 0.7, "delta": 0.2,
    "quantile": 0.9, "nu": 0.2,
    "fit_intercept": False, "intercept_scaling": 9.0, "intercept_penalty": False, "strategy": "one-vs-rest",
    "normalisation": "queries",
    "class_weight": {0: 1.0, 1: 9.0, 2: 2.0}, "warm_start": True, "solver": "ocas", "cut": "exact", "tol": 0.5,
    "tol_relative": 0.9, "max_iter": 1, "max_passes": 2, "max_time": 1e-9, "target": 1e9, "max_cuts": 5, "sweeps": 0,
    "random_state": 7, "row_cache": "0", "memory": "1MB", "n_jobs": 0, "scratch": "/nowhere", "lanes": 3, "scheduler": "syncs",
    "verbose": True, "kernel": "poly", "gamma": "auto", "degree": 2, "coef0": 1.0, "budget": 5,
    "maintenance": "remove", "epochs": 2.0, "batch": 5, "samples": 7,
    "probability": True, "kernel_cache": "x",
    "recipe": "auto",
}  # fmt: skip
BEFORE = {  # what else has to be chosen for the parameter to have a meaning
    "delta": {"loss": "huber"}, "quantile": {"loss": "quantile"}, "cut": {"solver": "ocas"}, "degree": {"kernel": "poly"},
    "coef0": {"kernel": "poly"}, "batch": {"solver": "sbp"}, "samples": {"solver": "sampled-linear"},
    "max_cuts": {"solver": "sampled-linear", "max_passes": 9}, "nu": {"solver": "sbp"},
}  # fmt: skip
OF_ESTIMATOR = {
    (BudgetedKernelSVM, "solver"): "bsgd", (BudgetedKernelSVR, "solver"): "bsgd", (BudgetedKernelSVR, "loss"): "pinball",
    (KernelSVM, "solver"): "sampled-linear", (OneClassSVM, "solver"): "cpa",
    (RankingSVM, "solver"): "cpa", (LinearSVR, "loss"): "squared_error", (KernelSVM, "max_passes"): 2,
}  # fmt: skip
ANYWAY = {
    "scratch",
}  # for what rows in memory on threads don't need: see test_option_effects


@pytest.mark.thirds
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("estimator", "name"), [(kind, name) for kind in ESTIMATORS for name in kind().get_params() if name not in ANYWAY]
)
def test_another_value_of_a_parameter_changes_something_or_is_refused(estimator, name, capfd):
    X, y = rows(60, 4)
    y = y + (X[:, 0] > 0.8) if name == "strategy" else y
    groups = (np.arange(60) // 6,) if estimator is RankingSVM else ()
    before = {key: value for key, value in BEFORE.get(name, {}).items() if key in estimator().get_params()}
    if estimator is KernelSVM and name in ("random_state", "epochs", "max_passes"):
        before = {"solver": "sampled-linear" if name == "max_passes" else "sbp"}
    if estimator in (BudgetedKernelSVM, BudgetedKernelSVR) and name in ("degree", "coef0", "kernel"):
        before |= {"maintenance": "remove"}
    if estimator is not KernelSVM:
        before = {key: value for key, value in before.items() if value not in ("sampled-linear", "sbp", 9)}

    def outcome(**parameters) -> object:
        svm = estimator(**{**before, **parameters})
        try:
            if name == "warm_start":
                svm.fit(X[:20], y[:20])
            svm.fit(X, y, *groups)
        except (UsageError, MemoryBudgetError, NotFoundError) as refusal:
            return str(refusal)
        told = {key: value for key, value in svm.model_.parameters.items() if key != "warm_start"}
        return svm.model_.stop_reason, repr(svm.history_[-1:]), told, capfd.readouterr().err, hasattr(svm, "predict_proba")

    usual = outcome()
    assert not isinstance(usual, str), usual
    found = outcome(**{name: OF_ESTIMATOR.get((estimator, name), OTHER[name])})
    if isinstance(found, str):
        assert found.split(":")[0].removesuffix(f" of {estimator.__name__}").lstrip("-") in (name, "this run needs at least") or (
            name in found or name == "memory"
        ), found
    else:
        seconds = re.compile(r"'(seconds|\w*_seconds)': [^,}]*")
        assert seconds.sub("", str(found)) != seconds.sub("", str(usual))
