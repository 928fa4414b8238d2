"""`certify`: how far any linear model is from the optimum of its own problem."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.certifying.estimators import problem_of
from streamcut.certifying.model_files import read_problem
from streamcut.certifying.objective import Objective, objectives, training_options
from streamcut.certifying.problem import FREE, Problem
from streamcut.certifying.record import AfterPass, Certified
from streamcut.data.datasets import labelled
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.rounding import above, below
from streamcut.loss_table import LABELLING_LOSSES
from streamcut.models.certificate import StopReason
from streamcut.models.files import is_model, load_model
from streamcut.models.model import BEGUN, Model
from streamcut.training import train

MOST_PASSES = 30  # beyond which training is the better tool
GIVEN = "given"  # the scale of a model whose certificate is about divided rows
_DONE = 1e-12  # of F: the rest is rounding


def certify(
    model: Any,
    data: Any,
    passes: int = 3,
    *,
    C: float | None = None,
    loss: str | None = None,
    intercept: str | float | None = None,
    epsilon: float | None = None,
    memory: str = "auto",
) -> Certified:
    """See streamcut.api."""
    if not 1 <= passes <= MOST_PASSES:
        raise UsageError(f"passes: {passes} is not from 1 to {MOST_PASSES}; to continue from here, train with warm_start")
    from_file, expect = isinstance(model, str | os.PathLike), Ceiling(memory).expect_model
    if isinstance(model, Model) or (from_file and is_model(model)):
        what = os.fspath(model) if from_file else "the model"
        ours = load_model(model, expect) if from_file else model
        _check_ours(ours, what, {"C": C, "loss": loss, "intercept": intercept, "epsilon": epsilon})
        with labelled(ours, data, memory) as dataset:
            return _certified(ours, what, dataset, passes, memory)
    problem = read_problem(os.fspath(model), expect) if from_file else problem_of(model)
    problem = problem.completed(C, loss, intercept, epsilon)
    with labelled(None, _relabelled(problem, data), memory) as dataset:
        problem = _fitted_to(problem, dataset.manifest.statistics)
        if problem.divisors is not None:
            dataset = ScaledDataset(dataset, GIVEN, problem.divisors)
        return _certified(problem.model(), problem.what, dataset, passes, memory)


def _certified(start: Any, what: str, dataset: Any, passes: int, memory: str) -> Certified:
    """One pass for F of the model `start`, then `passes` of training from it, over rows that match it; `what` names it."""
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        values = objectives(start, dataset)
    values = [Objective(F + 2.0 * error, 4.0 * error) for F, error in values]  # F at most, and how much that may be more
    primal = math.fsum(F for F, _ in values)
    if not math.isfinite(primal):
        raise BadInputError("the objective of these weights is no finite float64; they are too large for these rows")
    after: list[AfterPass] = []

    def met(best: float, bound: float) -> None:
        least = max(0.0, primal - math.fsum(off for _, off in values) - best)
        at_most, at_least = ((primal - bound) / primal, least / primal) if primal > 0.0 else (0.0, 0.0)
        after.append(AfterPass(len(after) + 1, at_most, at_least, best, bound))

    problem = training_options(start, dataset)
    limits: dict[str, Any] = {"tol": None, "tol_relative": _DONE, "max_passes": passes, "memory": memory}
    try:
        found: Any = train(dataset, on_iteration=lambda now: met(now.primal, now.lower_bound), **problem, **limits)
    except MemoryBudgetError as error:
        raise MemoryBudgetError(f"{str(error).partition(' Raise ')[0]} Raise --memory") from None
    bound = found.certificate.lower_bound
    after[-1:] = []
    met(min(found.certificate.primal, primal), bound)
    given = [
        replace(each, primal=F, converged=False, stop_reason=StopReason.MAX_PASSES, tol=None, tol_relative=None)
        for each, (F, _) in zip(found.certificates, values, strict=True)
    ]
    whole = given[0] if len(given) == 1 else replace(given[0], primal=above(primal, 0.0), lower_bound=below(bound, 0.0))
    begun = {"model": what, "primal": primal, "at_most": after[-1].at_most, "at_least": after[-1].at_least}
    scale = {"scale": GIVEN} if isinstance(dataset, ScaledDataset) else {}
    kept = {name: found.parameters[name] for name in problem if name in found.parameters and name != "warm_start"}
    better = replace(found, parameters=kept | {"loss": start.parameters["loss"], BEGUN: begun} | scale)
    classes = () if len(given) == 1 else tuple(
        (label, each, max(0.0, F - off - one.primal) / F if F > 0.0 else 0.0)
        for label, each, (F, off), one in zip(start.labels, given, values, found.certificates, strict=True)
    )  # fmt: skip
    intercept = FREE if start.free else start.bias or "none"
    return Certified(whole, after[-1].at_least, better, tuple(after[-passes:]), intercept, dataset.manifest.statistics.n_rows,
                     classes)  # fmt: skip


def _check_ours(model: Any, what: str, asked: dict[str, Any]) -> None:
    """Raise UsageError for models that are not linear ones of rows, and for options that override their problem."""
    if not model.of_features or model.task not in ("binary", "regression", "multiclass"):
        raise UsageError(f"{what} is of task {model.task} by {model.solver}; certify takes a linear one for classes or numbers")
    if model.parameters.get("scale", "none") != "none" or model.parameters.get("loss") in LABELLING_LOSSES:
        raise UsageError(f"{what}: certify takes losses of rows whose features are not scaled; see `verify`")
    if said := [name for name, value in asked.items() if value is not None]:
        raise UsageError(f"{what} says what it minimises; leave out {', '.join(f'--{name}' for name in said)}")


def _relabelled(problem: Problem, data: Any) -> Any:
    """Labels of arrays as numbers if the model's classes are words, as −1 and 1 if it regresses on them."""
    regresses = problem.task == "regression" and problem.classes is not None
    if problem.classes is None or not isinstance(data, tuple) or not (regresses or isinstance(problem.classes[-1], str)):
        return data
    X, y, *weight = data
    y, known = np.asarray(y), problem.classes
    if not np.isin(y, known).all():
        names = f"{', '.join(map(repr, known[:-1]))} and {known[-1]!r}"
        raise BadInputError(f"{problem.what} knows labels {names}, and the data has others")
    if problem.strategy:
        return (X, np.asarray(problem.labels)[np.searchsorted(np.asarray(known), y)], *weight)
    return (X, np.where(y == known[1], 1.0, -1.0), *weight)


