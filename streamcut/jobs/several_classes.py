"""What the jobs of linear models of several classes share: labels, and making the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import Manifest, Statistics
from streamcut.jobs.linear import linear_model
from streamcut.models.certificate import Certificate, Witness
from streamcut.models.linear import LinearModel
from streamcut.problem import Problem
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
    options: TrainOptions, problem: Problem, manifest: Manifest, W: np.ndarray, history: Sequence[Iteration],
    proved: Sequence[tuple[Certificate, Witness]], constant: float,
) -> LinearModel:  # fmt: skip
    """The model with weights W (D, K), `proved` of the joint problem or of each class; see `linear_model`."""
    return linear_model(
        options, problem, manifest, W, history, constant=constant, certificates=tuple(certificate for certificate, _ in proved),
        witnesses=tuple(witness.reduced(certificate.c_bar, problem.l1) for certificate, witness in proved),
    )  # fmt: skip
