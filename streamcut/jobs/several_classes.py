"""What the jobs of linear models of several classes share: labels, and making the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import Manifest, Statistics
from streamcut.jobs.linear import linear_model
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


def multiclass_model(
    options: TrainOptions, manifest: Manifest, W: np.ndarray, history: Sequence[Iteration], labels: tuple[float, ...],
    proved: Sequence[tuple[Certificate, Witness]], *, C: float, l1: float, constant: float, **fixed: Any,
) -> LinearModel:  # fmt: skip
    """The model with weights W (D, K), `proved` of the joint problem or of each class; see `linear_model`."""
    return linear_model(
        options, manifest, W, history, C=C, constant=constant, fixed={"l1": l1, **fixed}, l1=l1, task="multiclass",
        labels=labels, strategy=strategy_of(options), certificates=tuple(certificate for certificate, _ in proved),
        witnesses=tuple(witness.reduced(certificate.c_bar, l1) for certificate, witness in proved),
    )  # fmt: skip
