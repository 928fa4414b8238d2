"""`certify`: how far any linear model, trained by any program, is from the optimum of its own problem.

One pass over the rows gives F at its weights, with a rigorous bound on the rounding. Training that starts from these weights
gives, pass by pass, a number that no weights can go below, and better weights, whose F shows how far the model is from the
optimum at least.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from streamcut.bundle.l1_only import L1Only
from streamcut.bundle.penalty import L2, penalty_of
from streamcut.compiled import vectors
from streamcut.data.datasets import labelled, origin
from streamcut.errors import BadInputError, MemoryBudgetError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.views import OccurringDataset, ScaledDataset
from streamcut.foreign import foreign, read_foreign
from streamcut.foundation.rounding import UNSEEN, gamma, objective
from streamcut.foundation.shown import Shown
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Statistics
from streamcut.measures.trained_loss import TrainedLoss
from streamcut.models.certificate import Certificate, StopReason, certificate_of
from streamcut.models.files import as_model, is_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import BEGUN, Model
from streamcut.prediction import scored_chunks
from streamcut.problem import FREE, NONE
from streamcut.training import Session, checked, train

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

MOST_PASSES = 30  # beyond which training is the better tool
GIVEN = "given"  # the scale of a model whose certificate is about divided rows
_NOTHING = 1e-12  # of F: the rest is rounding
_FAR = 0.01  # of F: if the gap is wider, the verdict says what helps
_SPARE = 32  # roundings in addition to those counted
_LONGER = 1.0 + 1e-6  # squares of rows were added in float64


class Objective(NamedTuple):
    """F of one problem at given weights; the true one is at most `error` away."""

    value: float
    error: float


def training_options(model: LinearModel, data: Dataset) -> dict[str, Any]:
    """The options of `train` that pose the problem of `model` on `data`, starting from it if its loss is a sum over rows."""
    start = {"warm_start": replace(model, proofs=(), recipe=data.recipe)} if model.problem.of_rows else {}
    return model.problem.training() | start | ({"solver": model.solver} if model.task == "one-class" else {})


def objectives(model: LinearModel, data: Dataset) -> list[Objective]:
    """F of each problem of a model whose loss is a sum over rows, from one pass over `data`.

    Raises BadInputError for labels and features that the model does not know.
    """
    loss, score_error = TrainedLoss(model), _score_error(data.manifest.statistics, model)
    sums, errors = np.zeros(loss.problems), np.zeros(loss.problems)
    for chunk, scores in scored_chunks(model, data):
        near = score_error + 2.0 * np.spacing(np.abs(scores))
        y, u = loss.rows(chunk)
        values, far = loss.values(y, scores), loss.farthest(y, scores, near)
        finite, counts = far < math.inf, u > 0.0  # a row of weight 0 may have an infinite loss
        sums += u[counts] @ values[counts]
        errors += u[counts] @ (np.where(finite, far, 0.0) - np.where(finite, values, -math.inf))[counts]
        errors += gamma(loss.near_one) * float(u.sum())
    W, C = model.trained_weights, model.C
    l1 = model.problem.l1
    penalty: L1Only | L2 = L1Only(l1) if model.problem.l1_only else penalty_of(l1)
    columns = W.T if loss.problems > 1 else [W.reshape(-1)]
    prices = [penalty.value(np.ascontiguousarray(column)) for column in columns]
    return [Objective(price + C * float(s), C * float(e)) for price, s, e in zip(prices, sums, errors, strict=True)]


def _score_error(statistics: Statistics, model: LinearModel) -> np.ndarray:
    """How far each computed score may be off: a part γ of ‖x‖‖w‖, x the longest row with its bias feature."""
    lengths = np.sqrt((model.augmented_weights**2).sum(axis=0))
    longest = math.sqrt(statistics.max_squared_norm + model.problem.bias**2) * _LONGER + UNSEEN
    return gamma(statistics.max_row_nnz + _SPARE) * longest * lengths * _LONGER


def global_objective(model: LinearModel, data: Dataset, asked: dict[str, object], memory: str) -> tuple[Objective, float | None]:
    """The same for a loss of all scores at once, from the passes of its training; `asked` are the options of `train`.

    Also ρ of the plane ⟨w, x⟩ = ρ, of one class.
    """
    one_class = model.task == "one-class"
    options, _ = checked({**asked, "memory": memory} | ({} if one_class else {"solver": "ocas"}))
    with Session(data, options, scheduler="threads") as run:
        job: Any = run.job  # of a loss of all scores
        oracle = job.trainer(run.runner, run.plan).oracle
        w = model.trained_weights
        square = vectors.dot(w, w)
        if isinstance(run.dataset, OccurringDataset):
            w = np.append(w[run.dataset.index], w[model.n_features :])
        if one_class:
            offset, loss, raised = oracle.plane(np.append(w, 0.0))
        else:
            oracle.start()
            offset, loss = None, oracle.cut_at(w)[1]
            raised = oracle.raised
    return Objective(objective(square, len(w), model.C, loss), 2.0 * model.C * raised), offset


class AfterPass(NamedTuple):
    """What was known after `passes` passes: parts of the model's objective; the best objective found and the lower bound."""

    passes: int
    at_most: float
    at_least: float
    better_primal: float
    lower_bound: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certified(Shown):
    """certificate   of the given model: `primal` its objective, `lower_bound` what no weights can go below, `gap`
    at_least      how far it is above the optimum at least, as a part of its objective: better weights were found
    better        the best model of these passes, itself a model to save or to predict with
    passes        what was known after each
    rows          that were read
    classes       of one problem for each class, whose sums are given above: (label, certificate, at_least) of each
    """

    certificate: Certificate
    at_least: float
    better: LinearModel
    passes: tuple[AfterPass, ...]
    rows: int
    classes: tuple[tuple[float, Certificate, float], ...] = ()

    @property
    def intercept(self) -> str | float:
        """Of the problem: "free", "none", or the value of the bias feature."""
        return FREE if self.better.problem.free else self.better.problem.constant or NONE

    @property
    def at_most(self) -> float:
        """How far the model can be above the optimum at most, as a part of its objective."""
        primal = self.certificate.primal
        return self.certificate.gap / primal if primal > 0.0 else 0.0

    def shown(self) -> dict[str, object]:
        return {"primal": self.certificate.primal, "at_most": self.at_most, "at_least": self.at_least}

    def in_words(self) -> str:
        """The verdict in two sentences."""
        primal, bound = self.certificate.primal, self.certificate.lower_bound
        if primal <= _NOTHING * self.certificate.c_bar * self.certificate.unit:
            return f"The objective is {primal:.3g}, which is 0 but for rounding: these weights are an optimum."
        far = self.at_most > _FAR and self.at_most > 10.0 * self.at_least
        more = " More passes or features of similar size would narrow this." if far else ""
        if self.classes:
            label, certificate, _ = max(self.classes, key=lambda entry: entry[1].gap)
            most = 100 * certificate.gap / primal
            more = f" A sum over {len(self.classes)} classes, with the largest share in {label:g}: {most:.2g} %.{more}"
        return (
            f"At most {100 * self.at_most:.2g} %, at least {100 * self.at_least:.2g} % above the optimum (of its objective). "
            f"The objective is {primal:.8g}, and no weights can reach less than {bound:.8g}.{more}"
        )

    def report(self) -> dict[str, object]:
        """The same in JSON types."""
        whole = self.certificate
        return {
            "rows": self.rows,
            "primal": whole.primal,
            "lower_bound": whole.lower_bound,
            "gap": whole.gap,
            "at_most": self.at_most,
            "at_least": self.at_least,
            "better_primal": self.passes[-1].better_primal,
            "better_intercept": np.asarray(self.better.intercept).tolist(),
            "intercept": self.intercept,
            "passes": [step._asdict() for step in self.passes],
            "classes": [
                {"label": label, "primal": certificate.primal, "lower_bound": certificate.lower_bound, "at_least": at_least}
                for label, certificate, at_least in self.classes
            ],
        }


