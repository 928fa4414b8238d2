"""What the jobs of linear models of several classes share: labels, and making the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.fields import by_name
from streamcut.io.manifest import Manifest, Statistics
from streamcut.jobs.origins import strategy_of
from streamcut.models.certificate import Certificate, Witness
from streamcut.models.linear import LinearModel
from streamcut.solvers.progress import Iteration


def several_labels(statistics: Statistics) -> tuple[float, ...]:
    """The labels, increasing. Raises BadInputError when there are fewer than two, or too many to be classes."""
    found = statistics.labels
    if found is None:
        raise BadInputError("the data has more than 4096 different labels, too many for classes; choose another --task")
    if len(found) == 1:
        raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(found)):g}; training needs two classes")
    return tuple(sorted(found))


def classes_apart(statistics: Statistics) -> tuple[float, ...]:
    """The labels of one-vs-rest, increasing. Raises BadInputError as several_labels, UsageError when there are two."""
    labels = several_labels(statistics)
    if len(labels) == 2:
        raise UsageError("strategy: with two classes, one-vs-rest is task binary; use that")
    return labels


@dataclass(frozen=True, slots=True)
class Proved:
    """The result of training: weights W (D, K), and for the joint problem or each class the certificate and its witness.

    `witnesses` are removed when the model is made, so that none is in memory twice; `constant` is the value of the bias
    feature.
    """

    W: np.ndarray
    certificates: tuple[Certificate, ...]
    witnesses: list[Witness]
    history: list[Iteration]
    constant: float


def multiclass_model(
    found: Proved, options: TrainOptions, labels: tuple[float, ...], manifest: Manifest, *, C: float, l1: float, **fixed: Any
) -> LinearModel:
    """The model for this C and λ; `fixed` are parameters decided by the run."""
    W, witnesses = found.W, list[Witness]()
    slopes = (
        None if len(found.witnesses) == 1 else np.empty((len(found.witnesses), len(found.witnesses[0].a)))
    )  # a file stores them in one array
    for certificate in found.certificates:
        witness = found.witnesses.pop(0).reduced(certificate.c_bar, l1)
        if slopes is not None:
            own = slopes[len(witnesses)]
            own[:] = witness.a
            witness = replace(witness, a=own)
        witnesses.append(witness)
    d = manifest.statistics.n_features
    return LinearModel(
        weights=W[:d],
        intercept=W[d] * found.constant if options.bias else np.zeros(len(labels)),
        bias=float(options.bias),
        labels=labels,
        C=float(C),
        strategy=strategy_of(options),
        certificates=found.certificates,
        witnesses=tuple(witnesses),
        l1=l1,
        task="multiclass",
        solver=options.chosen_solver,
        history=[by_name(iteration) for iteration in found.history],
        parameters={**options.as_dict(), "C": float(C), "l1": l1, **fixed},
        fingerprint=manifest.fingerprint,
    )
