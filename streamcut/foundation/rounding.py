"""The effect of rounding on a lower bound and an objective: only here are claims made true in real arithmetic.

A claim is `lower bound ≤ min F ≤ F(w) ≤ primal` for the real numbers that the stored floats represent, at any scale. Values
computed in float64 have errors; they are bounded here, and the error bound is subtracted from the lower bound and added to the
primal.

Notation. ε = 2⁻⁵³ rounds one operation: fl(a∘b) = (a∘b)(1 + e), |e| ≤ ε; n of them in a chain change a result by a fraction γ_n =
nε / (1 − nε) at most (Higham 2002, Lemma 3.1). F(w) = ½‖w‖² + C Σ u_i ℓ_i(⟨w, x_i⟩) over rows i, M = Σ u_i, C̄ = C M.

**Cuts.** For shares f_i in the domain of the conjugates ℓ_i* (hinge: f_i = −y_i·share, 0 ≤ share ≤ 1, −ℓ*(f) = share)

    F(w) ≥ ½‖w‖² + C (⟨A, w⟩ + B),    A = Σ u_i f_i x_i,    B = −Σ u_i ℓ_i*(f_i).                                      (1)

Sums are taken on a grid (`Grids`): every term is rounded to a multiple of q, after which adding is exact in any order. Of n_j
terms of feature j the sum is off by n_j q/2 at most, and as n_j ≤ rows and Σ n_j ≤ entries the error of A is at most
(q/2)·√(rows·entries) in length. A product u f x has one more rounding, ε |B| X in length with X the longest row, and so has the
division by M. Hence a stored cut (a, b) comes with a `CutError` (δ_a, δ_b): (1) holds with A/M, B/M at most that far from it. M
itself may be any number: it is divided by and multiplied with, and no sum depends on its exactness.

Mixtures of cuts are cuts. With weights β ≥ 0, Σ β ≤ C̄, all in float64,

    F(w) ≥ θ [ Σ β_t (b_t − δ_b,t) − ½ (‖Σ β_t a_t‖ + Σ β_t δ_a,t)² ],    θ = 1 − γ,                                  (2)

for every w, where θ < 1 moves β into its simplex, which C̄ = fl(C M), fl(Σβ) and fl(u_i f_i) may have missed by a few roundings:
scaling a dual point by θ keeps at least a fraction θ of a nonnegative value.

**Objectives.** A score ⟨w, x_i⟩ of n entries, added one after the other, is off by γ_n Σ_j |x_ij w_j|. ℓ_i changes at most Λ
times as fast as its score (Λ = 1 for hinges), so with S_j = Σ_i u_i |x_ij|, known from the first pass,

    |fl(Σ u_i ℓ_i) − Σ u_i ℓ_i| ≤ Λ γ_n ⟨S, |w|⟩ + γ Σ u_i ℓ_i.                                                         (3)

Scores that are carried along a line, z_b ← z_b + k(z − z_b), carry their error along: `Drift`.

A loss must state Λ, which is also its largest share; the size of its terms, which the grids must hold; and how many roundings its
value and conjugate take (`LossRounding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

EPSILON = 2.0**-53
UNSEEN = 2.0**-450  # the length of a vector whose square is 0
_TINY = UNSEEN**2  # far more than all underflowing products can lose
_SPARE = 16  # roundings counted together: of scalars, of signs and weights, of a division
_LOOSE = 1.0 + 2.0**-20  # an error bound computed in float64, times this, is a true one


def gamma(n: float) -> float:
    """γ_n, rounded up: the largest relative change of a result by n roundings in a chain."""
    return _LOOSE * n * EPSILON / (1.0 - n * EPSILON)


def above(value: float, error: float) -> float:
    """A float64 that is at least value + error in real numbers; error ≥ 0."""
    return math.nextafter(value + (error * _LOOSE + _TINY), math.inf)


def below(value: float, error: float) -> float:
    """A float64 that is at most value − error in real numbers; error ≥ 0."""
    return math.nextafter(value - (error * _LOOSE + _TINY), -math.inf)


def dot_gamma(n: int) -> float:
    """γ of streamcut.compiled.vectors.dot over n numbers: eight partial sums."""
    return gamma(n / 8 + _SPARE)


def exact_rounder(bound: float) -> float:
    """r such that (x + r) − r is x rounded to a multiple of q = 2⁻⁵¹·2^⌈log₂ bound⌉; sums of such x are exact up to 4 `bound`.

    `bound` is at least Σ|x| over all terms. Rounding moves a mean over rows by at most q/2, in practice by q/2 over √rows:
    the size of the rounding errors of an ordinary sum, but the same in every order (Demmel & Nguyen, 2013, one fold).
    """
    return 3.0 * 2.0 ** math.ceil(math.log2(bound)) if bound > 0.0 else 0.0


def spacing(rounder: float) -> float:
    """The q of `exact_rounder`."""
    return rounder / 3.0 * 2.0**-51


class Grids(NamedTuple):
    """The rounders of grids on which sums over rows are exact: of weighted features (`vector`) and of weights (`weight`).

    With them a cut is the same to the last bit in any order of rows, and so is everything computed from cuts alone. The remainder
    of a term is dropped or, on `fine` grids, summed separately (two folds): these are 0 until errors matter (`finer`). `limit`
    caps unbounded shares in a row of weight 1, and so bounds the sums (streamcut.losses.loss, `limited`).
    """

    vector: float
    weight: float
    fine_vector: float = 0.0
    fine_weight: float = 0.0
    limit: float = math.inf

    @classmethod
    def holding(cls, vector: float, weight: float) -> Grids:
        """For sums of absolute values up to `vector` and `weight`."""
        return cls(exact_rounder(vector), exact_rounder(weight))

    @property
    def folds(self) -> int:
        """Number of sums kept of each number: the coarse one, and that of the remainders."""
        return 1 if self.fine_vector == 0.0 else 2

    def finer(self, terms: int) -> Grids:
        """With fine grids, for sums of at most `terms` terms, each of which may be added and subtracted again."""
        return self._replace(
            fine_vector=exact_rounder(2.0 * terms * spacing(self.vector)),
            fine_weight=exact_rounder(2.0 * terms * spacing(self.weight)),
        )

    def vector_error(self, rows: int, entries: int) -> float:
        """Error bound, in length, of a vector sum over `rows` with `entries` entries."""
        return 0.5 * spacing(self.fine_vector or self.vector) * math.sqrt(float(rows) * float(entries))

    def weight_error(self, rows: int) -> float:
        """Error bound of a sum of one weight for each of `rows`."""
        return 0.5 * spacing(self.fine_weight or self.weight) * rows


class LossRounding(NamedTuple):
    """The rounding properties that a loss states.

    slope      Λ: it changes at most Λ times as fast as its score, and no |share| is larger
    value      roundings of ℓ given its score, relative to ℓ
    near_one   roundings of numbers near 1 on the way to ℓ, which do not shrink with it
    conjugate  roundings of a share's term in b
    """

    slope: float = 1.0
    value: int = 2
    near_one: float = 0
    conjugate: int = 1


class CutError(NamedTuple):
    """The true cut is at most `slope` (in length) and `offset` from the stored one."""

    slope: float
    offset: float


@dataclass(frozen=True, slots=True)
class RowScale:
    """Upper bounds on the rows of a data set, bias feature included: rows, entries, entries in a row, length X."""

    rows: int
    entries: int
    row_entries: int
    length: float

    def cut_error(self, grids: Grids, slope: float, offset: float, total: float, loss: LossRounding) -> CutError:
        """The error of a sum on `grids` divided by `total`: (a, b) with ‖a‖ ≤ `slope` and |b| ≤ `offset`, or Σ|terms| of b.

        A sum of shares bounds the length of its vector: ‖a‖ ≤ |b| X. So `slope` may be |b| X.
        """
        error = grids.vector_error(self.rows, self.entries) / total
        return CutError(
            (error + gamma(_SPARE) * slope) * _LOOSE + _TINY,
            (grids.weight_error(self.rows) / total + gamma(_SPARE + loss.conjugate) * abs(offset)) * _LOOSE + _TINY,
        )

    def score_gamma(self) -> float:
        """γ of a score, relative to Σ|x_ij w_j|."""
        return gamma(self.row_entries + _SPARE)


def mixed(one: CutError, other: CutError, share: float, size: float, offset: float) -> CutError:
    """The error of (1 − share)·one + share·other as computed; `size` ≥ the sum of both lengths, `offset` ≥ that of both |b|."""
    rounding = gamma(_SPARE)
    return CutError(
        ((1.0 - share) * one.slope + share * other.slope) * (1.0 + rounding) + rounding * size + _TINY,
        ((1.0 - share) * one.offset + share * other.offset) * (1.0 + rounding) + rounding * offset + _TINY,
    )


def combined(p: float, one: CutError, q: float, other: CutError, size: float, offset: float) -> CutError:
    """The error of p·one + q·other as computed; `size` ≥ p‖a‖ + q‖a′‖ of both cuts, `offset` ≥ p|b| + q|b′|."""
    rounding = gamma(_SPARE)
    return CutError(
        (p * one.slope + q * other.slope) * (1.0 + rounding) + rounding * size + _TINY,
        (p * one.offset + q * other.offset) * (1.0 + rounding) + rounding * offset + _TINY,
    )


def combined_square(p: float, q: float, square: float, product: float, other: float, dimension: int) -> float:
    """At least ‖pa + qa′‖² for p, q ≥ 0, from ‖a‖², ⟨a, a′⟩ and ‖a′‖², with errors dot_gamma relative to ‖a‖², ‖a‖‖a′‖, ‖a′‖²."""
    doubt = dot_gamma(dimension) + gamma(_SPARE)
    size = (p * math.sqrt(square) + q * math.sqrt(other)) * (1.0 + doubt)
    return max(0.0, p * p * square + 2.0 * p * q * product + q * q * other) + 2.0 * doubt * size * size


def dual_value(c_bar: float, square: float, b: float, error: CutError, dimension: int) -> float:
    """A true lower bound on F by the cut (a, b) of the mean risk with ‖a‖² = `square` as computed by `vectors.dot`: (2).

    0 is also a lower bound for every nonnegative loss; that is left to the caller.
    """
    length = math.sqrt(square * (1.0 + dot_gamma(dimension))) + error.slope + UNSEEN
    scaled = c_bar * length
    value, curve = c_bar * (b - error.offset), 0.5 * scaled * scaled  # as a product: a power beyond all numbers is an error
    return below(value - curve, gamma(4 * _SPARE) * (c_bar * (abs(b) + error.offset) + curve))


def plane_doubt(square: float, w_square: float, b: float, error: CutError, dimension: int) -> float:
    """Upper bound on the computed ⟨a, w⟩ + b of a cut less the value of the true cut of the mean risk at w."""
    rounding = dot_gamma(dimension)
    length, size = (math.sqrt(s * (1.0 + rounding)) + UNSEEN for s in (square, w_square))
    return _LOOSE * ((rounding + gamma(_SPARE)) * (length * size + abs(b)) + error.slope * size + error.offset) + _TINY


def objective(square: float, dimension: int, C: float, loss: float, more: float = 0.0) -> float:
    """At least ½‖w‖² + more + C·loss, where `square` is ‖w‖² as computed by `vectors.dot`, and `loss` at least Σ u_i ℓ_i."""
    half = 0.5 * square
    return above(half + more + C * loss, dot_gamma(dimension) * half + gamma(_SPARE) * (half + more + C * loss))


def absolute_above(l1: float, total: float, dimension: int) -> float:
    """At least l1·‖w‖₁, where `total` is ‖w‖₁ as computed by `thresholds.absolute_sum`, a compensated sum."""
    value = l1 * total
    return above(value, (gamma(_SPARE) + (dimension * EPSILON) ** 2 * 4.0) * value)


def threshold_below(l1: float, c_bar: float) -> float:
    """At most l1 / c_bar: ‖S(a, ·)‖ with it is at least that with the exact quotient.

    Subtracting it in S(a, ·) from exact numbers adds one rounding each, which `dot_gamma` covers.
    """
    return max(0.0, l1 / c_bar * (1.0 - 4.0 * EPSILON))


@dataclass(slots=True)
class Drift:
    """Error bound of the carried scores of the best point w_b: Σ u_i |z_b,i − ⟨w_b, x_i⟩|.

    best    ⟨S, |w_b|⟩;  scored: ⟨S, |w|⟩ of the w scored last
    error   the bound for w_b
    """

    best: float = 0.0
    scored: float = 0.0
    error: float = 0.0

    def fresh(self, spread: float, scale: RowScale) -> float:
        """The drift of scores just computed by a pass, for weights with ⟨S, |w|⟩ = `spread`."""
        return scale.score_gamma() * spread

    def step(self, k: float, spread: float, scale: RowScale) -> None:
        """The drift after z_b ← z_b + k(z − z_b) and w_b ← w_b + k(w − w_b), with ⟨S, |w_b|⟩ = `spread` afterwards.

        In both, the sum has one rounding, and k times the difference two.
        """
        if k == 0.0:
            return
        self.error = self._after(k, spread, scale)
        self.best = spread

    def ahead(self, k: float, scale: RowScale) -> float:
        """Upper bound on the error after such a step, before it is taken."""
        return self.error if k == 0.0 else self._after(k, abs(1.0 - k) * self.best + k * self.scored, scale)

    def _after(self, k: float, spread: float, scale: RowScale) -> float:
        both = self.best + self.scored + self.error + self.fresh(self.scored, scale)
        carried = abs(1.0 - k) * self.error + k * self.fresh(self.scored, scale)
        return _LOOSE * (carried + gamma(1) * (2.0 * spread + 2.0 * carried) + gamma(4) * k * both) + _TINY


def loss_above(computed: float, rows: int, weight: float, error: float, loss: LossRounding) -> float:
    """At least Σ u_i ℓ_i at the true scores: (3).

    `computed` is a compensated sum over `rows` of total `weight`, at scores with errors Σ u_i |error_i| ≤ `error`.
    """
    part = gamma(_SPARE + loss.value) + (rows * EPSILON) ** 2 * 4.0
    return above(computed, part * computed + loss.slope * error + gamma(loss.near_one) * weight)