def certify(
    model: Model | BaseEstimator | str | os.PathLike, data: object, passes: int = 3, *, C: float | None = None,
    loss: str | None = None, intercept: str | float | None = None, epsilon: float | None = None, memory: str = "auto",
) -> Certified:  # fmt: skip
    """See streamcut.api."""
    if not 1 <= passes <= MOST_PASSES:
        raise UsageError(f"passes: {passes} is not from 1 to {MOST_PASSES}; to continue from here, train with warm_start")
    path, expect = os.fspath(model) if isinstance(model, str | os.PathLike) else None, Ceiling(memory).expect_model
    if isinstance(model, Model) or (path is not None and is_model(path)):
        what = "the model" if path is None else path
        asked = {"C": C, "loss": loss, "intercept": intercept, "epsilon": epsilon}
        ours = _expect_ours(as_model(model, expect), what, asked)
        with labelled(ours, data, memory) as dataset:
            return _certified(ours, what, dataset, origin(ours, data), passes, memory)
    theirs = foreign(model) if path is None else read_foreign(path, expect)
    theirs = theirs.completed(C, loss, intercept, epsilon)
    with labelled(None, theirs.in_numbers(data), memory) as dataset:
        start, divisors = theirs.model(dataset.manifest.statistics), theirs.divisors
        if divisors is not None:
            divisors = np.append(divisors, np.ones(len(start.weights) - len(divisors)))
            dataset = ScaledDataset(dataset, GIVEN, divisors)
        return _certified(start, theirs.what, dataset, origin(None, data), passes, memory)


