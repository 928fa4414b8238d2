"""What a bundle method knows between two passes. With the row state it is all that there is, so it is also the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.bundle.bundle import Bundle, BundleSize
from streamcut.compiled import vectors
from streamcut.models.certificate import StopReason, Witness
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.decomposable import Cut, DecomposableOracle
from streamcut.rounding import CutError, objective
from streamcut.solvers.progress import Iteration, Solution, StoppingRule
from streamcut.solvers.standstill import Standing

QP_SHARE = 1e-3  # the master problem is solved to this part of the gap that is asked for


def qp_tolerance(rule: StoppingRule, primal: float, c_bar: float) -> float:
    """Gap to which the master problem is solved, never below what float64 can resolve."""
    return max(QP_SHARE * rule.allowed_gap(primal, c_bar), 1e-13 * primal)


@dataclass(slots=True)
class BundleState:
    """`w_b` the best point, `loss` Σ u_i ℓ_i there and `F_b` F, both at least; `w` the last solution of the master problem;
    `bound` and its witness.

    value    of the master problem; the bound may be a better one, from elsewhere. qp_gap: what is left of it
    taken    off that value for its rounding; raised: what was put onto F_b for that of its loss
    k        the last step of a line search
    stepped  the line search from w_b towards `w` is done, and its cut still to be taken
    """

    bundle: Bundle
    w_b: np.ndarray
    loss: float
    F_b: float
    w: np.ndarray
    bound: float
    witness: Witness
    k: float = 1.0
    stepped: bool = False
    value: float = 0.0
    qp_gap: float = 0.0
    taken: float = 0.0
    raised: float = 0.0

    @classmethod
    def at(cls, w_b: np.ndarray, loss: float, oracle: Any, cuts: BundleSize) -> BundleState:
        """Nothing is known but the loss at w_b."""
        D = len(w_b)
        bundle = Bundle(D, oracle.c_bar, *cuts)
        F = objective(vectors.dot(w_b, w_b), D, oracle.C, loss)
        return cls(bundle, w_b, loss, F, np.zeros(D), 0.0, Witness.none(D))

    @classmethod
    def at_zero(cls, oracle: DecomposableOracle, max_cuts: int, rule: StoppingRule) -> BundleState:
        """One pass: w_b = 0 and the cut there in the bundle."""
        cut, loss = oracle.start()
        state = cls.at(np.zeros(oracle.dimension), loss, oracle, BundleSize(max_cuts, max_cuts))
        state.improve(cut, rule)
        return state

    def move(self, k: float, oracle: Any) -> None:
        """w_b ← w_b + k(w − w_b), w being what the oracle scored last. The data is not read."""
        self.k = k
        square = vectors.move(self.w_b, self.w, k)
        self.loss = oracle.step(k, self.w_b)
        self.raised = oracle.C * oracle.raised
        self.F_b = objective(square, len(self.w_b), oracle.C, self.loss)

    def improve(self, cut: Cut, rule: StoppingRule) -> None:
        """Add a cut and solve the master problem."""
        self.bundle.add(cut.a, cut.b, cut.error)
        self.solve_master(rule)

    def solve_master(self, rule: StoppingRule) -> None:
        """The value of the master problem is a bound, its solution the next w."""
        c_bar = self.bundle.c_bar
        master = self.bundle.solve(qp_tolerance(rule, self.F_b, c_bar))
        self.w, self.value, self.qp_gap, self.taken = master.w, master.lower_bound, master.qp_gap, master.taken
        self.stepped = False
        if master.lower_bound > self.bound:
            self.bound, self.witness = master.lower_bound, Witness(master.a, master.b, master.error)

    @property
    def standing(self) -> Standing:
        """What moves from pass to pass."""
        c_bar = self.bundle.c_bar
        return Standing(self.F_b, self.value, self.qp_gap, self.taken + self.raised, self.bundle.merging, stage=c_bar)

    def objective(self, C: float) -> float:
        """F(w_b) for another C."""
        return objective(vectors.dot(self.w_b, self.w_b), len(self.w_b), C, self.loss)

    def move_to(self, C: float, oracle: DecomposableOracle, rule: StoppingRule) -> None:
        """Go on with another C: the best point and the cuts stay, F and the bound are computed anew. No pass."""
        self.raised *= C / oracle.C
        oracle.C = C
        self.F_b = self.objective(C)
        self.bundle.scale(oracle.c_bar)
        self.bound = 0.0
        self.witness = Witness.none(len(self.w_b))
        self.solve_master(rule)

    def solution(self, reason: StopReason, history: list[Iteration]) -> Solution:
        return Solution(self.w_b, self.F_b, self.bound, self.witness, reason, history, self)

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        numbers = {
            "loss": self.loss,
            "F_b": self.F_b,
            "bound": self.bound,
            "witness_b": self.witness.b,
            "witness_error": self.witness.error,
            "k": self.k,
            "stepped": self.stepped,
            "value": self.value,
            "qp_gap": self.qp_gap,
            "taken": self.taken,
            "raised": self.raised,
            "max_cuts": self.bundle.max_cuts,
            "most": self.bundle.most,
            "merging": self.bundle.merging,
            "c_bar": self.bundle.c_bar,
        }
        own = {"w_b": self.w_b, "w": self.w, "witness_a": self.witness.a}
        return numbers, {**own, **{f"bundle.{name}": array for name, array in self.bundle.saved().items()}}

    @classmethod
    def restored(cls, checkpoint: StoredCheckpoint | BundleState) -> BundleState:
        """The state that was saved, to the last bit; a state is itself."""
        if isinstance(checkpoint, BundleState):
            return checkpoint
        numbers = checkpoint.record["state"]["solver"]
        bundle = Bundle(checkpoint.arrays["w"][1][0], numbers["c_bar"], numbers["max_cuts"], numbers["most"])
        bundle.merging = numbers["merging"]
        for name, place in bundle.make_places(checkpoint.arrays["bundle.b"][1][0] - 1).items():
            checkpoint.read_into(f"bundle.{name}", place)
        return cls(
            bundle,
            checkpoint.read("w_b"),
            numbers["loss"],
            numbers["F_b"],
            checkpoint.read("w"),
            numbers["bound"],
            Witness(checkpoint.read("witness_a"), numbers["witness_b"], CutError(*numbers["witness_error"])),
            numbers["k"],
            numbers["stepped"],
            numbers["value"],
            numbers["qp_gap"],
            numbers["taken"],
            numbers["raised"],
        )
