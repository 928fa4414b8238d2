"""Continuation in C: when the bound is what is late, go on with a smaller C and come back decade by decade.

With a large C the weights of few features are nearly right after a few passes, while the shares of the rows, and with them the
bound, take tens of passes: every row pulls w about. With a small C few passes do, and each decade after it starts with shares,
cuts and a point that are nearly right. Nothing is lost on the way: a cut bounds the mean risk, which knows nothing of C, so
every bundle bounds F for the C that was asked for, and every w_b has its F there. The λ of an elastic net goes down and up with
C: a smaller C alone would soon leave w = 0.

a9a, C = 10: 28 passes instead of 88. Where the smaller C is another problem (text with as many features as rows) F itself is
late, and nothing is done; nor where the gap falls by a quarter in each pass (flight delays). Accelerated passes stay at C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.bundle.penalty import L2
from streamcut.fields import expect_like
from streamcut.models.certificate import Witness
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.dual.ascent import DualAscent
from streamcut.rounding import CutError
from streamcut.solvers.progress import StoppingRule
from streamcut.solvers.state import BundleState, qp_tolerance, read_to

_PASSES = 4  # before it is known what is late
_LATE = 0.05  # of C̄, as all of these in the unit of mean losses: a smaller gap closes soon enough by itself
_NEAR = 0.1  # of C̄: the smaller C is the largest, by decades, that begins with no larger a gap
_STILL = 0.16  # of the gap: when F falls by less in two passes (one may be a null step), the gap is that of the bound
_SLOW = 0.75  # of the gap before: when a pass leaves more of it, passes at C itself take too long
_DECADES = 2
_CLOSE = 1e-3  # of C̄: the gap at which the next decade begins, at the least
_LONG = 60  # passes at one C after which the next one begins anyway


@dataclass(slots=True)
class Continuation:
    """`state` works for `stage` on the way to `C`; what is known of F for C itself and its `penalty`: the best point `w`, F
    there, bound, witness.

    raised  what was put onto F for its rounding
    stayed  passes at this stage; fell: by how much F did in the last one; gap: after it; late: F hardly fell in it
    tried   C was left for a smaller one already, which it is not where passes are accelerated
    stretch  that of the next accelerated pass; 0: it will be the first of its kind (streamcut.solvers.acceleration)
    """

    state: BundleState
    C: float
    penalty: L2
    stage: float
    w: np.ndarray
    F: float
    bound: float
    witness: Witness
    raised: float = 0.0
    stayed: int = 0
    fell: float = 0.0
    gap: float = 0.0
    late: bool = False
    tried: bool = False
    stretch: float = 0.0

    @classmethod
    def at(cls, state: BundleState, C: float) -> Continuation:
        """Begin at C itself."""
        return cls(state, C, state.penalty, C, state.w_b, state.F_b, state.bound, state.witness, state.raised)

    def advance(self, fell: float, oracle: DualAscent, rule: StoppingRule) -> None:
        """After an iteration, in which F fell by `fell`: what it brought for C, and with which C to go on."""
        s = self.state
        self.stayed += 1
        gap = s.F_b - s.bound
        self.late = bool(fell < 0.5 * _STILL * gap)
        still, slow = self.fell + fell < _STILL * gap, gap > _SLOW * self.gap
        self.fell, self.gap = fell, gap
        if self.stage == self.C:
            if s.best.F <= self.F or self.w is s.w_b:  # w moves with w_b, even where rounding lets F rise
                self.w, self.F, self.raised = s.best.w, s.best.F, s.best.raised
            if s.bound > self.bound:
                self.bound, self.witness = s.bound, s.witness
            far = gap > _LATE * oracle.c_bar * oracle.unit
            if not oracle.accelerated and not self.tried and self.stayed >= _PASSES and far and still and slow:
                self.tried = True
                self.w = self._copy()
                self._move(self._smaller(oracle, rule), oracle, rule)
            return
        self._note(oracle, rule)
        close = max(rule.allowed_gap(s.F_b, oracle.c_bar), _CLOSE * oracle.c_bar * oracle.unit)
        if gap <= close or self.stayed >= _LONG:
            self._move(min(10.0 * self.stage, self.C), oracle, rule)
            if self.stage == self.C:
                self._arrive(oracle, rule)

    def move_to(self, C: float, penalty: L2, oracle: DualAscent, rule: StoppingRule) -> None:
        """Go on with another C and penalty, from whatever stage."""
        s = self.state
        s.move_to(C, penalty, oracle, rule)
        self.__init__(s, C, penalty, C, s.w_b, s.F_b, s.bound, s.witness, s.raised)  # type: ignore[misc]

    def answer(self, oracle: DualAscent, rule: StoppingRule) -> tuple[np.ndarray, float, float]:
        """(w, F there, by what that was raised) once all has converged."""
        found = self.state.fewest_weights(oracle, rule) if self.stage == self.C else None
        return found or (self.w, self.F, self.raised)

    def _move(self, C: float, oracle: DualAscent, rule: StoppingRule) -> None:
        self.state.move_to(C, self._penalty_at(C), oracle, rule)
        self.stage, self.stayed, self.stretch = C, 0, 0.0

    def _penalty_at(self, stage: float) -> L2:
        return self.penalty if stage == self.C else self.penalty.scaled(stage / self.C)

    def _arrive(self, oracle: DualAscent, rule: StoppingRule) -> None:
        """Back at C: the point of the last stage goes on, the better bound of all stages stays."""
        s = self.state
        if s.bound < self.bound:
            s.bound, s.witness = self.bound, self.witness
        self._note(oracle, rule)

    def _copy(self) -> np.ndarray:
        """Of w_b, which moves on."""
        w = self.state.shelf.zeros(len(self.state.w_b))
        w[:] = self.state.w_b
        self.state.shelf.release()
        return w

    def _note(self, oracle: DualAscent, rule: StoppingRule) -> None:
        """What the present point and bundle say of C."""
        s, c_bar = self.state, self.C * oracle.total_weight
        F = self.penalty.objective(s.w_b, self.C, s.loss)
        s.shelf.release()
        if self.F > F:
            self.w, self.F, self.raised = self._copy(), F, s.raised * c_bar / s.bundle.c_bar
        master = s.bundle.solved_for(c_bar, self.penalty, qp_tolerance(rule, self.F, c_bar))
        if master.lower_bound > self.bound:
            self.bound, self.witness = master.lower_bound, Witness(master.a, master.b, master.error)

    def _smaller(self, oracle: DualAscent, rule: StoppingRule) -> float:
        """The largest C, by decades, at which the present bundle leaves a small gap below t·w_b, 0 ≤ t ≤ 1.

        F is convex: F(t w_b) ≤ (what t·w_b costs) + C̄((1 − t) R(0) + t R(w_b)).
        """
        s = self.state
        risk = (s.F_b - self.penalty.value(s.w_b)) / s.bundle.c_bar
        at_zero = oracle.mean_loss_at_zero
        C = self.C
        for _ in range(_DECADES):
            C /= 10.0
            c_bar = C * oracle.total_weight
            penalty = self._penalty_at(C)
            t = penalty.largest_share(s.w_b, c_bar * (at_zero - risk))
            F = penalty.value(s.w_b, t) + c_bar * ((1.0 - t) * at_zero + t * risk)
            if F - s.bundle.solved_for(c_bar, penalty, qp_tolerance(rule, F, c_bar)).lower_bound <= _NEAR * c_bar * oracle.unit:
                break
        return C

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        numbers, arrays = self.state.saved()
        own = {
            "C": self.C,
            "stage": self.stage,
            "F": self.F,
            "raised": self.raised,
            "bound": self.bound,
            "witness_b": self.witness.b,
            "witness_error": self.witness.error,
            "stayed": self.stayed,
            "fell": self.fell,
            "gap": self.gap,
            "late": self.late,
            "tried": self.tried,
            "stretch": self.stretch,
        }
        return {**numbers, "continuation": own}, {**arrays, "continuation.w": self.w, "continuation.witness_a": self.witness.a}

    @classmethod
    def restored(cls, found: StoredCheckpoint | Continuation | BundleState, oracle: DualAscent) -> Continuation:
        """What was saved, to the last bit; a state of this run goes on as it is."""
        if isinstance(found, Continuation):
            return found
        state = BundleState.restored(found, oracle.dimension, oracle.shelf)
        if isinstance(found, BundleState):
            return cls.at(state, oracle.C)
        with found.restoring():
            return cls._read(found, state, oracle)

    @classmethod
    def _read(cls, found: StoredCheckpoint, state: BundleState, oracle: DualAscent) -> Continuation:
        own = found.record["state"]["solver"]["continuation"]
        expect_like(own, cls.at(state, oracle.C).saved()[0]["continuation"], "continuation")
        if state.bundle.max_cuts > oracle.cuts:  # type: ignore[attr-defined]
            raise ValueError(f"a bundle of {state.bundle.max_cuts} cuts, of which rows remember fewer")
        if not 0.0 <= own["stretch"] <= 1.0:
            raise ValueError(f"steps are stretched by {own['stretch']}")
        if own["C"] != oracle.C or not 0.0 < own["stage"] <= own["C"]:
            raise ValueError(f"C is {own['C']}, on the way {own['stage']}")
        shape = (oracle.dimension,)
        witness = Witness(
            read_to(state.shelf, found, "continuation.witness_a", shape), own["witness_b"], CutError(*own["witness_error"])
        )
        if not 0.0 <= own["bound"] <= witness.bound(oracle.c_bar, oracle.penalty.l1) or min(witness.error) < 0.0:
            raise ValueError("its bound is not that of its witness")
        oracle.C, penalty = own["stage"], oracle.penalty
        oracle.penalty = state.penalty
        same = own["stage"] == own["C"] and own["F"] == state.F_b
        w = state.w_b if same else read_to(state.shelf, found, "continuation.w", shape)
        counts = {name: own[name] for name in ("raised", "stayed", "fell", "gap", "late", "tried", "stretch")}
        return cls(state, own["C"], penalty, own["stage"], w, own["F"], own["bound"], witness, **counts)
