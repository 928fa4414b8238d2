"""What the estimators can be asked for: every option of their solvers, and what they say to arguments that make no sense."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import streamcut
from streamcut.config import BUDGETED, CUTTING_PLANES, EXACT_KERNEL, LINEAR, SAMPLED, TrainOptions
from streamcut.errors import BadInputError, MemoryBudgetError, NotFoundError, UsageError
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
FEATURES = {"kernel", "gamma", "degree", "coef0", "nystroem", "landmarks", "fourier", "frequencies"}  # a pipeline makes them
LEFT_OUT = {
    LinearSVM: FEATURES | {"k"},
    LogisticRegression: FEATURES | {"k", "loss", "strategy", "scale"},
    LinearSVR: FEATURES,
    OneClassSVM: FEATURES,
    RankingSVM: FEATURES,
    SequenceSVM: FEATURES,
    BudgetedKernelSVM: {"warm_start", "scheduler", "deadline", "silence", "loss"},  # threads only; the hinge alone
    BudgetedKernelSVR: {"warm_start", "scheduler", "deadline", "silence"},
    KernelSVM: {"scheduler", "deadline", "silence"},
}


def _needed(solver: SolverRecord, task: str) -> dict[str, Any]:
    """What it does not go without."""
    return (CURVED.get(task, {}) if solver.curved or solver.columns else {}) | ({"l1_only": 1.0} if solver.columns else {})


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_option_of_a_solver_is_in_the_constructor(estimator):
    tasks, solvers, kernel = ESTIMATORS[estimator]
    asked = [
        TrainOptions(task=task, solver=solver, kernel=kernel, **_needed(SOLVER_TABLE[solver], task))
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


def rows(n: int = 200, d: int = 6):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, (X @ np.arange(d) > 0).astype(int)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_options_are_passed_on():
    X, y = rows()
    assert LinearSVM(solver="ocas", cut="exact", target=1e9).fit(X, y).model_.stop_reason == "target"
    assert LinearSVM(lanes=2, row_cache="0", sweeps=0).fit(X, y).model_.parameters["lanes"] == 2
    assert KernelSVM(solver="sbp", nu=0.1).fit(X, y).model_.parameters["nu"] == 0.1


def test_grids_of_numpy_numbers():
    X, y = rows()
    grid = {"budget": np.array([10, 20]), "C": np.array([1.0, 10.0], np.float32)}
    assert GridSearchCV(BudgetedKernelSVM(), grid, cv=2).fit(X, y).best_score_ > 0.8


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Paths of two stores: the rows, and the same with twice the features."""
    folder, (X, y) = tmp_path_factory.mktemp("options"), rows()
    for name, Z in (("narrow", X), ("wide", np.hstack([X, X]))):
        lines = [
            f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(z)) for label, z in zip(y, Z.tolist(), strict=True)
        ]
        (folder / f"{name}.svm").write_text("\n".join(lines) + "\n")
        streamcut.convert(str(folder / f"{name}.svm"), str(folder / f"{name}.zarr"), dtype="float64")
    return folder / "narrow.zarr", folder / "wide.zarr"


def with_one(value: float):
    X, y = rows()
    X[3, 4] = value
    return X, y


