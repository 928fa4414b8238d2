"""Rows that arrive in calls: dual coordinate ascent on the rows of each call alone, from the present weights.

With a share f_i of the dual for every row so far, w = C Σ u_i σ_i f_i x_i. A call maximises the dual of all rows over the shares
of its own rows, the others fixed. That minimises

    ½‖w − w_before‖² + C Σ u_i ℓ_i(w)    over the rows of the call,

so no earlier row is needed: w holds all they contribute. All rows in one call give what `train` gives; one row of the hinge
gives a step of PA-I (Crammer et al. 2006); between them it is the online dual ascent of Shalev-Shwartz & Singer 2007. Nothing
is proved about the objective of all rows, as the earlier ones are gone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.compiled.kernel_columns import squared_norms
from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.row_cache import CacheSize, SweptCache
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset
from streamcut.jobs.origins import strategy_of
from streamcut.losses import joint_loss, row_loss
from streamcut.measures.classes import loss_of
from streamcut.measures.pointwise import risk_of
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.labels import class_numbers
from streamcut.models.linear import LinearModel
from streamcut.models.multiclass import ONE_VS_REST, MulticlassModel
from streamcut.oracles.dual.classes import ClassesCache
from streamcut.oracles.dual.loss_cache import LossCache
from streamcut.solver_table import SOLVER_TABLE

Linear = LinearModel | MulticlassModel


def learn(rows: Dataset, options: TrainOptions, labels: tuple[float, ...] | None, start: Linear | None) -> tuple[Linear, int]:
    """(a model that has learnt from `rows`, shard after shard, starting from `start`; most epochs over a shard).

    labels  of all classes that may occur, increasing; None for numbers

    The options used are those of the problem, tol (None: 0), sweeps and seed: epochs over the rows end when one raises the dual
    by at most tol · C Σu. The certificate of the model is about these rows alone, and its bound is 0. Raises UsageError for
    options that need more than the rows of one call.
    """
    _refuse(options, start)
    several = labels is not None and len(labels) > 2
    W = _begin(start, options, rows.manifest.statistics.n_features, len(labels) if several and labels else 0)
    rng, epochs = np.random.default_rng(options.seed), 1
    for shard in range(len(rows.manifest.shards)):
        chunk = rows.read(shard)
        weight = float(chunk.n_rows) if chunk.weight is None else float(chunk.weight.sum())
        enough = (options.tol or 0.0) * options.C * weight
        if not (several and labels is not None and strategy_of(options) == ONE_VS_REST):
            epochs = max(epochs, _settle(_filled(chunk, options, labels, several), W, options, rng, enough))
            continue
        for k, label in enumerate(labels):  # each against the rest
            w = np.ascontiguousarray(W[:, k])
            epochs = max(epochs, _settle(_filled(chunk, options, (-label, label), False), w, options, rng, enough))
            W[:, k] = w
    return _stated(*_model(W, options, labels, several, rows), rows), epochs


def _refuse(options: TrainOptions, start: Linear | None) -> None:
    if not SOLVER_TABLE[options.chosen_solver].dual:
        raise UsageError(
            f"partial_fit: it is dual ascent on losses of single rows, which solver {options.chosen_solver}, loss "
            f'{options.chosen_loss} is not; give solver="auto" and such a loss, or fit'
        )
    if options.l1_only:
        raise UsageError("partial_fit: with l1_only it needs all rows; put rows into a store and fit on that")
    if options.l1 or (start is not None and start.l1):
        raise UsageError("partial_fit: with l1 it needs all rows so far; give l1=0, or put rows into a store and fit on that")
    if options.free:
        raise UsageError("partial_fit: a free intercept needs all rows; give intercept_penalty=True, or fit on all of them")
    if options.scale != "none":
        raise UsageError(
            f"partial_fit: scale={options.scale!r} divides by a number of all rows; give scale='none' and scale X yourself, say "
            "by MaxAbsScaler().partial_fit of scikit-learn"
        )


def _begin(start: Linear | None, options: TrainOptions, n_features: int, classes: int) -> np.ndarray:
    """The weights to start from, float64 (D,) or (D, classes), the bias feature last in D."""
    W = np.zeros((n_features + (options.bias != 0.0), *((classes,) if classes else ())))
    if start is None:
        return W
    intercepts = start.intercepts if isinstance(start, MulticlassModel) else np.float64(start.intercept)
    if not options.bias and np.any(intercepts):
        raise UsageError("partial_fit: the model has an intercept, so fit_intercept must stay True")
    W[: start.n_features] = start.weights
    if options.bias:
        W[-1] = intercepts / options.bias
    return W


def _filled(chunk: Chunk, options: TrainOptions, labels: tuple[float, ...] | None, several: bool) -> SweptCache:
    """The rows in a cache, their dual variables 0; of two labels the second is the positive one."""
    size = CacheSize(chunk.n_rows, chunk.nnz, chunk.indices.dtype.name, None if chunk.data is None else chunk.data.dtype.name)
    u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
    square, target, sign = np.empty(chunk.n_rows), chunk.y, np.ones(chunk.n_rows)
    cache: SweptCache
    if several and labels is not None:
        target = class_numbers(chunk.y, labels, chunk.first_row)
        cache = ClassesCache(size, joint_loss(strategy_of(options))(len(labels)))
    else:
        positive = 1.0 if labels is None else labels[1]
        sign = sign if labels is None else np.where(chunk.y == positive, 1.0, -1.0)
        cache = LossCache(size, row_loss(options.chosen_loss, options.as_dict(), positive))
    squared_norms(chunk.indptr, chunk.indices, chunk.data, square)
    cache.hold(chunk, sign * u, square + options.bias**2, target)
    return cache


def _settle(cache: SweptCache, W: np.ndarray, options: TrainOptions, rng: np.random.Generator, enough: float) -> int:
    """Sweep over all rows until one sweep gains at most `enough`; W changes in place. Returns the number of sweeps."""
    flat, everything = W.reshape(-1), True
    cache.visit_movable()
    for sweep in range(1, options.sweeps + 1):
        before = float(flat @ flat)
        gain = float(np.sum(cache.sweep(int(rng.integers(2**63)), options.C, None, options.bias, W, first=False)))
        if gain - 0.5 * (float(flat @ flat) - before) <= enough:
            if everything:
                return sweep
            cache.visit_movable()  # shrunk rows may have to move after all
            everything = True
        else:
            everything = False
    return options.sweeps


def _model(
    W: np.ndarray, options: TrainOptions, labels: tuple[float, ...] | None, several: bool, rows: Dataset
) -> tuple[Linear, int]:
    """(the model of these weights, with an empty certificate; the number of problems that it solves)."""
    d, nothing = rows.manifest.statistics.n_features, Certificate(0.0, 0.0, 1.0, None, None, False, StopReason.EPOCHS)
    common: dict[str, Any] = {
        "weights": W[:d].copy(),
        "bias": float(options.bias),
        "C": float(options.C),
        "task": options.chosen_task,
        "parameters": options.as_dict(),
        "fingerprint": rows.manifest.fingerprint,
    }
    if several and labels is not None:
        intercepts, strategy = W[d] * options.bias if options.bias else np.zeros(len(labels)), strategy_of(options)
        problems = len(labels) if strategy == ONE_VS_REST else 1
        known: dict[str, Any] = {"labels": labels, "strategy": strategy, "certificates": (nothing,) * problems}
        return MulticlassModel(**common, **known, intercepts=intercepts), problems
    pair = None if labels is None else (labels[0], labels[1])
    intercept = float(W[d]) * options.bias if options.bias else 0.0
    return LinearModel(**common, intercept=intercept, labels=pair, certificate=nothing), 1


def _stated(model: Linear, problems: int, rows: Dataset) -> Linear:
    """The model with its objective on `rows` as certificate; the bound is 0 as losses are not negative."""
    weight, losses = 0.0, np.zeros(problems)
    for shard in range(len(rows.manifest.shards)):
        chunk = rows.read(shard)
        u, scores = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight, model.score_chunk(chunk)
        if isinstance(model, MulticlassModel):
            found = loss_of(model).values(model.classes_of(chunk.y, chunk.first_row), scores)
        else:
            found = risk_of(model).values(chunk.y, scores)[:, None]
        weight, losses = weight + float(u.sum()), losses + u[u > 0.0] @ found[u > 0.0]
    if weight == 0.0:
        raise BadInputError("no row has a weight above 0")
    W = model.augmented_weights
    squares = np.sum(W * W, axis=0) if problems > 1 else np.sum(W * W)[None]
    objectives = 0.5 * squares + model.C * losses
    certificates = [Certificate(float(F), 0.0, model.C * weight, None, None, False, StopReason.EPOCHS) for F in objectives]
    if isinstance(model, MulticlassModel):
        return replace(model, certificates=tuple(certificates))
    return replace(model, certificate=certificates[0])
