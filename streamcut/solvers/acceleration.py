"""Accelerated dual ascent: where the next pass starts, and how long its steps are.

For losses that are not smooth and many features (one block of rows), in one lane, under ½‖w‖².

Plain coordinate steps move the share of a row by (1 − z)/(C u ‖x‖²) at most: with a large C, or long rows, it takes tens of
passes until a share is where it belongs. Those of accelerated coordinate descent (APPROX, Fercoq & Richtárik 2015, algorithm 2)
become longer and longer, at a point y that moves less and less. In terms of weights, with a σ that falls, a pass is

    for every row: its share f to the maximum of the dual for σC along it, at y; y moves along, by σC u Δf a
    y ← y + (1 − e^−σ)(w(f) − y);   σ ← 2σ/(2 + σ)

where w(f) are the weights that all shares amount to. (The original moves y towards w(f) at every step, not once a pass.) Sweeps
over cached rows, a random sample of the free ones, go on with the steps of their pass. y is close to a mean of all w(f), and a
good primal point; the shares are a good dual point long before their own means are. Both enter the bundle as ever, so no bound
depends on any of this.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamcut.compiled import vectors
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.dual.ascent import DualOracle
from streamcut.oracles.dual.passes import Ascent
from streamcut.solvers.continuation import Continuation

_FIRST = 4.0  # σ of the first pass, in parts of the curvature of the dual along a row: steps move shares by about a quarter
_VISITS = 3  # steps for each row of a group while it is in cache, after the first as long as it is free


def stretched(ascent: Ascent, way: Continuation, oracle: DualOracle) -> Ascent:
    """The `ascent` of a plain pass with longer steps; after the first from the newest shares instead of the mixture of all."""
    bundle = way.state.bundle
    stretch, mixture = way.stretch, bundle.newest()
    if stretch == 0.0:
        stretch, mixture = min(1.0, _FIRST / oracle.curvature), ascent.mixture
    value = stretch * bundle.c_bar * bundle.offset(mixture) - 0.5 * vectors.dot(ascent.w, ascent.w)
    enough = stretch * ascent.enough
    return replace(ascent, mixture=mixture, stretch=stretch, enough=enough, value=value, visits=_VISITS)


def weights(ascended: Cut, oracle: DualOracle) -> np.ndarray | None:
    """w(f) (D) of the shares whose cut this is; None where passes are not accelerated."""
    return ascended.a * -oracle.c_bar if oracle.accelerated else None


def go_on(shares: np.ndarray, stretch: float, way: Continuation, oracle: DualOracle) -> None:
    """The next pass starts from y, after one with σ = `stretch` that ended with the weights of these `shares`."""
    y, state = oracle.reached, way.state
    assert y is not None
    y += -math.expm1(-stretch) * (shares - y)
    state.v = state.w = y
    way.stretch = 2.0 * stretch / (2.0 + stretch)
