"""One class by OCAS (streamcut.bundle.one_class): the first pass computes the cut with all shares 1.

Problem   min F(w, b) = ½‖w‖² + C̄ (b + (1/νm) Σ max(0, 1 − ⟨w, x_i⟩ − b)), where that cut determines C̄.
Given, returns, stops   as streamcut.solvers.ocas.

After each line search b is set to the best one for the margins, an order statistic.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from streamcut.oracles.one_class import OneClassOracle
from streamcut.solvers import ocas
from streamcut.solvers.progress import Progress, Solution, StoppingRule
from streamcut.solvers.state import BundleState


def solve(
    oracle: OneClassOracle, progress: Progress, *, max_cuts: int, cut: Literal["predicted", "exact"] = "predicted"
) -> Solution:
    """As in streamcut.solvers.ocas."""
    return ocas.solve(oracle, progress, max_cuts=max_cuts, cut=cut, begin=_all_inside)


def _all_inside(oracle: OneClassOracle, max_cuts: int, rule: StoppingRule) -> BundleState:
    ones, none = oracle.begin()
    state = BundleState.at(np.zeros(oracle.dimension), oracle.loss_at_zero, oracle, max_cuts)
    state.level(oracle)
    state.add(ones)
    state.add(none)
    state.solve_master(rule)
    return state
