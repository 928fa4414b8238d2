"""Parameters that several estimators have: of a certificate, cutting planes, bundle-dca, losses of single rows.

Parameters of all estimators are in `base.py`, those of a single one in its class.
"""

from __future__ import annotations

from typing import Any

from streamcut.estimators.base import StreamedEstimator
from streamcut.estimators.declared import USUAL, attribute, declared, parameter


@declared
class Certified(StreamedEstimator):
    """Training ends by a certificate: the gap to a lower bound on the optimum."""

    tol: float | None = parameter(default=USUAL.tol)
    tol_relative: float | None = parameter(default=USUAL.tol_relative)
    target: float | None = parameter(default=USUAL.target)
    primal_objective_: float = attribute("float", "The objective of the model.")
    lower_bound_: float = attribute("float", "Lower bound on the objective of any model.")
    gap_: float = attribute("float", "primal_objective_ − lower_bound_.")


@declared
class CuttingPlanes(Certified):
    """Linear models by cutting planes, in passes over the rows on threads or on a Dask cluster."""

    max_iter: int | None = parameter("Passes over the rows at most; None or −1: no limit.", default=None)
    max_cuts: int | None = parameter(default=USUAL.max_cuts)
    lanes: int | None = parameter(default=USUAL.lanes)
    scheduler: Any = parameter(default=USUAL.scheduler, kind="str or distributed.Client")


@declared
class BundleDca(CuttingPlanes):
    """Linear models that bundle-dca can train; they have an intercept."""

    fit_intercept: bool = parameter(
        "Whether there is an intercept. It is the weight of a constant feature, regularised as others are.", default=True
    )
    intercept_scaling: float = parameter(
        "Value of that constant feature: the larger, the less the intercept is regularised.", default=1.0
    )
    cut: str = parameter(default=USUAL.cut)
    random_state: Any = parameter(
        "Seed of the order in which bundle-dca takes rows or sequences; the other solvers use no randomness.",
        default=0,
        kind="int, RandomState or None",
    )


@declared
class RowLosses(BundleDca):
    """Losses of single rows, whose dual variables bundle-dca keeps in a cache."""

    intercept_penalty: bool = parameter(
        "Whether the intercept is regularised; False: it costs nothing, as in scikit-learn. Two classes and regression.",
        default=True,
        option=False,
    )
    l1: float | str = parameter(default=USUAL.l1)
    l1_only: float | str = parameter(default=USUAL.l1_only)
    warm_start: bool = parameter("`fit` starts from the present weights, say those of another C.", default=False, option=False)
    row_cache: str = parameter(default=USUAL.row_cache)
    sweeps: int = parameter("bundle-dca: epochs over cached rows after each pass, at most.", default=50)