def _certified(
    start: LinearModel, what: str, dataset: Dataset, made_of: dict[str, object], passes: int, memory: str
) -> Certified:
    """One pass for F of the model `start`, then `passes` of training from it, over rows that match it; `what` names it, `made_of`
    the rows."""
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        values = objectives(start, dataset)
    at_most, at_least = [F + 2.0 * error for F, error in values], [F - 2.0 * error for F, error in values]
    primal, least = math.fsum(at_most), math.fsum(at_least)
    if not math.isfinite(primal):
        raise BadInputError("the objective of these weights is no finite float64; they are too large for these rows")

    def part(distance: float, of: float = primal) -> float:
        return distance / of if of > 0.0 else 0.0

    def after(number: int, best: float, bound: float) -> AfterPass:
        return AfterPass(number, part(primal - bound), part(max(0.0, least - best)), best, bound)

    options = training_options(start, dataset) | {"tol": None, "tol_relative": _NOTHING, "max_passes": passes, "memory": memory}
    try:
        trained = cast(LinearModel, train(dataset, **options))
    except MemoryBudgetError as error:
        raise MemoryBudgetError(f"{str(error).partition(' Raise ')[0]} Raise --memory") from None
    end = certificate_of(trained.certificates)
    lines = enumerate(trained.history, 1)  # sums over classes there are rounded to nearest
    history = [after(number, line["primal"], min(line["lower_bound"], end.lower_bound)) for number, line in lines]
    history[-1] = after(len(history), min(end.primal, primal), end.lower_bound)
    certificates = [
        replace(certificate, primal=F, converged=False, stop_reason=StopReason.MAX_PASSES, tol=None, tol_relative=None)
        for certificate, F in zip(trained.certificates, at_most, strict=True)
    ]
    begun = {"model": what, "primal": primal, "at_most": history[-1].at_most, "at_least": history[-1].at_least}
    posed = replace(trained.problem, scale=GIVEN) if isinstance(dataset, ScaledDataset) else trained.problem
    asked = {name: trained.parameters[name] for name in start.problem.training()}  # and not the limits of this run
    better = replace(trained, problem=posed, parameters=asked | made_of | {BEGUN: begun})
    classes = () if len(certificates) == 1 else tuple(
        (label, certificate, part(max(0.0, F - one.primal), certificate.primal))
        for label, certificate, F, one in zip(start.labels or (), certificates, at_least, trained.certificates, strict=True)
    )  # fmt: skip
    rows = dataset.manifest.statistics.n_rows
    return Certified(certificate_of(certificates), history[-1].at_least, better, tuple(history[-passes:]), rows, classes)


def _expect_ours(model: Model, what: str, asked: Mapping[str, object]) -> LinearModel:
    """`model`. Raises UsageError for models that are not linear ones of rows, and for options that override their problem."""
    if not (isinstance(model, LinearModel) and model.of_features) or model.task not in ("binary", "regression", "multiclass"):
        raise UsageError(f"{what} is of task {model.task} by {model.solver}; certify takes a linear one for classes or numbers")
    if model.problem.scale != "none" or not model.problem.of_rows:
        raise UsageError(f"{what}: certify takes losses of rows whose features are not scaled; see `verify`")
    if said := [name for name, value in asked.items() if value is not None]:
        raise UsageError(f"{what} says what it minimises; leave out {', '.join(f'--{name}' for name in said)}")
    return model
