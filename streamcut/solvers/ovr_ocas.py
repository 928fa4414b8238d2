"""OCAS with predicted cuts (streamcut.solvers.ocas) as the method of one-vs-rest: every line for all active classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamcut.bundle.bundle import BundleSize
from streamcut.oracles.ovr import OvrOracle
from streamcut.solvers.ovr import OvrState, step_along_lines
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState
from streamcut.solvers.warm_start import Origin


def begin(oracle: OvrOracle, cuts: BundleSize, rule: StoppingRule, origins: Sequence[Origin] | None = None) -> OvrState:
    found = oracle.start_all(None if origins is None else [origin.w for origin in origins])
    state = OvrState.at_zero(oracle, cuts) if origins is None else OvrState.at(origins, oracle, cuts)
    for k, (own, cut) in enumerate(zip(state.classes, found, strict=True)):
        known = None if origins is None else origins[k].cut
        if known is not None:
            own.bundle.add(known.a, known.b, known.error)
        own.improve(cut, rule)
    return state


def iterate(classes: list[BundleState], oracle: OvrOracle, mu: float, rule: StoppingRule) -> None:
    k = np.array([c.k for c in classes])
    cuts = oracle.score_and_cut_all([c.w for c in classes], k + mu * (1.0 - k))
    step_along_lines(classes, oracle)
    for own, cut in zip(classes, cuts, strict=True):
        own.improve(cut, rule)
