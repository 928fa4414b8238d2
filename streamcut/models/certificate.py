"""What training can prove about its answer: the objective reached and a bound that no answer can beat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from streamcut.errors import spelled
from streamcut.foundation.rounding import CutError, above, below, gamma, threshold_below
from streamcut.foundation.shown import Shown


class StopReason(StrEnum):
    """Why training ended."""

    CONVERGED = "converged"
    MAX_PASSES = "max_passes"
    TIME = "time"
    TARGET = "target"
    STALLED = "stalled"
    IDLE = "idle"
    SCALE = "scale"
    INTERRUPTED = "interrupted"
    EPOCHS = "epochs"
    SETTLED = "settled"
    SAMPLES = "samples"

    @property
    def because(self) -> str:
        """The reason as the end of a sentence."""
        return spelled(_BECAUSE[self])


_BECAUSE = {
    StopReason.CONVERGED: "the gap is within the tolerance",
    StopReason.MAX_PASSES: "the allowed number of passes was used up",
    StopReason.TIME: "the allowed time was used up",
    StopReason.TARGET: "the objective reached the target",
    StopReason.STALLED: "rounding allows no further progress",
    StopReason.IDLE: "four times the steps closed hardly any of the gap; features of one size, or a smaller C, may help",
    StopReason.SCALE: "neither objective nor bound moves any more; features of one size (losses of rows: --scale std) or a "
    "larger --tol may help",
    StopReason.INTERRUPTED: "it was interrupted",
    StopReason.EPOCHS: "the requested number of epochs is done",
    StopReason.SETTLED: "the error on held-out rows no longer falls",
    StopReason.SAMPLES: "the tolerance is met by the estimate from samples, but not by the proof; a larger --samples helps",
}


_NOTHING = 1e-12  # times C̄: the most that rounding may leave of an objective of 0


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The gap at which training converges, and the rule that sets it, for example "tol 0.001"; "" for none."""

    gap: float
    rule: str

    @classmethod
    def strictest(
        cls, tol: float | None, tol_relative: float | None, primal: float, c_bar: float, *, nothing: bool = False
    ) -> Tolerance:
        """The smaller of tol·C̄ and tol_relative·F; None = switched off. `nothing`: F is only rounding error."""
        asked = [] if tol is None else [cls(tol * c_bar, f"tol {tol:g}")]
        if tol_relative is not None:
            part = cls(tol_relative * primal, f"tol_relative {tol_relative:g}")
            asked.append(cls(_NOTHING * c_bar, f"{_NOTHING:g} of the loss at w = 0") if nothing else part)
        return min(asked, key=lambda tolerance: tolerance.gap, default=cls(0.0, ""))


def only_rounding(primal: float, lower_bound: float, c_bar: float) -> bool:
    """Whether F, where it may be 0 at the optimum, is rounding error: nothing is proved, and little left of the loss at w = 0."""
    return lower_bound <= 0.0 and primal <= _NOTHING * c_bar


SCALES = ("c_bar", "unit", "raised", "equal")  # fields for arithmetic, which pages and tables for people leave out


@dataclass(frozen=True, slots=True, repr=False)
class Certificate(Shown):
    """primal is F(w) of the model, lower_bound ≤ min F; both in units of F(w) = ½‖w‖² + λ‖w‖₁ + C Σ u_i ℓ_i(w), where usually
    λ = 0.

    c_bar is C·Σu_i, which turns a gap into units of mean loss. `tol` (of gap / (c_bar · unit)) and `tol_relative` (of gap /
    primal) are the stopping rules requested, None when switched off. unit is 1 for losses of labels; for losses of numbers about
    the mean loss of the best constant, or of w = 0 where all are `equal`: then alone F may be 0 at the optimum. raised was added
    to F so that rounding cannot make `primal` too small. detail says more about the reason, if anything.
    """

    primal: float
    lower_bound: float
    c_bar: float
    tol: float | None
    tol_relative: float | None
    converged: bool
    stop_reason: StopReason
    unit: float = 1.0
    raised: float = 0.0
    detail: str = ""
    equal: bool = False

    @property
    def gap(self) -> float:
        """The most by which the model can be above the optimum."""
        return self.primal - self.lower_bound

    @property
    def gap_per_c_bar(self) -> float:
        """The gap in units of mean loss: what `tol` bounds, in units of `unit`."""
        return self.gap / self.c_bar

    @property
    def tolerance(self) -> Tolerance:
        """The requested gap."""
        scale = self.c_bar * self.unit
        nothing = self.equal and only_rounding(self.primal, self.lower_bound, scale)
        return Tolerance.strictest(self.tol, self.tol_relative, self.primal, scale, nothing=nothing)

    def shown(self) -> dict[str, object]:
        return {
            "primal": self.primal, "lower_bound": self.lower_bound, "gap": self.gap, "gap_per_c_bar": self.gap_per_c_bar,
            "converged": self.converged, "stop_reason": self.stop_reason,
        }  # fmt: skip

    def briefly(self) -> str:
        """A phrase: how far the model is from the optimum, and whether that is enough."""
        return f"{'' if self.converged else 'not converged, '}{self._distance()}"

    def in_words(self) -> str:
        """The certificate in two sentences."""
        verdict, allowed = "Converged" if self.converged else "Not converged", self.tolerance
        because = self.stop_reason.because + (f" ({spelled(self.detail)})" if self.detail else "")
        if self.converged:
            because += f" ({allowed.rule})"
        elif allowed.rule:
            because += f", and the gap is {self.gap:.3g} where {allowed.gap:.3g} was asked for ({allowed.rule})"
        return (
            f"{verdict}: {because}. The objective is {self.primal:.8g} and no weights can reach less than "
            f"{self.lower_bound:.8g}, so the model is {self._distance()}."
        )

    def _distance(self) -> str:
        """How far the model is from the optimum, relative to the lower bound, because the optimum may be that low."""
        mean_loss = f"{self.gap_per_c_bar:.2g} in mean loss"
        if self.gap >= self.lower_bound:  # a percentage of almost zero would only alarm
            return f"at most {mean_loss} above the optimum"
        return f"at most {100 * self.gap / self.lower_bound:.2g} % above the optimum ({mean_loss})"


