"""CPA (streamcut.solvers.cpa) as the method of one-vs-rest: every line for all active classes."""

from __future__ import annotations

import numpy as np

from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers import ovr_ocas
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState

begin = ovr_ocas.begin


def iterate(classes: list[BundleState], oracle: OvrOracle, mu: float, rule: StoppingRule) -> None:
    whole = np.ones(len(classes))  # rows go along to each w: there is no line search that would need them at the best point
    w = [c.w for c in classes]
    cuts = oracle.score_and_cut_all(w, whole)
    losses = oracle.step_all(whole, w)
    for own, cut, loss, raised in zip(classes, cuts, losses, oracle.raises, strict=True):
        F = oracle.penalty.objective(own.w, oracle.C, loss)
        own.k = 1.0
        own.take(own.w, loss, F, oracle.C * raised)
        own.improve(cut, rule)
