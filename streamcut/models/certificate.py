"""What training can prove about its answer: the objective that it reached and a bound that no answer can beat."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from streamcut.rounding import CutError, dual_value


class StopReason(StrEnum):
    """Why training ended."""

    CONVERGED = "converged"
    MAX_PASSES = "max_passes"
    TIME = "time"
    TARGET = "target"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    EPOCHS = "epochs"
    EVALUATIONS = "max_evaluations"
    SETTLED = "settled"

    @property
    def because(self) -> str:
        """The reason as the end of a sentence."""
        return _BECAUSE[self]


_BECAUSE = {
    StopReason.CONVERGED: "the gap is within the tolerance",
    StopReason.MAX_PASSES: "the allowed number of passes was used up",
    StopReason.TIME: "the allowed time was used up",
    StopReason.TARGET: "the objective reached the target",
    StopReason.STALLED: "rounding allows no further progress",
    StopReason.INTERRUPTED: "it was interrupted",
    StopReason.EPOCHS: "the rows were gone through as often as asked",
    StopReason.EVALUATIONS: "the allowed number of kernel evaluations was used up",
    StopReason.SETTLED: "the error on held-out rows no longer falls",
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """primal is F(w) of the model, lower_bound ≤ min F; both in units of F(w) = ½‖w‖² + C Σ u_i ℓ_i(w).

    c_bar is C·Σu_i, which turns a gap into units of mean loss. `tol` (of gap / c_bar) and `tol_relative` (of gap / primal)
    are the stopping rules that were asked for, None when switched off.
    """

    primal: float
    lower_bound: float
    c_bar: float
    tol: float | None
    tol_relative: float | None
    converged: bool
    stop_reason: StopReason

    @property
    def gap(self) -> float:
        """How far above the optimum the model can be at most."""
        return self.primal - self.lower_bound

    @property
    def gap_per_c_bar(self) -> float:
        """The gap in units of mean loss: what `tol` bounds."""
        return self.gap / self.c_bar

    def in_words(self) -> str:
        """The certificate in two sentences."""
        verdict = "Converged" if self.converged else "Not converged"
        because = self.stop_reason.because
        return (
            f"{verdict}: {because}. The objective is {self.primal:.8g} and no weights can reach less than "
            f"{self.lower_bound:.8g}, so the model is {self._distance()}."
        )

    def _distance(self) -> str:
        """How far the model is from the optimum; in parts of the lower bound, because the optimum may be as low as that."""
        mean_loss = f"{self.gap_per_c_bar:.2g} in mean loss"
        if self.gap >= self.lower_bound:  # a percentage of next to nothing would only frighten
            return f"at most {mean_loss} above the optimum"
        return f"at most {100 * self.gap / self.lower_bound:.2g} % above the optimum ({mean_loss})"


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """The cutting plane whose dual value is the lower bound: the β-weighted average of the bundle's cuts.

    a  float64 (d, or d + 1 with a bias feature), b float: R(w) ≥ ⟨a, w⟩ + b for every w, hence
       F(w) ≥ C̄·b − ½‖C̄·a‖² for every w.
    error  how far rounding may have moved a and b from a plane for which this is true
    """

    a: np.ndarray
    b: float
    error: CutError

    @classmethod
    def none(cls, dimension: int) -> Witness:
        """Of the bound 0, as losses are not negative."""
        return cls(np.zeros(dimension), 0.0, CutError(0.0, 0.0))

    def bound(self, c_bar: float) -> float:
        """At most min over w of ½‖w‖² + c_bar·(⟨a, w⟩ + b), and below it by what rounding may have done; 0 is a bound, too."""
        from streamcut.compiled import vectors  # Numba, which most uses of a model do without

        return max(0.0, dual_value(c_bar, vectors.dot(self.a, self.a), self.b, self.error, len(self.a)))
