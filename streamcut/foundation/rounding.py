"""What rounding can do to a lower bound and to an objective: every claim is made true for real numbers here, and only here.

A claim is `lower bound ≤ min F ≤ F(w) ≤ primal` for the real numbers that the stored floats are, whatever their scales. What is
computed in float64 is off by a little; here is by how much at most, and that is taken off the bound and put onto the primal.

Notation. ε = 2⁻⁵³ rounds one operation: fl(a∘b) = (a∘b)(1 + e), |e| ≤ ε; n of them in a chain change a result by a part
γ_n = nε / (1 − nε) at most (Higham 2002, Lemma 3.1). F(w) = ½‖w‖² + C Σ u_i ℓ_i(⟨w, x_i⟩) over rows i, M = Σ u_i, C̄ = C M.

**Cuts.** For shares f_i in the domain of the conjugates ℓ_i* (hinge: f_i = −y_i·share, 0 ≤ share ≤ 1, −ℓ*(f) = share)

    F(w) ≥ ½‖w‖² + C (⟨A, w⟩ + B),    A = Σ u_i f_i x_i,    B = −Σ u_i ℓ_i*(f_i).                                      (1)

Sums are taken on a grid (`Grids`): every term is rounded to a multiple of q, after which adding is exact in any order. Of n_j
terms of feature j the sum is off by n_j q/2 at most, and as n_j ≤ rows and Σ n_j ≤ entries the error of A is at most
(q/2)·√(rows·entries) in length. A product u f x has one rounding more, ε |B| X in length with X the longest row, and so has the
division by M. Hence a stored cut (a, b) comes with a `CutError` (δ_a, δ_b): (1) holds with A/M, B/M at most that far from it. M
itself may be any number: it is divided by and multiplied with, and no sum needs it to be right.

Mixtures of cuts are cuts. With weights β ≥ 0, Σ β ≤ C̄, all of it in float64,

    F(w) ≥ θ [ Σ β_t (b_t − δ_b,t) − ½ (‖Σ β_t a_t‖ + Σ β_t δ_a,t)² ],    θ = 1 − γ,                                  (2)

for every w, where θ < 1 moves β into its simplex, of which C̄ = fl(C M), fl(Σβ) and fl(u_i f_i) may have left it a few roundings
out: scaling a dual point by θ keeps at least the part θ of a value that is not negative.

**Objectives.** A score ⟨w, x_i⟩ of n entries, added one after the other, is off by γ_n Σ_j |x_ij w_j|. ℓ_i changes at most Λ
times as fast as its score (Λ = 1 for hinges), so that with S_j = Σ_i u_i |x_ij|, known from the first pass,

    |fl(Σ u_i ℓ_i) − Σ u_i ℓ_i| ≤ Λ γ_n ⟨S, |w|⟩ + γ Σ u_i ℓ_i.                                                         (3)

Scores that are carried along a line, z_b ← z_b + k(z − z_b), carry their error along: `Drift`.

What a loss has to state for all this: Λ, which is its largest share, too; the size of its terms, which the grids must hold; and
how many roundings its value and conjugate take (`LossRounding`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

EPSILON = 2.0**-53
UNSEEN = 2.0**-450  # the length of a vector whose square is 0
_TINY = UNSEEN**2  # far more than all products that underflow may lose
_SPARE = 16  # roundings that are counted in one go: of scalars, of signs and weights, of a division
_LOOSE = 1.0 + 2.0**-20  # an error bound that was itself computed in float64, times this, is one


def gamma(n: float) -> float:
    """γ_n, rounded up: the part by which n roundings in a chain change a result at most."""
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

    `bound` is at least Σ|x| over all terms. Rounding moves a mean over rows by at most q/2, in practice by a √rows-th of it:
    the size of the rounding errors of an ordinary sum, but the same in every order (Demmel & Nguyen, 2013, one fold).
    """
    return 3.0 * 2.0 ** math.ceil(math.log2(bound)) if bound > 0.0 else 0.0


def spacing(rounder: float) -> float:
    """The q of `exact_rounder`."""
    return rounder / 3.0 * 2.0**-51


