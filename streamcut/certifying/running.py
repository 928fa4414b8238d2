"""Running a certification: one pass for the objective of the given weights, then training that starts from them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.certifying.objective import Objective, objectives, training_options
from streamcut.certifying.problem import FREE
from streamcut.certifying.record import AfterPass, Certified
from streamcut.errors import BadInputError, MemoryBudgetError
from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.rounding import above, below
from streamcut.io.dataset import Dataset
from streamcut.io.features import feature_statistics
from streamcut.models.certificate import StopReason
from streamcut.models.model import BEGUN
from streamcut.training import train

GIVEN = "given"  # the scale of a model whose certificate is about divided rows
_DONE = 1e-12  # of F: the rest is rounding


class DividedDataset(ScaledDataset):
    """The rows of `data` with values divided by `divisors`, float64 (n_features,), above 0."""

    def __init__(self, data: Dataset, divisors: np.ndarray) -> None:
        self._divide(data, GIVEN, divisors, feature_statistics(data))


def certified(start: Any, what: str, dataset: Any, passes: int, memory: str) -> Certified:
    """Certify a linear model, by `passes` passes over rows that match it; `what` names it."""
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        values = objectives(start, dataset)
    values = [
        Objective(F + 2.0 * error, 4.0 * error) for F, error in values
    ]  # of each problem: F at most, and how much that may be more
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
    scale = {"scale": GIVEN} if isinstance(dataset, DividedDataset) else {}
    kept = {name: found.parameters[name] for name in problem if name in found.parameters and name != "warm_start"}
    better = replace(found, parameters=kept | {"loss": start.parameters["loss"], BEGUN: begun} | scale)
    classes = () if len(given) == 1 else tuple(
        (label, each, max(0.0, F - off - one.primal) / F if F > 0.0 else 0.0)
        for label, each, (F, off), one in zip(start.labels, given, values, found.certificates, strict=True)
    )  # fmt: skip
    intercept = FREE if start.free else start.bias or "none"
    return Certified(whole, after[-1].at_least, better, tuple(after[-passes:]), intercept, dataset.manifest.statistics.n_rows,
                     classes)  # fmt: skip
