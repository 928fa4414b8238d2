"""Warm start: a bundle method that starts from the weights of a model instead of zero.

Given     weights, and for the same data and risk a cutting plane from the end of training (its proof), for any C.
Returns   the state of a solver after one pass: w_b = the weights, the cut there in the bundle.

A cutting plane bounds the mean risk, which does not depend on C: the given one is a bound at once. ocas and cpa also add it to
the bundle, dual ascent (streamcut.solvers.columns) mixes it with its own. Rows do not remember their shares in it, and sweeps
that start from guesses (1 inside the margin, 0 outside) took up to three times the passes.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

import numpy as np

from streamcut.compiled import vectors
from streamcut.errors import UsageError
from streamcut.foundation.rounding import plane_doubt
from streamcut.models.certificate import Cut
from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The starting point: weights `w` (D,), and a cut R(w) ≥ ⟨a, w⟩ + b of the mean risk, if there is one."""

    w: np.ndarray
    cut: Cut | None = None

    def digest(self) -> str:
        """SHA-256 of the contents: equal for runs with the same starting point."""
        digest = hashlib.sha256(self.w.tobytes())
        if self.cut is not None:
            digest.update(self.cut.a.tobytes() + struct.pack("<d", self.cut.b))
        return digest.hexdigest()

    def state(self, oracle: DecomposableOracle, max_cuts: int, loss: float) -> BundleState:
        """The state with w_b here, given the loss, and the bound from the cut; the bundle is empty.

        Raises UsageError for a cut that is not valid here.
        """
        w = self.w
        state = BundleState.at(w.copy(), loss, oracle, max_cuts)
        if self.cut is not None:
            a, b, error = self.cut.a, self.cut.b, self.cut.error
            squares = vectors.dot(a, a), vectors.dot(w, w)
            says = vectors.dot(a, w) + b - plane_doubt(*squares, b, error, len(w))
            # with a free intercept the cut is valid on its interval
            if not oracle.penalty.free and says > loss / oracle.total_weight:
                raise UsageError("warm_start: the model's cutting plane does not hold on this data; start without the model")
            proof = Cut(a, b, error)
            state.bound = max(0.0, oracle.penalty.bound(oracle.c_bar, a, b, error)[0])
            if state.bound > 0.0:
                state.proof = proof
        return state


def started(origin: Origin, oracle: DecomposableOracle, max_cuts: int, rule: StoppingRule, *, margins: bool) -> BundleState:
    """The state of ocas (which keeps `margins`) or cpa at `origin`, after one pass."""
    cut, loss = oracle.start(origin.w)
    state = origin.state(oracle, max_cuts, loss)
    if margins:
        oracle.step(1.0, state.w_b)
    if origin.cut is not None and not oracle.penalty.free:
        state.bundle.add(origin.cut.a, origin.cut.b, origin.cut.error)
    state.improve(cut, rule)
    return state
