"""The starting point of a training that is given a model: its weights, and its cuts if they hold for this problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.io.manifest import Manifest
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.oracles.decomposable import Cut
from streamcut.problem import ONE_VS_REST, Problem
from streamcut.solvers.warm_start import Origin


def origins(options: TrainOptions, manifest: Manifest, problem: Problem, constant: float) -> tuple[Origin, ...]:
    """The origin for `problem`, or of one-vs-rest for that of each class; `constant` is the value of the constant feature.

    Features unknown to the model get weight 0, and several classes may be of another strategy. Raises UsageError for a model of
    a different kind, and what load_model raises.
    """
    path, model = _given(options), as_model(options.warm_start or "")
    if not isinstance(model, LinearModel) or not model.of_features or model.task != problem.task:
        kind = {"binary": "two classes", "regression": "numbers"}.get(problem.task, "several classes")
        raise UsageError(
            f"warm_start: {path} is a model of task {model.task} by {model.solver}; it takes a linear one for {kind}"
        )
    theirs, labels = model.labels or (), problem.labels or ()
    if problem.task == "binary" and theirs and theirs[1] != labels[1]:
        raise UsageError(
            f"warm_start: in {path} the positive label is {theirs[1]:g}, here it is {labels[1]:g}; see --positive-label"
        )
    if problem.task == "multiclass" and theirs != labels:
        odd = ", ".join(f"{label:g}" for label in sorted(set(labels) ^ set(theirs))[:10])
        raise UsageError(f"warm_start: {path} and the data do not have the same classes: {odd}; start without the model")
    W = _weights(model, options, manifest, constant)
    columns = [np.ascontiguousarray(column) for column in W.T] if problem.strategy == ONE_VS_REST else [W.reshape(-1)]
    return tuple(Origin(w, cut) for w, cut in zip(columns, _cuts(model, problem, manifest, len(columns)), strict=True))


def _given(options: TrainOptions) -> str:
    """The model, for messages."""
    return options.as_dict()["warm_start"]


def _weights(model: LinearModel, options: TrainOptions, manifest: Manifest, constant: float) -> np.ndarray:
    """The model's weights in this training's layout, (D, K). Raises UsageError for more features than the data has."""
    n_features = manifest.statistics.n_features
    if model.n_features > n_features:
        raise UsageError(
            f"warm_start: {_given(options)} has {model.n_features:,} features, but the data has {n_features:,}; "
            "convert the data with --n-features, or start without the model"
        )
    intercepts = np.atleast_1d(model.intercept)
    W = np.zeros((n_features + (options.bias != 0.0), len(intercepts)))
    W[: model.n_features] = model.weights.reshape(model.n_features, -1)
    if constant:
        W[-1] = intercepts / constant
    return W


def _cuts(model: LinearModel, problem: Problem, manifest: Manifest, count: int) -> list[Cut | None]:
    """The model's cuts of its mean loss where they are cuts of this problem, too; with λ, the witness kept is not a cut."""
    theirs = model.problem if problem.free else replace(model.problem, C=problem.C)  # with a free intercept they hold for one C
    same = theirs == replace(problem, l1=0.0, l1_only=False) and model.fingerprint == manifest.fingerprint
    return list(model.witnesses) if same and model.witnesses else [None] * count
