"""The kernel chosen by the options."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed
from streamcut.execution.occurring import OccurringDataset
from streamcut.foundation.rounding import EPSILON
from streamcut.io.features import feature_statistics
from streamcut.io.manifest import Statistics
from streamcut.kernels.centre import centre_of
from streamcut.kernels.kernel import RBF, Kernel
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


def check_norms(statistics: Statistics) -> None:
    """Raise BadInputError when a row's norm is so large that its kernel values are not finite."""
    if not math.isfinite(statistics.max_squared_norm):
        raise BadInputError("the squared norm of a row is not finite; scale the features")
