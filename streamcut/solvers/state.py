"""What a bundle method knows between two passes. With the row state it is all that there is, so it is also the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.bundle.bundle import Bundle
from streamcut.compiled import vectors
from streamcut.models.certificate import StopReason, Witness
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.decomposable import Cut, DecomposableOracle
from streamcut.solvers.progress import Iteration, Solution, StoppingRule

QP_SHARE = 1e-3  # the master problem is solved to this part of the gap that is asked for


def qp_tolerance(rule: StoppingRule, primal: float, c_bar: float) -> float:
    """Gap to which the master problem is solved, never below what float64 can resolve."""
    return max(QP_SHARE * rule.allowed_gap(primal, c_bar), 1e-13 * primal)


@dataclass(slots=True)
class BundleState:
    """`w_b`, `F_b` the best point and F there; `w` the last solution of the master problem; `bound` and its witness.

    k        the last step of a line search
    stepped  the line search from w_b towards `w` is done, and its cut still to be taken
    """

    bundle: Bundle
    w_b: np.ndarray
    F_b: float
    w: np.ndarray
    bound: float
    witness: Witness
    k: float = 1.0
    stepped: bool = False

    @classmethod
    def at_zero(cls, oracle: DecomposableOracle, max_cuts: int, rule: StoppingRule) -> BundleState:
        """One pass: w_b = 0 and the cut there in the bundle."""
        cut, loss = oracle.start()
        zero = np.zeros(oracle.dimension)
        state = cls(Bundle(oracle.dimension, oracle.c_bar, max_cuts), zero, oracle.C * loss, zero, 0.0, Witness(zero, 0.0))
        state.w_b = zero.copy()
        state.improve(cut, rule)
        return state

    def improve(self, cut: Cut, rule: StoppingRule) -> None:
        """Add a cut and solve the master problem."""
        self.bundle.add(cut.a, cut.b)
        self.solve_master(rule)

    def solve_master(self, rule: StoppingRule) -> None:
        """The value of the master problem is a bound, its solution the next w."""
        c_bar = self.bundle.c_bar
        master = self.bundle.solve(qp_tolerance(rule, self.F_b, c_bar))
        self.w = master.w
        self.stepped = False
        if master.lower_bound > self.bound:
            self.bound, self.witness = master.lower_bound, Witness(-self.w / c_bar, master.b)

    def objective(self, c_bar: float) -> float:
        """F(w_b) for another C̄."""
        square = 0.5 * vectors.dot(self.w_b, self.w_b)
        return square + c_bar * ((self.F_b - square) / self.bundle.c_bar)

    def move_to(self, C: float, oracle: DecomposableOracle, rule: StoppingRule) -> None:
        """Go on with another C: the best point and the cuts stay, F and the bound are computed anew. No pass."""
        oracle.C = C
        self.F_b = self.objective(oracle.c_bar)
        self.bundle.scale(oracle.c_bar)
        self.bound = 0.0
        self.witness = Witness(np.zeros_like(self.w_b), 0.0)
        self.solve_master(rule)

    def solution(self, reason: StopReason, history: list[Iteration]) -> Solution:
        return Solution(self.w_b, self.F_b, self.bound, self.witness, reason, history, self)

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) of a checkpoint; the arrays are views."""
        numbers = {
            "F_b": self.F_b,
            "bound": self.bound,
            "witness_b": self.witness.b,
            "k": self.k,
            "stepped": self.stepped,
            "max_cuts": self.bundle.max_cuts,
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
        bundle = Bundle(checkpoint.arrays["w"][1][0], numbers["c_bar"], numbers["max_cuts"])
        for name, place in bundle.make_places(checkpoint.arrays["bundle.b"][1][0] - 1).items():
            checkpoint.read_into(f"bundle.{name}", place)
        return cls(
            bundle,
            checkpoint.read("w_b"),
            numbers["F_b"],
            checkpoint.read("w"),
            numbers["bound"],
            Witness(checkpoint.read("witness_a"), numbers["witness_b"]),
            numbers["k"],
            numbers["stepped"],
        )
