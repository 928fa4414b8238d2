"""Models of every kind that has a certificate, and lies in their records: what `verify` has to refute.

`KINDS` says how each is trained, `trained` does it, `changes` gives the same model with one thing changed after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from laws.problems import ROWS

import streamcut
from streamcut import train
from streamcut.io.memory import MemoryDataset
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.kernel import KernelModel
from streamcut.models.model import Model

_TWO, _NUMBERS, _CLASSES = {"task": "binary", "bias": 1.0}, {"task": "regression"}, {"task": "multiclass"}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {  # name: (rows, options of training)
    "hinge": ("signs", _TWO),
    "hinge weights": ("weighted", {**_TWO, "positive_weight": 2.0}),
    "squared": ("numbers", {**_NUMBERS, "loss": "squared"}),
    "huber": ("numbers", {**_NUMBERS, "loss": "huber"}),
    "poisson": ("counts", {**_NUMBERS, "loss": "poisson"}),
    "poisson l1": ("counts", {**_NUMBERS, "loss": "poisson", "l1": 1.0, "solver": "bundle-dca"}),
    "softmax": ("classes", {**_CLASSES, "loss": "softmax"}),
    "one-vs-rest l1": ("classes", {**_CLASSES, "strategy": "one-vs-rest", "l1": 0.5}),
    "ranking": ("queries", {"task": "ranking"}),
    "f1": ("signs", {**_TWO, "loss": "f1"}),
    "one-class": ("ones", {"task": "one-class", "nu": 0.3}),
    "smo": ("signs", {**_TWO, "kernel": "rbf", "gamma": 0.4, "solver": "smo"}),
}


def rows(kind: str) -> dict[str, Any]:
    """X (n, d), y, and what else such rows of the laws have: keyword arguments of MemoryDataset."""
    X, y, qid, weight = ROWS[kind]
    return {"X": X.toarray(), "y": y, **{k: v for k, v in (("qid", qid), ("weight", weight)) if v is not None}}


def dataset(given: dict[str, Any]) -> MemoryDataset:
    return streamcut.rows(given["X"], given["y"], shard_nnz=200, **{k: v for k, v in given.items() if k not in ("X", "y")})


def trained(name: str, **more: Any) -> tuple[Model, dict[str, Any]]:
    """(the model of this kind, the rows that it was trained on)."""
    kind, options = KINDS[name]
    given = rows(kind)
    return train(dataset(given), scheduler="sync", **{**options, **more}), given


def recorded(model: Any, **changed: Any) -> Any:
    """The model with every certificate changed; what is a function gets the certificate."""

    def other(c: Certificate) -> Certificate:
        return replace(c, **{name: value(c) if callable(value) else value for name, value in changed.items()})

    return replace(model, certificates=tuple(map(other, model.certificates)))


def changes(model: Any, given: dict[str, Any]) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """(what is changed, the model, the rows): one change after the other."""
    yield "weights", _moved(model), given
    yield "C", replace(model, problem=replace(model.problem, C=model.C * 1.001)), given
    claimed: dict[str, Any] = {"converged": True, "stop_reason": StopReason.CONVERGED}
    strict: dict[str, Any] = {"tol": 1e-12, "tol_relative": None}
    asked = recorded(model, **strict, **claimed)
    yield "converged", replace(asked, parameters={**asked.parameters, **strict}), given
    yield "converged, not why", recorded(model, converged=lambda c: not c.converged), given
    yield "c_bar", recorded(model, c_bar=lambda c: 10.0 * c.c_bar), given
    yield "unit", recorded(model, unit=lambda c: 10.0 * c.unit), given
    yield "intercept", replace(model, intercept=model.intercept + 0.5), given
    yield "raised", recorded(model, raised=lambda c: c.primal), given
    yield "primal × 2", recorded(model, primal=lambda c: 2.0 * c.primal), given
    yield "raised, primal × 2", recorded(model, primal=lambda c: 2.0 * c.primal, raised=lambda c: c.primal), given
    for sign in (1.0, -1.0):
        yield f"primal {sign:+.0e}"[:8] + "1e-6", recorded(model, primal=lambda c, s=sign: c.primal * (1.0 + s * 1e-6)), given
    if labels := model.labels:
        yield "labels", replace(model, problem=replace(model.problem, labels=tuple(reversed(labels)))), given
    X, y = given["X"].copy(), given["y"].copy()
    X[0, 0] += 0.25
    yield "a value of the data", model, {**given, "X": X}
    y[3] = next((label for label in np.unique(y) if label != y[3]), y[3] + 1.0)
    yield "a label of the data", model, {**given, "y": y}


def _moved(model: Any) -> Any:
    if isinstance(model, KernelModel):
        changed = model.coefficients.copy()
        changed[np.unravel_index(np.argmax(np.abs(changed)), changed.shape)] *= 1.01
        return replace(model, coefficients=changed)
    changed = model.weights.copy()
    changed[np.unravel_index(np.argmax(np.abs(changed)), changed.shape)] *= 1.01
    return replace(model, weights=changed)
