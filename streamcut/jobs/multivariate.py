"""Two classes, with a loss of the whole labelling: F₁, precision/recall break-even, precision or recall at k, errors.

C multiplies the loss times the number of rows, C̄ = C·m: for "error" it is the C of the hinge loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.lanes import plan_lanes
from streamcut.io.manifest import Manifest
from streamcut.jobs.global_risk import GlobalJob, check_weights
from streamcut.jobs.linear import bundle_size, threads_wanted, two_labels
from streamcut.losses.multivariate import Multivariate, rows_of


class MultivariateJob(GlobalJob):
    """Task "binary" with a loss of the whole labelling."""

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        check_weights(manifest, f"loss {options.chosen_loss}")
        if options.positive_weight != 1.0:
            raise UsageError(f"positive_weight: loss {options.chosen_loss} counts rows and has no weights")
        negative, positive, rest = two_labels(statistics, options.positive_label)
        risk = Multivariate(options.chosen_loss, positive, 0 if options.k is None else rows_of(options.k, statistics.n_rows))
        max_cuts = options.max_cuts or bundle_size(statistics.n_features + (options.bias != 0.0))
        lanes = plan_lanes(statistics, options.lanes)
        bias = float(options.bias)
        return cls(options, risk, bias, (negative, positive), rest, max_cuts, lanes, threads_wanted(options))

    def warm_up(self, manifest: Manifest) -> None:
        risk: Any = self.risk
        y = np.where(np.arange(8) % 3, risk.positive, risk.positive - 1.0)
        replace(self, risk=replace(risk, k=min(risk.k, 8)))._warm_up(manifest, y)
