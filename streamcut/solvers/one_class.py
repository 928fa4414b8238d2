"""One class by bundle-dca (streamcut.bundle.one_class): the first pass computes the cut with all shares 1.

Problem   min F(w, b) = ½‖w‖² + C̄ (b + (1/νm) Σ max(0, 1 − ⟨w, x_i⟩ − b)), where that cut determines C̄.
Given, returns, stops   as streamcut.solvers.bundle_dca.

After each line search b is set to the best one for the margins, an order statistic.
"""

from __future__ import annotations

import numpy as np

from streamcut.oracles.dual.one_class import OneClassDual
from streamcut.solvers import bundle_dca
from streamcut.solvers.progress import Progress, Solution, StoppingRule
from streamcut.solvers.state import BundleState


def solve(oracle: OneClassDual, progress: Progress, *, max_cuts: int) -> Solution:
    """As in streamcut.solvers.bundle_dca."""
    return bundle_dca.solve(oracle, progress, max_cuts=max_cuts, begin=_all_inside)


def _all_inside(oracle: OneClassDual, max_cuts: int, rule: StoppingRule) -> BundleState:
    ones, none = oracle.begin(max_cuts)
    state = BundleState.at(np.zeros(oracle.dimension), oracle.loss_at_zero, oracle, max_cuts)
    state.level(oracle)
    state.add(ones)
    state.add(ones)  # the pass wrote its shares twice
    state.add(none)
    state.solve_master(rule)
    return state