def _fitted_to(problem: Problem, statistics: Any) -> Problem:
    """The problem completed from rows: labels, C per row, class weights, features. Raises UsageError, BadInputError."""
    d = statistics.n_features
    if len(problem.weights) > d:
        raise UsageError(f"{problem.what} has {len(problem.weights):,} features, the data {d:,}; convert it with --n-features")
    problem = problem.padded(d)
    if problem.per_row is not None:
        problem = replace(problem, C=problem.per_row / statistics.n_rows)
    labels = statistics.labels
    if problem.task == "regression":
        if problem.classes is not None and set(labels or ()) != {-1.0, 1.0}:
            raise UsageError(f"{problem.what} regresses on labels −1 and 1; the data must have these")
        return problem
    if labels is None or (len(labels) > 2 and not problem.strategy):
        many = "many" if labels is None else len(labels)
        raise UsageError(f"the data has {many} labels, but {problem.what} has one score per row, for two classes or numbers")
    if len(labels) < 2:
        only = next(iter(labels), 0.0)
        advice = ", so F has no minimum over a free intercept; give --intercept=none" if problem.fit == FREE else ""
        raise BadInputError(f"all rows have label {only:g}{advice}; there is nothing to tell apart")
    known = problem.labels or (min(labels), max(labels))
    if set(known) != set(labels):
        if problem.strategy:
            odd = ", ".join(f"{label:g}" for label in sorted(set(labels) ^ set(known))[:10])
            raise BadInputError(f"{problem.what} and the data do not have the same labels: {odd}")
        raise BadInputError(
            f"{problem.what} knows labels {known[0]:g} and {known[1]:g}, the data has {min(labels):g} and {max(labels):g}"
        )
    weights = statistics.label_weights or {}
    if weights and min(weights.values()) <= 0.0:
        raise BadInputError("all rows of one label have weight 0; there is nothing to tell apart")
    if problem.balanced:
        if statistics.weight_sum is not None:
            raise UsageError(f"{problem.what}: class_weight='balanced' together with row weights; give explicit class weights")
        assert problem.C is not None
        low, high = (statistics.n_rows / (2.0 * labels[label]) for label in known)
        problem = replace(problem, C=problem.C * low, positive_weight=high / low)
    return replace(problem, labels=known)