@pytest.mark.parametrize(
    ("call", "kind", "complaint"),
    [
        (lambda X, y: LinearSVM().fit(*with_one(np.nan)), ValueError, "contains NaN"),
        (lambda X, y: LinearSVM().fit(*with_one(np.inf)), ValueError, "infinity"),
        (lambda X, y: LinearSVM().fit(sp.csr_array(with_one(np.nan)[0]), y), ValueError, "contains NaN"),
        (lambda X, y: LinearSVM().fit([["a", "b"]] * 4, [0, 1, 0, 1]), ValueError, "could not convert string"),
        (lambda X, y: LinearSVM().fit(X, y, -np.ones(200)), ValueError, "Negative values.*sample_weight"),
        (lambda X, y: LinearSVM().fit(X, y, np.ones(3)), ValueError, r"sample_weight.shape == \(3,\), expected \(200,\)"),
        (lambda X, y: LinearSVM().fit(X, np.full(200, "a")), ValueError, "one class only: 'a'"),
        (lambda X, y: LinearSVM(class_weight={0: 0.0}).fit(X, y), ValueError, "two classes or more with weights above 0"),
        (lambda X, y: LinearSVM(class_weight={7: 1.0}).fit(X, y), ValueError, "not in class_weight"),
        (lambda X, y: LinearSVM().fit(X[0], y[:1]), ValueError, "Expected 2D array, got 1D"),
        (lambda X, y: LinearSVM().fit(X, y).predict(X[0]), ValueError, "Expected 2D array, got 1D"),
        (lambda X, y: LinearSVM().fit("nowhere.zarr"), NotFoundError, "nowhere.zarr: no such file"),
        (lambda X, y: LinearSVM().fit(X, y).predict("nowhere.zarr"), NotFoundError, "nowhere.zarr: no such file"),
        (lambda X, y: LinearSVM(solver="bsca").fit(X, y), UsageError, "LinearSVM: 'bsca' is unknown; use one of auto, bundle"),
        (lambda X, y: KernelSVM(solver="ocas").fit(X, y), UsageError, "of KernelSVM: 'ocas' is unknown; use one of smo"),
        (lambda X, y: LinearSVM(memory=10**9).fit(X, y), UsageError, "memory: 1000000000 is no text such as '2GB'"),
        (lambda X, y: LinearSVM(memory="1MB").fit(X, y), MemoryBudgetError, "needs at least"),
        (lambda X, y: LinearSVM(solver="cpa", sweeps=3).fit(X, y), UsageError, "sweeps: 3 is an option of bundle-dca"),
        (lambda X, y: RankingSVM().fit(X, np.array(["a", "b"])[y]), ValueError, "ranked by numbers, not by <U1 such as '"),
        (lambda X, y: RankingSVM().fit(X, y, np.ones(3)), ValueError, "inconsistent numbers of samples"),
        (lambda X, y: LinearSVM().fit(X, y).calibrate(X, y + 1), ValueError, r"did not see: \[2\]; the classes are \[0, 1\]"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense(call, kind, complaint):
    with pytest.raises(kind, match=complaint):
        call(*rows())


def test_stores_of_another_width(stores):
    narrow, wide = stores
    X, _ = rows()
    svm = LinearSVM().fit(narrow)
    for call in (svm.predict, svm.decision_function, svm.score, svm.evaluate, svm.calibrate):
        for given in (wide, str(wide), streamcut.open(wide)):
            with pytest.raises(ValueError, match=r"store has 12 features.*expecting 6.*n_features=6"):
                call(given)
    assert LinearSVM().fit(wide).predict(narrow).shape == (200,), "features that are not there are 0"
    with pytest.raises(ValueError, match="12 features"):
        svm.predict(np.hstack([X, X]))


def test_labels_that_are_numbers_are_those_of_stores(stores):
    X, y = rows()
    svm = LinearSVM().fit(X, y)
    assert svm.score(stores[0]) == svm.score(X, y)
    assert svm.model_.labels == (0.0, 1.0)
    other = LinearSVM().fit(X, y + 5)
    assert other.model_.labels == (5.0, 6.0)
    with pytest.raises(BadInputError, match="has label 1, but the model knows only 5 and 6"):
        other.score(stores[0])
    named = LinearSVM().fit(X, np.array(["no", "yes"])[y])
    assert set(named.predict(stores[0])) == {"no", "yes"}
    for call in (named.score, named.evaluate, named.calibrate):
        with pytest.raises(UsageError, match=r"labels of stores are numbers, but the classes are \['no', 'yes'\]"):
            call(stores[0])


def test_indices_of_64_bits():
    X, y = rows()
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(LinearSVM().fit(wide, y).predict(wide), LinearSVM().fit(X, y).predict(X))


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
    "deadline": -1.0, "silence": -1.0, "verbose": True, "kernel": "poly", "gamma": "auto", "degree": 2, "coef0": 1.0, "budget": 5,
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
    "deadline",
    "silence",
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


def test_kernel_machines_of_several_classes_have_probabilities():
    X, y = rows(150, 3)
    names = np.array(["a", "b", "c"])[y + (X[:, 0] > 0.5)]
    svm = KernelSVM(C=5.0, probability=True).fit(X, names)
    assert svm.score(X, names) > 0.9
    assert svm.dual_coef_.shape == (3, svm.support_vectors_.shape[0])
    assert np.all(svm.lower_bound_ <= svm.primal_objective_)
    assert svm.lower_bound_.shape == (3,)
    probabilities = svm.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(svm.classes_[probabilities.argmax(axis=1)] == names) > 0.85
    for k, name in enumerate(svm.classes_):
        alone = KernelSVM(C=5.0).fit(X, (names == name).astype(int))
        np.testing.assert_allclose(svm.decision_function(X)[:, k], alone.decision_function(X), atol=1e-9)
    two = KernelSVM(C=5.0, probability=True).fit(X, names == "b")
    order = np.argsort(two.decision_function(X))
    assert np.all(np.diff(two.predict_proba(X)[order, 1]) >= 0)
    with pytest.raises(ValueError, match="each class needs 5 rows"):
        KernelSVM(probability=True).fit(X, np.r_[np.ones(2), np.zeros(148)])


def test_gamma_has_the_words_of_scikit_learn():
    X, y = rows()
    assert KernelSVM().fit(X, y).gamma_ == pytest.approx(1 / (X.shape[1] * X.var()), rel=1e-9)
    assert KernelSVM(gamma="auto").fit(X, y).gamma_ == pytest.approx(1 / X.shape[1], rel=1e-12)
    assert BudgetedKernelSVM(gamma="auto").fit(X, y).gamma_ == pytest.approx(1 / X.shape[1], rel=1e-12)
