"""`certify`: how far a linear model of anybody's is from the optimum of its own problem."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.certifying.course import Course
from streamcut.certifying.divided import GIVEN, DividedDataset
from streamcut.certifying.estimators import problem_of
from streamcut.certifying.model_files import read_problem
from streamcut.certifying.problem import FREE, Problem
from streamcut.certifying.record import Certified
from streamcut.certifying.sides import CertifyOracle
from streamcut.certifying.trained_by import told
from streamcut.config import TrainOptions
from streamcut.data.datasets import opened
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.runner import Interrupted
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import LinearModel
from streamcut.models.stated import BEGUN
from streamcut.training import Session

MOST_PASSES = 30  # beyond which training is the better tool
_FIRST_CUTS = 3
_VECTORS = 8  # of a lane: the sums of the first pass, their halves joined


def certify(
    model: Any,
    data: Any,
    passes: int = 3,
    *,
    C: float | None = None,
    loss: str | None = None,
    intercept: str | float | None = None,
    epsilon: float | None = None,
    trained_by: str | None = None,
    index_base: int | None = None,
    memory: str = "auto",
) -> Certified:
    """How far `model` is above the optimum of its problem on `data`: at most and at least, proved by reading the rows.

    model      a fitted estimator of scikit-learn (LogisticRegression, LinearSVC, SGDClassifier, RidgeClassifier, Ridge,
               LinearSVR, SGDRegressor, PoissonRegressor, or a Pipeline of StandardScaler or MaxAbsScaler and one of them), a
               linear model of streamcut, or the path of its file, of LIBLINEAR's text, Vowpal Wabbit's
               (--readable_model), of ONNX or JSON
    data       the rows that it was fitted to: an opened data set, the path of a store, (X, y) or (X, y, row weights)
    passes     over the rows, 1 to 30
    C, loss    of F = ½‖w‖² + C Σ u_i ℓ_i, where the model does not say; else they replace what it says
    epsilon    of the epsilon-insensitive losses, where the model does not say
    intercept  "free": b costs nothing; "none"; or the value of a bias feature whose weight is regularised
    trained_by  the command line of LIBLINEAR or Vowpal Wabbit that trained the model of a file, which says C, loss and intercept:
               "train -s 2 -c 1 -B 1", "vw --bfgs --l2 1 --loss_function logistic"
    index_base  0 or 1: the number of the first feature in the rows that Vowpal Wabbit read; None: 1
    memory     "4GB", "50%" or "auto": ceiling on the resident memory of this process

    Raises UsageError for models that have no such problem, or do not say which; BadInputError for data with one label or with
    other features; MemoryBudgetError, and what opening the data raises.
    """
    if not 1 <= passes <= MOST_PASSES:
        raise UsageError(f"passes: {passes} is not from 1 to {MOST_PASSES}; to go on from here, train with warm_start")
    from_file = isinstance(model, str | os.PathLike)
    if not from_file and (trained_by is not None or index_base is not None):
        raise UsageError("trained_by and index_base are for files of other programs; an object says itself how it was trained")
    problem = read_problem(os.fspath(model), Ceiling(memory).expect_model, index_base) if from_file else problem_of(model)
    if trained_by is not None:
        data = opened(data)
        statistics = data.manifest.statistics
        problem = told(problem, trained_by, statistics.n_rows, statistics.weight_sum is not None)
    problem = problem.completed(C, loss, intercept, epsilon)
    dataset = opened(_relabelled(problem, data))
    statistics = dataset.manifest.statistics
    problem = _fitted_to(problem, statistics)
    if problem.divisors is not None:
        dataset = DividedDataset(dataset, problem.divisors)
    return _certified(problem, dataset, passes, memory)


def _relabelled(problem: Problem, data: Any) -> Any:
    """Labels of arrays as numbers where the model's classes are words, and −1 and 1 where it regresses on them."""
    regresses = problem.task == "regression" and problem.classes is not None
    if problem.classes is None or not isinstance(data, tuple) or not (regresses or isinstance(problem.classes[1], str)):
        return data
    X, y, *weight = data
    y, (negative, positive) = np.asarray(y), problem.classes
    if not np.isin(y, [negative, positive]).all():
        raise BadInputError(f"{problem.what} knows labels {negative!r} and {positive!r}, and the data has others")
    return (X, np.where(y == positive, 1.0, -1.0), *weight)


def _fitted_to(problem: Problem, statistics: Any) -> Problem:
    """The problem on such rows: labels, C by rows, weights of classes, as many features. Raises UsageError, BadInputError."""
    d = statistics.n_features
    if len(problem.weights) > d:
        raise UsageError(f"{problem.what} has {len(problem.weights):,} features, the data {d:,}; convert it with --n-features")
    missing = d - len(problem.weights)
    divisors = None if problem.divisors is None else np.append(problem.divisors, np.ones(missing))
    problem = replace(problem, weights=np.append(problem.weights, np.zeros(missing)), divisors=divisors)
    if problem.per_row is not None:
        problem = replace(problem, C=problem.per_row / statistics.n_rows)
    labels = statistics.labels
    if problem.task == "regression":
        if problem.classes is not None and set(labels or ()) != {-1.0, 1.0}:
            raise UsageError(f"{problem.what} regresses on labels −1 and 1; the data must have these")
        return problem
    if labels is None or len(labels) > 2:
        raise UsageError(f"the data has {'many' if labels is None else len(labels)} labels; certify takes two classes or numbers")
    if len(labels) < 2:
        only = next(iter(labels), 0.0)
        advice = ", so F has no minimum over a free intercept; give --intercept none" if problem.fit == FREE else ""
        raise BadInputError(f"all rows have label {only:g}{advice}; there is nothing to tell apart")
    known = problem.labels or (min(labels), max(labels))
    if set(known) != set(labels):
        raise BadInputError(
            f"{problem.what} knows labels {known[0]:g} and {known[1]:g}, the data has {min(labels):g} and {max(labels):g}"
        )
    weights = statistics.label_weights or {}
    if weights and min(weights.values()) <= 0.0:
        raise BadInputError("all rows of one label have weight 0; there is nothing to tell apart")
    if problem.balanced:
        if statistics.weight_sum is not None:
            raise UsageError(f"{problem.what}: class_weight='balanced' beside row weights; give the class weights themselves")
        assert problem.C is not None
        low, high = (statistics.n_rows / (2.0 * labels[label]) for label in known)
        problem = replace(problem, C=problem.C * low, positive_weight=high / low)
    return replace(problem, labels=known)


