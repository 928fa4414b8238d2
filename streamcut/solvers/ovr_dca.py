"""bundle-dca (streamcut.solvers.bundle_dca) as the method of one-vs-rest: every line of it for all active classes.

Without its way over smaller C: each class would be at a stage of its own.

Passes, processor seconds of one thread with the data in memory, to 1e-3·C̄ at C = 1 (scripts/bench_multiclass.py):

    data                    OCAS        no cache    all rows in the cache
    dna                     72, 0.2 s   34, 1.0 s    6, 0.1 s
    usps                    89, 1.4 s   50, 1.6 s   11, 2.8 s
    letter                  28, 0.6 s   10, 0.8 s    2, 0.7 s
    news20_bydate           23, 1.9 s    9, 1.7 s    3, 2.0 s
    sector, 105 classes     20, 4.8 s    6, 3.6 s    2, 5.0 s

So OCAS is the one to take for dense rows that are in memory anyway, and where 2 K max_cuts bytes a row are too many.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamcut.bundle.bundle import BundleSize
from streamcut.oracles.dual.ovr import OvrDualOracle
from streamcut.solvers.bundle_dca import ENOUGH
from streamcut.solvers.ovr import OvrState, step_along_lines
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState
from streamcut.solvers.warm_start import Origin


def begin(oracle: OvrDualOracle, cuts: BundleSize, rule: StoppingRule, origins: Sequence[Origin] | None = None) -> OvrState:
    A = len(oracle.active)
    zeros, none, slots = [np.zeros(oracle.features)] * A, np.zeros(cuts.first), np.repeat([[0], [1]], A, axis=1)
    # no gap is known yet: sweeps go on until one brings little next to the loss of a single row
    enough, kappa = np.full(A, ENOUGH * oracle.C), np.full(A, float(origins is not None))
    w = zeros if origins is None else [origin.w for origin in origins]
    start = None if origins is None else zeros  # rows hold no shares
    pairs = oracle.ascend_all(w, [none] * A, slots, kappa, enough, np.zeros(A), start=start, first=True)
    state = OvrState.at_zero(oracle, cuts) if origins is None else OvrState.at(origins, oracle, cuts)
    for own, (cut, dual) in zip(state.classes, pairs, strict=True):
        own.bundle.add(cut.a, cut.b, cut.error)
        own.improve(dual, rule)
    return state


def iterate(classes: list[BundleState], oracle: OvrDualOracle, mu: float, rule: StoppingRule) -> None:
    grown = [c.bundle.grow(2) for c in classes]
    if any(grown):
        oracle.widen(max(c.bundle.max_cuts for c in classes))
    made = [c.bundle.make_room(2, keep=2) for c in classes]
    oracle.follow_all([merges for merges, _ in made])
    k, slots = np.array([c.k for c in classes]), np.array([slots for _, slots in made]).T
    enough, value = np.array([(ENOUGH * (c.F_b - c.bound), c.value) for c in classes]).T
    mixtures = [c.bundle.mixture(oracle.cuts) for c in classes]
    start = None if oracle.penalty.threshold is None else [c.v for c in classes]
    pairs = oracle.ascend_all([c.w for c in classes], mixtures, slots, k + mu * (1.0 - k), enough, value, start=start)
    step_along_lines(classes, oracle)
    for own, (cut, dual) in zip(classes, pairs, strict=True):
        own.bundle.add(cut.a, cut.b, cut.error)
        own.improve(dual, rule)