class Grids(NamedTuple):
    """The rounders of grids on which sums over rows are exact: of weighted features (`vector`) and of weights (`weight`).

    With them a cut is the same to the last bit in any order of rows, and so is everything that follows from cuts alone. What a
    term leaves is dropped, or, on `fine` grids, summed beside it (two folds): they are 0 until errors matter (`finer`).
    `limit` is that of shares without bounds, in a row of weight 1: so large sums can be (streamcut.losses.loss, `limited`).
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
        """Sums that are kept of each number: the coarse one, and that of what it leaves."""
        return 1 if self.fine_vector == 0.0 else 2

    def finer(self, terms: int) -> Grids:
        """With fine grids, for sums of at most `terms` terms, each of which may be added and taken back."""
        return self._replace(
            fine_vector=exact_rounder(2.0 * terms * spacing(self.vector)),
            fine_weight=exact_rounder(2.0 * terms * spacing(self.weight)),
        )

    def vector_error(self, rows: int, entries: int) -> float:
        """At most so far is a sum over `rows` with `entries` entries from what it stands for, in length."""
        return 0.5 * spacing(self.fine_vector or self.vector) * math.sqrt(float(rows) * float(entries))

    def weight_error(self, rows: int) -> float:
        """At most so far is a sum of a weight for each of `rows`."""
        return 0.5 * spacing(self.fine_weight or self.weight) * rows


class LossRounding(NamedTuple):
    """What a loss states of itself.

    slope      Λ: it changes at most so many times as fast as its score, and no share is larger in size
    value      roundings that ℓ takes, given its score: a part of ℓ
    near_one   roundings of numbers about 1 on the way to ℓ, which don't shrink with it
    conjugate  roundings that a share's term in b takes
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
    """How large the rows of a data set are, bias feature included: at most so many rows, entries, entries in one, length X."""

    rows: int
    entries: int
    row_entries: int
    length: float

    def cut_error(self, grids: Grids, slope: float, offset: float, total: float, loss: LossRounding) -> CutError:
        """Of a sum on `grids` that was divided by `total`: (a, b) with ‖a‖ ≤ `slope` and |b| ≤ `offset`, or Σ|terms| of b.

        A sum of shares bounds the length of its vector: ‖a‖ ≤ |b| X. So `slope` may be that.
        """
        error = grids.vector_error(self.rows, self.entries) / total
        return CutError(
            (error + gamma(_SPARE) * slope) * _LOOSE + _TINY,
            (grids.weight_error(self.rows) / total + gamma(_SPARE + loss.conjugate) * abs(offset)) * _LOOSE + _TINY,
        )

    def score_gamma(self) -> float:
        """γ of a score, by parts of Σ|x_ij w_j|."""
        return gamma(self.row_entries + _SPARE)


def mixed(one: CutError, other: CutError, share: float, size: float, offset: float) -> CutError:
    """Of (1 − share)·one + share·other as computed, where `size` ≥ the lengths of both cuts together, `offset` ≥ those of b."""
    own = gamma(_SPARE)
    return CutError(
        ((1.0 - share) * one.slope + share * other.slope) * (1.0 + own) + own * size + _TINY,
        ((1.0 - share) * one.offset + share * other.offset) * (1.0 + own) + own * offset + _TINY,
    )


def combined(p: float, one: CutError, q: float, other: CutError, size: float, offset: float) -> CutError:
    """Of p·one + q·other as computed; `size` ≥ p‖a‖ + q‖a′‖ of both cuts, `offset` ≥ p|b| + q|b′|."""
    own = gamma(_SPARE)
    return CutError(
        (p * one.slope + q * other.slope) * (1.0 + own) + own * size + _TINY,
        (p * one.offset + q * other.offset) * (1.0 + own) + own * offset + _TINY,
    )


def combined_square(p: float, q: float, square: float, product: float, other: float, dimension: int) -> float:
    """At least ‖pa + qa′‖² for p, q ≥ 0, from ‖a‖², ⟨a, a′⟩ and ‖a′‖², each off by parts dot_gamma of ‖a‖², ‖a‖‖a′‖, ‖a′‖²."""
    doubt = dot_gamma(dimension) + gamma(_SPARE)
    size = (p * math.sqrt(square) + q * math.sqrt(other)) * (1.0 + doubt)
    return max(0.0, p * p * square + 2.0 * p * q * product + q * q * other) + 2.0 * doubt * size * size


