"""Joins kernel models, each of one class against the rest, into one model with a score per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from streamcut.models.kernel import KernelModel


def joined(models: Sequence[KernelModel], labels: tuple[float, ...]) -> KernelModel:
    """Model k of `models`, all with the same kernel, scores `labels[k]`; a row that several models keep is stored once.

    Each certificate is about its own problem, so the joined model has none. Its stop reason is that of
    the first class that did not converge, and `history` is the longest.
    """
    import scipy.sparse as sp

    support = sp.vstack([model.support for model in models], format="csr")
    places: dict[bytes, int] = {}
    bounds = support.indptr
    first: list[int] = []
    where = np.empty(support.shape[0], np.int64)
    for row in range(support.shape[0]):
        inside = slice(bounds[row], bounds[row + 1])
        key = support.indices[inside].tobytes() + b"|" + support.data[inside].tobytes()
        where[row] = places.setdefault(key, len(places))
        if where[row] == len(first):
            first.append(row)
    coefficients = np.zeros((len(first), len(models)))
    start = 0
    for k, model in enumerate(models):
        np.add.at(coefficients[:, k], where[start : start + model.n_support], model.coefficients)
        start += model.n_support
    reasons = [model.stop_reason for model in models if not model.converged]
    return replace(
        max(models, key=lambda model: len(model.history)),
        support=sp.csr_array(support[first]),
        coefficients=coefficients,
        labels=labels,
        intercept=np.array([model.intercept for model in models], dtype=np.float64),
        rest=False,
        task="multiclass",
        reason=reasons[0] if reasons else models[0].stop_reason,
        certificate=None,
        point=None,
        facts={name: sum(model.facts[name] for model in models) for name in ("evaluations", "steps") if name in models[0].facts},
    )
