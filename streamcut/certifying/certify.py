"""`certify`: how far any linear model is from the optimum of its own problem."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.certifying.estimators import foreign
from streamcut.certifying.model_files import read_foreign
from streamcut.certifying.objective import Objective, objectives, training_options
from streamcut.certifying.record import AfterPass, Certified
from streamcut.data.datasets import labelled
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.rounding import above, below
from streamcut.models.certificate import StopReason
from streamcut.models.files import is_model, load_model
from streamcut.models.model import BEGUN, Model
from streamcut.problem import FREE, NONE
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
    theirs = read_foreign(os.fspath(model), expect) if from_file else foreign(model)
    theirs = theirs.completed(C, loss, intercept, epsilon)
    with labelled(None, theirs.in_numbers(data), memory) as dataset:
        start, divisors = theirs.model(dataset.manifest.statistics), theirs.divisors
        if divisors is not None:
            divisors = np.append(divisors, np.ones(len(start.weights) - len(divisors)))
            dataset = ScaledDataset(dataset, GIVEN, divisors)
        return _certified(start, theirs.what, dataset, passes, memory)


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

    options = training_options(start, dataset) | {"tol": None, "tol_relative": _DONE, "max_passes": passes, "memory": memory}
    try:
        found: Any = train(dataset, on_iteration=lambda now: met(now.primal, now.lower_bound), **options)
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
    posed = replace(found.problem, scale=GIVEN) if isinstance(dataset, ScaledDataset) else found.problem
    better = replace(found, problem=posed, parameters=found.parameters | {BEGUN: begun})
    classes = () if len(given) == 1 else tuple(
        (label, each, max(0.0, F - off - one.primal) / F if F > 0.0 else 0.0)
        for label, each, (F, off), one in zip(start.labels, given, values, found.certificates, strict=True)
    )  # fmt: skip
    intercept = FREE if start.problem.free else start.problem.constant or NONE
    return Certified(whole, after[-1].at_least, better, tuple(after[-passes:]), intercept, dataset.manifest.statistics.n_rows,
                     classes)  # fmt: skip


def _check_ours(model: Any, what: str, asked: dict[str, Any]) -> None:
    """Raise UsageError for models that are not linear ones of rows, and for options that override their problem."""
    if not model.of_features or model.task not in ("binary", "regression", "multiclass"):
        raise UsageError(f"{what} is of task {model.task} by {model.solver}; certify takes a linear one for classes or numbers")
    if model.problem.scale != "none" or not model.problem.of_rows:
        raise UsageError(f"{what}: certify takes losses of rows whose features are not scaled; see `verify`")
    if said := [name for name, value in asked.items() if value is not None]:
        raise UsageError(f"{what} says what it minimises; leave out {', '.join(f'--{name}' for name in said)}")
