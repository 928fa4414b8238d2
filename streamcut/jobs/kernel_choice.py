"""What jobs of kernels share: the kernel that the options choose, and held-out rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.occurring import OccurringDataset
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import EPSILON
from streamcut.io.dataset import Dataset
from streamcut.io.features import feature_statistics
from streamcut.io.manifest import Statistics
from streamcut.io.opening import open_dataset
from streamcut.jobs.linear import two_labels
from streamcut.jobs.several_classes import several_labels
from streamcut.kernels.centre import centre_of
from streamcut.kernels.kernel import RBF, Kernel
from streamcut.measures.regression import RegressionMeasures
from streamcut.models.kernel import KernelModel
from streamcut.oracles.variance import automatic_gamma

_FARTHEST = 100.0


def chosen_kernel(options: TrainOptions, feed: Feed) -> Kernel:
    """The kernel of the options; γ "auto" takes a pass over the data. Raises BadInputError when the data has no spread."""
    if options.kernel == "linear":
        return Kernel("linear")
    if isinstance(options.gamma, str):
        inner = Feed(feed.data.inner) if isinstance(feed.data, OccurringDataset) else feed  # zeros count
        gamma = automatic_gamma(inner)
    else:
        gamma = float(options.gamma)
    return Kernel(options.kernel, gamma, options.degree, options.coef0)


def centred_kernel(kernel: Kernel, feed: Feed) -> Kernel:
    """The kernel as computed for rows of these data: a distance kernel is centred near the rows, however far from 0 they are.

    Raises BadInputError for other kernels if rows are so far from 0 that values hardly differ: kernel columns are float32.
    """
    found, statistics = feature_statistics(feed.data), feed.data.manifest.statistics
    centre = centre_of(statistics.n_rows, found.index, found.total, found.squares)
    if kernel.code == RBF:
        return replace(kernel, centre=centre)
    mean = found.total / statistics.n_rows
    spread = float(np.maximum(found.squares / statistics.n_rows - mean * mean, EPSILON * mean * mean).sum())
    if centre is not None and float(centre.value @ centre.value) > _FARTHEST**2 * spread:
        worst = int(np.argmax(np.abs(centre.value)))
        raise BadInputError(
            f"kernel: rows are over {_FARTHEST:g} times as far from the origin as from one another, most of it in feature "
            f"{centre.index[worst]} (0-based), mean {centre.value[worst]:g}; kernel {kernel.name} hardly distinguishes them; "
            "subtract the means of such features, or take kernel rbf"
        )
    return kernel


def labels_of(options: TrainOptions, statistics: Statistics) -> tuple[tuple[float, ...], bool]:
    """(negative, positive) of two classes or the labels of several; whether the negative label stands for several."""
    if options.task in ("auto", "binary"):
        negative, positive, rest = two_labels(statistics, options.positive_label)
        return (negative, positive), rest
    return several_labels(statistics), False


def check_norms(statistics: Statistics) -> None:
    """Raise BadInputError when a row's norm is so large that its kernel values are not finite."""
    if not math.isfinite(statistics.max_squared_norm):
        raise BadInputError("the squared norm of a row is not finite; scale the features")


def validation_rows(options: TrainOptions, statistics: Statistics) -> Dataset | None:
    """The held-out rows of the options, if any. Raises BadInputError for features that the training data lacks."""
    if options.validation is None:
        return None
    data = open_dataset(options.validation)
    found = data.manifest.statistics.n_features
    if found > statistics.n_features:
        raise BadInputError(f"validation: {options.validation} has {found:,} features, the data only {statistics.n_features:,}")
    return data


def measured(model: KernelModel, data: Dataset) -> float | None:
    """On these rows: R² of a regression, else the share that the model labels as they are labelled."""
    feed, rows = Feed(data), data.manifest.statistics.n_rows
    fit, right = RegressionMeasures(model) if model.task == "regression" else None, 0
    for block in feed.blocks(0, rows, feed.buffers(), Traffic()):
        scores = model.score_chunk(block)
        if fit is not None:
            fit.add(block, scores)
        elif scores.ndim == 1:
            right += int(np.count_nonzero((scores > 0.0) == model.is_positive(block.y, block.first_row)))
        else:
            right += int(np.count_nonzero(model.labels_of(scores) == block.y))
    return right / rows if fit is None else fit.measures()["r2"]


def csr_rows(rows: Chunk, n_features: int) -> sp.csr_array:
    """The rows of a chunk of their own as a float64 matrix."""
    values = np.ones(rows.nnz) if rows.data is None else rows.data.astype(np.float64)
    return sp.csr_array((values, rows.indices, rows.indptr), shape=(rows.n_rows, n_features))
