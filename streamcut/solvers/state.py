"""The state of a bundle method between two passes. With the row state it is complete, and hence also the checkpoint."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from streamcut.bundle import two_cuts
from streamcut.bundle.bundle import Bundle
from streamcut.bundle.intercept import Interval
from streamcut.bundle.penalty import L2
from streamcut.compiled import vectors
from streamcut.foundation.rounding import CutError
from streamcut.models.certificate import Cut, StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.kept import Kept
from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.solvers.progress import Iteration, Solution, StoppingRule, Values

RISK = 0.01  # of the gap: if rounding in a step may add more than that to F, the point before it is kept


@dataclass(slots=True)
class Best:
    """w with F(w) ≤ F, `raised` of it for rounding. Starts with w = 0, and accepts only lower, finite values.

    `w` may be the very array that a method moves: then it moves along, as long as rounding cannot matter.
    """

    w: np.ndarray
    F: float
    raised: float

    def before(self, moving: np.ndarray, doubt: float, gap: float) -> None:
        """Before `moving` takes a step whose rounding may add `doubt` to F: keep a copy, if that matters."""
        if self.w is moving and not doubt <= RISK * gap:
            self.w = moving.copy()

    def offer(self, w: np.ndarray, F: float, raised: float) -> bool:
        """Accept w if it is better, or if it is the array `w` itself; returns whether it did."""
        taken = F < self.F or (w is self.w and math.isfinite(F))
        if taken:
            self.w, self.F, self.raised = w, F, raised
        return taken


CAREFUL = 0.01  # of the gap: if rounding takes more off the bound, cuts are summed more finely
_SAME = 1e-12  # of an intercept: no step
_SOLVED = 1e-6  # of F: the largest gap at which the weights are those of the optimum, and only the intercept is open
_FLAT = 1e-12  # of C̄: slopes within rounding of 0
_CLOSE = 1e-6  # of the way to an end of the optimal intercepts: left open
QP_SHARE = 1e-3  # the master problem is solved to this part of the requested gap


def qp_tolerance(rule: StoppingRule, primal: float, c_bar: float) -> float:
    """Gap to which the master problem is solved, never below what float64 can resolve."""
    return max(QP_SHARE * rule.allowed_gap(primal, c_bar), 1e-13 * primal)


@dataclass(slots=True)
class BundleState(Kept):
    """`w_b` the best point, `loss` Σ u_i ℓ_i there and `F_b` F, both upper bounds; `w` the last solution of the master problem;
    `bound` and its proof.

    value    of the master problem; the bound may be a better one, from elsewhere
    taken    subtracted from that value for rounding; proved: from the bound; raised: added to F_b for that of its loss
    k        the last step of a line search
    stepped  the line search from w_b towards `w` is done, its cut is still to come
    best     the result: w_b itself, unless rounding has raised F since
    scored   the last end point of a line search, where the penalty has thresholds: it has fewer weights than w_b
    """

    bundle: Bundle
    w_b: np.ndarray
    loss: float
    F_b: float
    w: np.ndarray
    bound: float
    proof: Cut
    k: float = 1.0
    stepped: bool = False
    value: float = 0.0
    taken: float = 0.0
    proved: float = 0.0
    raised: float = 0.0
    scored: np.ndarray | None = None
    best: Best = field(init=False)
    kept = (
        "w_b", "w", "loss", "F_b", "raised", "bound", "proof", "k", "stepped", "value", "taken", "proved", "scored", "better",
        "narrowed",
    )  # fmt: skip

    def __post_init__(self) -> None:
        self.best = Best(self.w_b, self.F_b, self.raised)

    @property
    def penalty(self) -> L2:
        """The penalty on weights."""
        return self.bundle.penalty

    @classmethod
    def at(cls, w_b: np.ndarray, loss: float, oracle: DecomposableOracle, max_cuts: int) -> BundleState:
        """A state that knows only the loss at w_b."""
        D = len(w_b) - oracle.penalty.free
        bundle = Bundle(D, oracle.c_bar, max_cuts, oracle.penalty)
        F = oracle.penalty.objective(w_b, oracle.C, loss)
        return cls(bundle, w_b, loss, F, np.zeros(len(w_b)), 0.0, Cut.none(D), raised=oracle.C * oracle.raised)

    @classmethod
    def at_zero(cls, oracle: DecomposableOracle, max_cuts: int, rule: StoppingRule) -> BundleState:
        """One pass: w_b = 0 and the cut there in the bundle."""
        cut, loss = oracle.start()
        state = cls.at(np.zeros(oracle.dimension), loss, oracle, max_cuts)
        state.improve(cut, rule)
        return state

    def search(self, oracle: Any) -> float:
        """The k ≥ 0 that minimises F at w_b + k(w − w_b), w being the point scored last. The data is not read."""
        A0, B0 = self.penalty.line(self.w_b, self.w)
        if A0 == 0.0 and self.penalty.free and abs(self.w[-1] - self.w_b[-1]) <= _SAME * abs(self.w_b[-1]):
            return 0.0  # slopes along a line as short as that are rounding
        more = self.penalty.slope_along(self.w_b, self.w)
        return oracle.line_search(A0, B0) if more is None else oracle.line_search(A0, B0, more)

    def move(self, k: float, oracle: DecomposableOracle) -> None:
        """w_b ← w_b + k(w − w_b), w being the point scored last. The data is not read."""
        if self.penalty.threshold is not None:
            self.scored = self.w
        self.k = k
        self.best.before(self.w_b, oracle.C * oracle.doubt(k), self.F_b - self.bound)
        square = vectors.move(self.w_b, self.w, k)
        self.loss = oracle.step(k, self.w_b)
        self.raised = oracle.C * oracle.raised
        self.F_b = self.penalty.objective(self.w_b, oracle.C, self.loss, square)
        self.best.offer(self.w_b, self.F_b, self.raised)
        self.sharpen(oracle)

    def centre(self, oracle: Any, rule: StoppingRule) -> None:
        """Move a free intercept to the middle of those that are optimal for the other weights, as LIBSVM does. Two passes.

        Where every dual variable is at a bound, as with a small C, they are an interval, and its ends predict a single class.
        """
        if not (self.penalty.centred and oracle.kinked and self.F_b - self.bound <= _SOLVED * self.F_b):
            return
        before = self.w, self.k
        for side, part in ((-1.0, 1.0), (1.0, 0.5)):  # to one end; half-way to the other
            self.w = self.w_b.copy()
            self.w[-1] += side
            oracle.score(self.w)
            end = two_cuts.minimise(lambda k: oracle.C * oracle.slopes(k) - _FLAT * oracle.c_bar, 1, narrow=_CLOSE)[0]
            self.move(part * (1.0 - _CLOSE) * float(end), oracle)
        if self.F_b - self.bound <= rule.allowed_gap(self.F_b, oracle.c_bar):  # F may differ by rounding
            self.best = Best(self.w_b, self.F_b, self.raised)
        self.w, self.k = before

    def level(self, oracle: Any) -> None:
        """Set the free intercept of w_b to the best one for its other weights, if the oracle finds it. The data is not read."""
        if not self.penalty.free or (intercept := oracle.best_intercept(self.w_b)) is None:
            return
        self.loss = oracle.shift(intercept, self.w_b)
        self.raised = oracle.C * oracle.raised
        self.F_b = self.penalty.objective(self.w_b, oracle.C, self.loss)
        self.best.offer(self.w_b, self.F_b, self.raised)

    @property
    def claim(self) -> tuple[float, float]:
        """(F, bound) as a certificate would state them."""
        return self.penalty.claim(self.best.w, self.best.F, self.bound)

    def take(self, w: np.ndarray, loss: float, F: float, raised: float) -> bool:
        """Make w, with this loss and F, the best point, if it is better; returns whether it is."""
        if better := self.best.offer(w, F, raised):
            self.w_b, self.loss, self.F_b, self.raised = w, loss, F, raised
        return better

    def sharpen(self, oracle: DecomposableOracle) -> None:
        """Sum the next cuts more finely, if rounding limits the bound."""
        if self._careful:
            oracle.refine()

    @property
    def _careful(self) -> bool:
        return max(self.taken, self.proved) > CAREFUL * (self.F_b - self.bound)

    def improve(self, cut: Cut, rule: StoppingRule) -> None:
        """Add a cut and solve the master problem."""
        self.add(cut)
        self.solve_master(rule)

    def add(self, cut: Cut) -> None:
        """Add a cut; the bundle keeps a copy."""
        self.bundle.add(cut.a, cut.b, cut.error)

    def narrow(self) -> None:
        """Narrow the penalty's interval by what is known of the optimum."""
        self.bundle.penalty = self.penalty.narrowed(self.bundle.c_bar, self.w_b, self.F_b, self.bound)

    def solve_master(self, rule: StoppingRule) -> None:
        """Solve the master problem: its value is a bound, its solution the next w, whose free intercept is not far from the best
        point's."""
        c_bar = self.bundle.c_bar
        tolerance = qp_tolerance(rule, self.F_b, c_bar)
        self.narrow()
        master = self.bundle.solve(tolerance, self.penalty.near(self.w_b) if self.penalty.free else None)
        self.w = master.w
        self.value, self.taken = master.lower_bound, master.taken
        self.stepped = False
        self._offer(master.a, master.b, master.error)
        doubtful = master.qp_gap > CAREFUL * (self.F_b - self.bound) or self._careful
        if doubtful and self.penalty.partial:
            a, b, error = self.proof.a, self.proof.b, self.proof.error
            self._offer(*self.bundle.newest_with(a, b, error, math.sqrt(2.0 * self.F_b)))

    def _offer(self, a: np.ndarray, b: float, error: CutError) -> None:
        """Adopt the bound of a cut, if it is better."""
        bound, computed = self.penalty.bound(self.bundle.c_bar, a, b, error)
        if bound > self.bound:
            self.bound, self.proof, self.proved = bound, Cut(a, b, error), computed - bound

    @property
    def values(self) -> Values:
        """The quantities that change from pass to pass."""
        c_bar = self.bundle.c_bar
        unproved = self.best.F - self.bound - 2.0 * (self.proved + self.best.raised)
        return Values(self.F_b, self.value, self.taken + self.raised, unproved, c_bar)

    def move_to(self, C: float, penalty: L2, oracle: DecomposableOracle, rule: StoppingRule) -> None:
        """Continue with another C and penalty: the best point and the cuts stay, F and the bound are recomputed. No pass."""
        oracle.C, oracle.penalty = C, penalty
        self.raised *= oracle.c_bar / self.bundle.c_bar
        self.scored = self.scored if penalty.threshold is not None else None
        self.F_b = penalty.objective(self.w_b, C, self.loss)
        self.best = Best(self.w_b, self.F_b, self.raised)
        self.bundle.scale(oracle.c_bar, penalty)
        self.bound = self.proved = 0.0
        self.proof = Cut.none(self.bundle.dimension)
        self.solve_master(rule)

    def fewest_weights(self, oracle: Any, rule: StoppingRule) -> tuple[np.ndarray, float, float] | None:
        """(w, F there, the part added for rounding) of a converged method: the w scored last, if it is good enough as well.

        w_b is a mean over all w so far and has the nonzero weights of many of them. The data is not read.
        """
        if self.scored is not None and self.penalty.threshold is not None:
            F = self.penalty.objective(self.scored, oracle.C, oracle.loss_scored(self.scored))
            if F - self.bound <= rule.allowed_gap(F, oracle.c_bar):
                return self.scored, F, oracle.C * oracle.raised
        return None

    def solution(self, reason: StopReason, history: list[Iteration], oracle: DecomposableOracle, rule: StoppingRule) -> Solution:
        sparser = self.fewest_weights(oracle, rule) if reason is StopReason.CONVERGED else None
        w, F, raised = sparser or (self.best.w, self.best.F, self.best.raised)
        return Solution(w, F, self.bound, self.proof, reason, history, self, raised)

    @property
    def better(self) -> Best | None:
        """The best point, where it is another than w_b."""
        return None if self.best.w is self.w_b else self.best

    @better.setter
    def better(self, best: Best | None) -> None:
        self.best = best or Best(self.w_b, self.F_b, self.raised)

    @property
    def narrowed(self) -> tuple[Interval, float]:
        """What is proved of the optimum: the interval of a free intercept, and the F that bounds ‖w‖₁."""
        return self.penalty.within, self.penalty.most

    @narrowed.setter
    def narrowed(self, proved: tuple[Interval, float]) -> None:
        within, most = proved
        self.bundle.penalty = replace(self.penalty, within=within, most=most)

    def saved(self) -> tuple[dict[str, object], dict[str, np.ndarray]]:
        record, arrays = Kept.saved(self)
        cuts = {f"bundle.{name}": array for name, array in self.bundle.arrays().items()}
        return {**record, "cuts": len(self.bundle), "c_bar": self.bundle.c_bar}, {**arrays, **cuts}

    @classmethod
    def restored(cls, stored: StoredCheckpoint | BundleState, oracle: DecomposableOracle, max_cuts: int) -> BundleState:
        """The saved state, bit for bit; a BundleState is returned as is.

        Raises CorruptError for anything else.
        """
        if isinstance(stored, BundleState):
            return stored
        with stored.restoring():
            record, s = stored.record["state"]["solver"], cls.at(np.zeros(oracle.dimension), 0.0, oracle, max_cuts)
            s.restore(record, stored)
            s.bundle.c_bar = record["c_bar"]
            for name, array in s.bundle.arrays(record["cuts"]).items():
                stored.inside("bundle").fill(name, array)
            return s
