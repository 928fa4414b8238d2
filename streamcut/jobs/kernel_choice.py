"""The kernel that the options ask for."""

from __future__ import annotations

import math

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed
from streamcut.io.manifest import Statistics
from streamcut.kernels.kernel import Kernel
from streamcut.oracles.variance import automatic_gamma


def chosen_kernel(options: TrainOptions, feed: Feed) -> Kernel:
    """The kernel of the options; γ "auto" takes a pass over the data. Raises BadInputError when that has no spread."""
    if options.kernel == "linear":
        return Kernel("linear")
    gamma = automatic_gamma(feed) if isinstance(options.gamma, str) else float(options.gamma)
    return Kernel(options.kernel, gamma, options.degree, options.coef0)


def check_norms(statistics: Statistics) -> None:
    """Raise BadInputError when a row is so long that kernels of it are not numbers."""
    if not math.isfinite(statistics.max_squared_norm):
        raise BadInputError("the squared norm of a row is not finite; scale the features")