def certificate_of(certificates: Sequence[Certificate]) -> Certificate:
    """The certificate of the sum of one or several objectives; it says why the first ended that did not converge."""
    if len(certificates) == 1:
        return certificates[0]
    worst = next((c for c in certificates if not c.converged), certificates[0])
    sums = zip(*((c.primal, c.lower_bound, c.raised) for c in certificates), strict=True)
    primal, bound, raised = map(math.fsum, sums)
    return replace(worst, primal=above(primal, 0.0), lower_bound=bound and below(bound, 0.0), raised=raised)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """The cutting plane whose dual value is the lower bound: the β-weighted average of the bundle's cuts.

    a  float64 (d, or d + 1 with a bias feature), b float: R(w) ≥ ⟨a, w⟩ + b for every w, hence
       F(w) ≥ C̄·b − ½‖S(C̄·a, λ)‖² for every w, S the soft threshold, which changes nothing where λ is 0.
    error  the most by which rounding may have moved a and b from a plane for which this holds

    In a model with λ > 0 `a` is 0 where S(C̄·a, λ) is (`reduced`). Then this holds for its own C̄ and λ only, and bounds no R.
    """

    a: np.ndarray
    b: float
    error: CutError

    @classmethod
    def none(cls, dimension: int) -> Cut:
        """The proof of the bound 0: losses are not negative."""
        return cls(np.zeros(dimension), 0.0, CutError(0.0, 0.0))

    def reduced(self, c_bar: float, l1: float) -> Cut:
        """With 0 wherever that keeps the bound for this C̄ and λ, so that the file of a model with few weights is small."""
        if l1 == 0.0:
            return self
        return Cut(np.where(np.abs(self.a) > threshold_below(l1, c_bar), self.a, 0.0), self.b, self.error)

    def bound(self, c_bar: float, l1: float = 0.0, most: float | None = None) -> float:
        """At most min over w of ½‖w‖² + l1·‖w‖₁ + c_bar·(⟨a, w⟩ + b), less the possible rounding error; 0 is a
        bound, too. `most`: without ½‖w‖², over the w with l1·‖w‖₁ at most that."""
        if most is not None:
            from streamcut.bundle.l1_only import L1Only

            return max(0.0, L1Only(l1, most=most).bound(c_bar, self.a, self.b, self.error)[0])
        from streamcut.bundle.penalty import penalty_of  # loads Numba, which most uses of a model do not need

        return max(0.0, penalty_of(l1).bound(c_bar, self.a, self.b, self.error)[0])


_SPARE = 16  # rounding errors of a few sums and products of scalars
SHORTER = 1.0 - 1e-12  # a dual point scaled by this is in its box, however its C_i were rounded


@dataclass(frozen=True, slots=True, eq=False)
class DualPoint:
    """A feasible point of the dual of a kernel machine, given by its w′ = Σ_k coefficients[k] φ(x_k).

    coefficients  float64 (n,) or (n, 1): y_i α_i, for two classes. (n, K): −α_i,k for each wrong class k of row i and Σ_k α_i,k
                  for its own; for sequences α_i,k is the sum over the labellings that give the row the class k
    dense         float64 (K²,), the transitions of w′; empty for single rows
    """

    coefficients: np.ndarray
    dense: np.ndarray

    @property
    def offset(self) -> float:
        """Σ α Δ, in units of F."""
        c = self.coefficients
        return math.fsum(np.abs(c).ravel() if c.ndim == 1 or c.shape[1] == 1 else c[c > 0.0])

    def value(self, square: float, doubt: float) -> float:
        """A lower bound on the dual value there; ‖w′‖² is `square` or, by rounding, up to `doubt` more. 0 is a bound, too."""
        half, offset = 0.5 * SHORTER**2 * (max(square, 0.0) + doubt), SHORTER * self.offset
        return max(0.0, below(offset - half, gamma(_SPARE) * (offset + half)))
