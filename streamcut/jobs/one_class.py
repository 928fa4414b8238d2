"""Rows of one class: the plane that separates all but νm of them from the origin, as far from it as possible."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamcut.bundle.one_class import without_offset
from streamcut.compiled import vectors
from streamcut.config import TrainOptions
from streamcut.execution.plan import Needs
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import objective
from streamcut.io.manifest import Manifest
from streamcut.jobs.binary import BinaryJob
from streamcut.jobs.global_risk import check_weights
from streamcut.jobs.linear import detail, linear_model
from streamcut.losses.hinge import Inside
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import Certificate, Cut, StopReason
from streamcut.models.linear import LinearModel
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.one_class import OneClassOracle
from streamcut.problem import FREE
from streamcut.solvers.progress import Solution

log = logging.getLogger(__name__)

NU = 0.5  # as in LIBSVM, LIBLINEAR and scikit-learn
LABELS = (-1.0, 1.0)  # outside and inside
_OF_SQUARES = 1.0 / 32.0  # of the largest ‖x‖²: the square of the constant feature
_VECTORS = 4  # of the length of w, besides those of OCAS: the cut where all shares are 1, twice, and the answer


@dataclass(frozen=True)
class OneClassJob(BinaryJob):
    """Task "one-class" by OCAS (streamcut.bundle.one_class). Labels of the rows are ignored."""

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        check_weights(manifest, "task one-class")
        nu = ("nu", _nu(options))
        problem = options.problem(task="one-class", labels=LABELS, intercept=FREE, bias=1.0, options=(nu,))
        return cls.of(options, manifest, PointwiseRisk(Inside()), problem)

    def needs(self, manifest: Manifest) -> Needs:
        needs = super().needs(manifest)
        return replace(needs, more=(*needs.more, ("cuts of all shares", _VECTORS * 8 * needs.dimension)))

    def _cutting(self, runner: Runner, bias: float) -> LinearOracle:
        C, free = self.options.C, self.options.free
        return OneClassOracle(runner, self.risk, nu=_nu(self.options), C=C, bias=bias, free=free, keep_margins=True)

    def _constant(self, manifest: Manifest) -> float:
        # a power of 2, so that dividing by it does not round
        square = _OF_SQUARES * manifest.statistics.max_squared_norm
        return 2.0 ** round(0.5 * math.log2(square)) if square > 0.0 else 1.0

    def _model(self, solution: Solution, C: float, *, oracle: Any, manifest: Manifest) -> LinearModel:
        nu, penalty = _nu(self.options), oracle.penalty
        w = penalty.factor(solution.w, solution.primal) * solution.w
        w[-1] = 0.0
        _warn_of_none(w, nu)
        rho, loss, raised = oracle.plane(w)
        C = penalty.c_bar / manifest.statistics.n_rows
        primal = objective(vectors.dot(w, w), len(w), C, loss)
        c_bar = C * manifest.statistics.n_rows
        a, b, error = without_offset(solution.proof.a, solution.proof.b, solution.proof.error, nu, c_bar)
        proof = Cut(a, b, error)
        options, reason = self.options, solution.reason
        proved = Certificate(
            primal, proof.bound(c_bar), c_bar, options.tol, options.tol_relative, reason is StopReason.CONVERGED, reason,
            raised=C * raised, detail=detail(reason, oracle),
        )  # fmt: skip
        return linear_model(
            options, replace(self.problem, C=float(C)), manifest, np.append(w[:-1], -rho), solution.history, constant=1.0,
            fixed={"nu": nu}, certificates=(proved,), proofs=(proof,),
        )  # fmt: skip


def _nu(options: TrainOptions) -> float:
    return NU if options.nu is None else options.nu


def _warn_of_none(w: np.ndarray, nu: float) -> None:
    if not w.any():
        log.warning(
            "the origin lies amid the rows, so no plane separates all but %g of them from it and all weights are 0: one class "
            "needs rows on one side of the origin (not centred ones), or a smaller nu",
            nu,
        )
