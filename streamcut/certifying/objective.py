"""F at a linear model's weights, computed from its rows, and how exact that is: a rigorous bound on the rounding."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamcut.bundle.l1_only import L1Only
from streamcut.bundle.penalty import penalty_of
from streamcut.compiled import vectors
from streamcut.execution.occurring import OccurringDataset
from streamcut.foundation.rounding import UNSEEN, gamma, objective
from streamcut.io.manifest import Statistics
from streamcut.loss_table import HINGE_OF_CLASSES, LABELLING_LOSSES
from streamcut.measures.trained_loss import loss_of, risk_of
from streamcut.models.linear import ONE_VS_REST, LinearModel
from streamcut.prediction import scored_chunks
from streamcut.training import Session, checked

_PROBLEM = ("loss", "epsilon", "delta", "quantile", "k", "strategy", "normalisation", "nu", "bias", "intercept")  # options
_WITH_LOSS = ("binary", "regression", "multiclass")
_SPARE = 32  # roundings in addition to those counted
_LONGER = 1.0 + 1e-6  # squares of rows were added in float64


def training_options(model: LinearModel, data: Any) -> dict[str, Any]:
    """The options of `train` for the problem that `model` claims to solve on `data`, starting there if its loss is of rows."""
    options: dict[str, Any] = {"loss": "auto"} | {name: model.parameters[name] for name in _PROBLEM if name in model.parameters}
    options["task"] = model.task
    if model.task not in _WITH_LOSS:
        del options["loss"]  # there is only one
    if model.task != "one-class":
        options["C"] = model.C
    else:  # it finds C itself, as the solver does
        options["solver"] = model.solver
    if model.strategy:
        options.pop("strategy", None)
        if model.strategy in (ONE_VS_REST, HINGE_OF_CLASSES):
            options["strategy"] = model.strategy
        if model.strategy != ONE_VS_REST:
            options["loss"] = "hinge" if model.strategy == HINGE_OF_CLASSES else model.strategy
    elif model.task == "binary" and model.labels is not None:
        options |= {"positive_label": model.labels[1], "positive_weight": model.positive_weight}
    if model.l1:
        options["l1_only" if model.parameters.get("l1_only") else "l1"] = model.l1
    if model.task in _WITH_LOSS and options["loss"] not in LABELLING_LOSSES:
        options["warm_start"] = replace(model, witnesses=(), recipe=data.recipe)
    return options


class Objective(NamedTuple):
    """F of one problem at given weights; the true one is at most `error` away."""

    value: float
    error: float


def objectives(model: LinearModel, data: Any) -> list[Objective]:
    """F of each problem of a model whose loss is a sum over rows, from one pass over `data`.

    Raises BadInputError for labels and features that the model does not know.
    """
    several = bool(model.strategy)
    loss: Any = loss_of(model) if several else risk_of(model)
    near_one = loss.near_one if several else loss.rounding.near_one
    score_error = _score_error(data.manifest.statistics, model)
    problems = loss.problems if several else 1
    sums, errors = np.zeros(problems), np.zeros(problems)
    for chunk, scores in scored_chunks(model, data):
        near = score_error + 2.0 * np.spacing(np.abs(scores))
        if several:
            y, u = model.classes_of(chunk.y, chunk.first_row), np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
            values, far = loss.values(y, scores), loss.farthest(y, scores, near)
        else:
            if model.labels is not None:
                model.is_positive(chunk.y, chunk.first_row)  # raises for unknown labels
            y, u = chunk.y, loss.weights_of(chunk.y, chunk.weight)
            if loss.loss.targets == "numbers":
                near += 2.0 * np.spacing(loss.target_sizes(y))
            values = loss.values(y, scores)[:, None]  # a convex loss is farthest from it at one end of the score's interval
            far = np.maximum(loss.values(y, scores - near), loss.values(y, scores + near))[:, None]
        known, counts = far < math.inf, u > 0.0  # a row of weight 0 may have an infinite loss
        sums += u[counts] @ values[counts]
        errors += u[counts] @ (np.where(known, far, 0.0) - np.where(known, values, -math.inf))[counts]
        errors += gamma(near_one) * float(u.sum())
    W, C = model.trained_weights, model.C
    penalty: Any = L1Only(model.l1) if model.parameters.get("l1_only") else penalty_of(model.l1)
    columns = W.T if problems > 1 else [W.reshape(-1)]
    prices = [penalty.value(np.ascontiguousarray(column)) for column in columns]
    return [Objective(price + C * float(s), C * float(e)) for price, s, e in zip(prices, sums, errors, strict=True)]


def _score_error(statistics: Statistics, model: Any) -> Any:
    """How far each computed score may be off: a part γ of ‖x‖‖w‖, x the longest row with its bias feature."""
    lengths = np.sqrt((model.augmented_weights**2).sum(axis=0))
    longest = math.sqrt(statistics.max_squared_norm + model.bias**2) * _LONGER + UNSEEN
    return gamma(statistics.max_row_nnz + _SPARE) * longest * lengths * _LONGER


def global_objective(model: LinearModel, data: Any, problem: dict[str, Any], memory: str) -> tuple[Objective, float | None]:
    """The same for a loss of all scores at once, from the passes of its training; `problem` are the options of `train`.

    Also ρ of the plane ⟨w, x⟩ = ρ, of one class.
    """
    one_class = model.task == "one-class"
    options, _ = checked({**problem, "memory": memory} | ({} if one_class else {"solver": "ocas"}))
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
