"""F at a linear model's weights, computed from its rows, and how exact that is: a rigorous bound on the rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamcut.bundle.l1_only import L1Only
from streamcut.bundle.penalty import penalty_of
from streamcut.compiled import vectors
from streamcut.execution.views import OccurringDataset
from streamcut.foundation.rounding import UNSEEN, gamma, objective
from streamcut.io.manifest import Statistics
from streamcut.measures.trained_loss import TrainedLoss
from streamcut.models.linear import LinearModel
from streamcut.prediction import scored_chunks
from streamcut.training import Session, checked

_SPARE = 32  # roundings in addition to those counted
_LONGER = 1.0 + 1e-6  # squares of rows were added in float64


class Objective(NamedTuple):
    """F of one problem at given weights; the true one is at most `error` away."""

    value: float
    error: float


def training_options(model: LinearModel, data: Any) -> dict[str, Any]:
    """The options of `train` that pose the problem of `model` on `data`, starting from it if its loss is a sum over rows."""
    start = {"warm_start": replace(model, witnesses=(), recipe=data.recipe)} if model.problem.of_rows else {}
    return model.problem.training() | start | ({"solver": model.solver} if model.task == "one-class" else {})


def objectives(model: LinearModel, data: Any) -> list[Objective]:
    """F of each problem of a model whose loss is a sum over rows, from one pass over `data`.

    Raises BadInputError for labels and features that the model does not know.
    """
    loss, score_error = TrainedLoss(model), _score_error(data.manifest.statistics, model)
    sums, errors = np.zeros(loss.problems), np.zeros(loss.problems)
    for chunk, scores in scored_chunks(model, data):
        near = score_error + 2.0 * np.spacing(np.abs(scores))
        y, u = loss.rows(chunk)
        values, far = loss.values(y, scores), loss.farthest(y, scores, near)
        known, counts = far < math.inf, u > 0.0  # a row of weight 0 may have an infinite loss
        sums += u[counts] @ values[counts]
        errors += u[counts] @ (np.where(known, far, 0.0) - np.where(known, values, -math.inf))[counts]
        errors += gamma(loss.near_one) * float(u.sum())
    W, C = model.trained_weights, model.C
    l1 = model.problem.l1
    penalty: Any = L1Only(l1) if model.problem.l1_only else penalty_of(l1)
    columns = W.T if loss.problems > 1 else [W.reshape(-1)]
    prices = [penalty.value(np.ascontiguousarray(column)) for column in columns]
    return [Objective(price + C * float(s), C * float(e)) for price, s, e in zip(prices, sums, errors, strict=True)]


def _score_error(statistics: Statistics, model: Any) -> Any:
    """How far each computed score may be off: a part γ of ‖x‖‖w‖, x the longest row with its bias feature."""
    lengths = np.sqrt((model.augmented_weights**2).sum(axis=0))
    longest = math.sqrt(statistics.max_squared_norm + model.problem.bias**2) * _LONGER + UNSEEN
    return gamma(statistics.max_row_nnz + _SPARE) * longest * lengths * _LONGER


def global_objective(model: LinearModel, data: Any, asked: dict[str, Any], memory: str) -> tuple[Objective, float | None]:
    """The same for a loss of all scores at once, from the passes of its training; `asked` are the options of `train`.

    Also ρ of the plane ⟨w, x⟩ = ρ, of one class.
    """
    one_class = model.task == "one-class"
    options, _ = checked({**asked, "memory": memory} | ({} if one_class else {"solver": "ocas"}))
    with Session(data, options, scheduler="threads") as run:
        job: Any = run.job
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