def _certified(problem: Problem, dataset: Any, passes: int, memory: str) -> Certified:
    assert problem.C is not None
    assert problem.fit is not None
    free, slots = problem.fit == FREE, _FIRST_CUTS + 2 * passes
    bias = 1.0 if free else float(problem.fit)
    options: dict[str, Any] = {"loss": problem.loss, "task": problem.task, "C": problem.C, "bias": bias, "memory": memory}
    options |= {
        "solver": "bundle-dca",
        "row_cache": "0",
        "max_cuts": slots,
        "tol": None,
        "tol_relative": None,
        "max_passes": passes,
    }
    options |= problem.options
    if problem.labels is not None:
        options |= {"positive_label": problem.labels[1], "positive_weight": problem.positive_weight}
    start = _model(problem, problem.weights, problem.intercept, _nothing(), "")
    options["warm_start"] = replace(start, recipe=dataset.recipe)  # so that all features are there, whether they occur or not
    more = (("sums of the first pass", _VECTORS * 8 * (len(problem.weights) + 1)),)
    with _advised(), Session(dataset, TrainOptions(**options), scheduler="threads", more=more) as run:
        job: Any = run.job
        order = replace(job.order, batch=run.plan.batch) if run.plan.batch else job.order
        oracle = CertifyOracle(
            run.runner, job.risk, C=problem.C, bias=bias, cuts=slots, size=None, sweeps=0, order=order,
            streams=run.plan.streams,
        )  # fmt: skip
        last = [] if bias == 0.0 else [problem.intercept / bias]
        try:
            course = Course(oracle, np.append(problem.weights, last), free=free, slots=slots)
            while len(course.history) < passes and not course.done:
                course.go_on()
        except Interrupted:
            raise KeyboardInterrupt("certification was stopped") from None
    return _record(problem, course, oracle, dataset)


@contextmanager
def _advised() -> Iterator[None]:
    """A MemoryBudgetError advises what training has, and certify has not; here is what it has."""
    try:
        yield
    except MemoryBudgetError as error:
        needs = str(error).partition(" Raise ")[0]
        raise MemoryBudgetError(f"{needs} Raise --memory, or ask for fewer --passes: each keeps two cuts") from None


def _record(problem: Problem, course: Course, oracle: CertifyOracle, dataset: Any) -> Certified:
    def certificate(primal: float) -> Certificate:
        return Certificate(primal, course.bound, oracle.c_bar, None, None, False, StopReason.MAX_PASSES, unit=oracle.unit)

    d, w = len(problem.weights), course.best_point
    bias = 1.0 if course.free else float(problem.fit or 0.0)
    weights = w[:d].copy() if problem.divisors is None else w[:d] / problem.divisors
    better = _model(
        problem, weights, float(w[d]) * bias if bias else 0.0, certificate(course.best_primal), dataset.manifest.fingerprint
    )
    within = (course.within.low, course.within.high) if course.free and course.within.known else None
    said: Any = problem.fit if problem.fit != 0.0 else "none"
    last = course.history[-1]
    history = [
        {"passes": k, "primal": primal, "lower_bound": bound, "gap": primal - bound} for k, _, _, primal, bound in course.history
    ]
    begun = {"model": problem.what, "primal": course.primal, "at_most": last.at_most, "at_least": last.at_least}
    found = replace(
        better, recipe=dataset.recipe, history=history, parameters=better.parameters | {BEGUN: begun}
    )  # fmt: skip
    if problem.divisors is None:
        found = replace(found, witness=course.witness)
    else:  # the certificate and its plane are about other features than the weights are
        found = replace(found, parameters=found.parameters | {"scale": GIVEN})
    return Certified(
        certificate(course.primal), last.at_least, found, tuple(course.history), said, within,
        dataset.manifest.statistics.n_rows,
    )  # fmt: skip


def _nothing() -> Certificate:
    return Certificate(0.0, 0.0, 1.0, None, None, False, StopReason.MAX_PASSES)


def _model(problem: Problem, weights: np.ndarray, intercept: float, certificate: Certificate, fingerprint: str) -> LinearModel:
    """A LinearModel with these weights."""
    bias = 1.0 if problem.fit == FREE else float(problem.fit or 0.0)
    intercept_costs = "free" if problem.fit == FREE else "regularised" if bias else "none"
    said = {"loss": problem.loss, "C": problem.C, "intercept": intercept_costs, **problem.options}
    return LinearModel(
        weights=np.ascontiguousarray(weights),
        intercept=intercept,
        bias=bias,
        labels=problem.labels,
        C=float(problem.C or 0.0),
        certificate=certificate,
        positive_weight=problem.positive_weight,
        task=problem.task or "binary",
        solver="",
        parameters=said,
        fingerprint=fingerprint,
    )
