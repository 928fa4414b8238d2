"""Rows of one class: the plane that parts all but νm of them from the origin, as far from it as it goes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.execution.lanes import plan_lanes
from streamcut.io.manifest import Manifest
from streamcut.jobs.global_risk import GlobalJob, check_weights
from streamcut.jobs.linear import bundle_size, threads_wanted
from streamcut.losses.one_class import OneClass
from streamcut.models.linear import LinearModel
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.oracles.one_class import OneClassOracle
from streamcut.solvers.progress import Solution

log = logging.getLogger(__name__)

NU = 0.5  # as in LIBSVM, LIBLINEAR and scikit-learn
LABELS = (-1.0, 1.0)  # outside and inside


@dataclass(frozen=True)
class OneClassJob(GlobalJob):
    """Task "one-class". Labels of the rows are not looked at."""

    oracle_type: ClassVar[type[GlobalOracle]] = OneClassOracle

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics = manifest.statistics
        check_weights(manifest, "task one-class")
        risk = OneClass(NU if options.nu is None else options.nu)
        max_cuts = options.max_cuts or bundle_size(statistics.n_features)
        return cls(options, risk, 0.0, LABELS, False, max_cuts, plan_lanes(statistics, options.lanes), threads_wanted(options))

    def warm_up(self, manifest: Manifest) -> None:
        self._warm_up(manifest, np.ones(8))

    def _model(self, solution: Solution, C: float, *, oracle: Any, manifest: Manifest) -> LinearModel:
        if not solution.w.any():
            log.warning(
                "the origin lies amid the rows, so no plane parts all but %g of them from it and all weights are 0: one class "
                "needs rows to one side of the origin (not centred ones), or a smaller nu",
                self.risk.nu,  # type: ignore[union-attr]
            )
        model = super()._model(solution, oracle.C, oracle=oracle, manifest=manifest)
        parameters = {**model.parameters, "nu": self.risk.nu}  # type: ignore[union-attr]
        return replace(model, intercept=-oracle.offset(solution.w, self.risk), bias=1.0, parameters=parameters)