def dual_value(c_bar: float, square: float, b: float, error: CutError, dimension: int) -> float:
    """A true lower bound on F by the cut (a, b) of the mean risk with ‖a‖² = `square` as `vectors.dot` gives it: (2).

    0 is one for every loss that is not negative; it is the caller's to know.
    """
    length = math.sqrt(square * (1.0 + dot_gamma(dimension))) + error.slope + UNSEEN
    value, curve = c_bar * (b - error.offset), 0.5 * (c_bar * length) ** 2
    return below(value - curve, gamma(4 * _SPARE) * (c_bar * (abs(b) + error.offset) + curve))


def plane_doubt(square: float, w_square: float, b: float, error: CutError, dimension: int) -> float:
    """At most so far is the computed ⟨a, w⟩ + b of a cut above what the true cut says of the mean risk at w."""
    own = dot_gamma(dimension)
    length, size = (math.sqrt(s * (1.0 + own)) + UNSEEN for s in (square, w_square))
    return _LOOSE * ((own + gamma(_SPARE)) * (length * size + abs(b)) + error.slope * size + error.offset) + _TINY


def objective(square: float, dimension: int, C: float, loss: float, more: float = 0.0) -> float:
    """At least ½‖w‖² + more + C·loss, where `square` is ‖w‖² as `vectors.dot` gives it, and `loss` at least Σ u_i ℓ_i."""
    half = 0.5 * square
    return above(half + more + C * loss, dot_gamma(dimension) * half + gamma(_SPARE) * (half + more + C * loss))


def absolute_above(l1: float, total: float, dimension: int) -> float:
    """At least l1·‖w‖₁, where `total` is ‖w‖₁ as `thresholds.absolute_sum` gives it, a compensated sum."""
    value = l1 * total
    return above(value, (gamma(_SPARE) + (dimension * EPSILON) ** 2 * 4.0) * value)


def threshold_below(l1: float, c_bar: float) -> float:
    """At most l1 / c_bar: ‖S(a, ·)‖ with it is at least what it is with the quotient itself.

    That S(a, ·) subtracts it from numbers that are known exactly is one rounding more of each, of which `dot_gamma` has some to
    spare.
    """
    return max(0.0, l1 / c_bar * (1.0 - 4.0 * EPSILON))


@dataclass(slots=True)
class Drift:
    """How far the scores of the best point w_b may be from its own, in Σ u_i |z_b,i − ⟨w_b, x_i⟩|, as they are carried along.

    best    ⟨S, |w_b|⟩;  scored: ⟨S, |w|⟩ of the w that was scored last
    error   the bound for w_b
    """

    best: float = 0.0
    scored: float = 0.0
    error: float = 0.0

    def fresh(self, spread: float, scale: RowScale) -> float:
        """The same for scores that a pass has just made, of weights with ⟨S, |w|⟩ = `spread`."""
        return scale.score_gamma() * spread

    def step(self, k: float, spread: float, scale: RowScale) -> None:
        """After z_b ← z_b + k(z − z_b) and w_b ← w_b + k(w − w_b), which now has ⟨S, |w_b|⟩ = `spread`.

        In both the sum is rounded, and before it k times the difference twice.
        """
        if k == 0.0:
            return
        self.error = self._after(k, spread, scale)
        self.best = spread

    def ahead(self, k: float, scale: RowScale) -> float:
        """The error after such a step, at most, before it is taken."""
        return self.error if k == 0.0 else self._after(k, abs(1.0 - k) * self.best + k * self.scored, scale)

    def _after(self, k: float, spread: float, scale: RowScale) -> float:
        both = self.best + self.scored + self.error + self.fresh(self.scored, scale)
        carried = abs(1.0 - k) * self.error + k * self.fresh(self.scored, scale)
        return _LOOSE * (carried + gamma(1) * (2.0 * spread + 2.0 * carried) + gamma(4) * k * both) + _TINY


def loss_above(computed: float, rows: int, weight: float, error: float, loss: LossRounding) -> float:
    """At least Σ u_i ℓ_i at the true scores: (3).

    `computed` is a compensated sum over `rows` of total `weight`, at scores that are off by Σ u_i |error_i| ≤ `error`.
    """
    part = gamma(_SPARE + loss.value) + (rows * EPSILON) ** 2 * 4.0
    return above(computed, part * computed + loss.slope * error + gamma(loss.near_one) * weight)
