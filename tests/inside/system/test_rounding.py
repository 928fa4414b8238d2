"""What is said of rounding is true in real numbers: with the worst that `dot` may give, and the worst cut that errors allow."""

from fractions import Fraction
from math import inf, isqrt, nextafter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streamcut.bundle.intercept import Nearby
from streamcut.compiled import vectors
from streamcut.foundation import rounding
from streamcut.foundation.rounding import (
    CutError,
    Drift,
    Grids,
    LossRounding,
    RowScale,
    combined,
    combined_square,
    dot_gamma,
    gamma,
    mixed,
    objective,
)  # fmt: skip

positive = st.floats(1e-6, 1e6)
signed = st.floats(-1e6, 1e6)
small = st.floats(0.0, 1e-3)
triples = st.lists(signed, min_size=3, max_size=3)
dimensions = st.sampled_from([1, 10, 10**4, 10**9])
LOOSE, TINY = Fraction(1001, 1000), Fraction(1, 10**250)  # bounds of errors are no looser than that


def root(x: Fraction, *, up: bool = False) -> Fraction:
    """√x to 200 digits after the point, rounded down or up."""
    scale = 10**400
    return Fraction(isqrt(x.numerator * scale // x.denominator) + up, 10**200)


def product(a, b) -> Fraction:
    """⟨a, b⟩."""
    return sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(0))


def worst(square: Fraction, dimension: int) -> float:
    """The least that `dot` may give for this."""
    return max(0.0, nextafter(float(square * (1 - Fraction(dot_gamma(dimension)))), inf))


def doubt(dimension: int = 1) -> Fraction:
    """What a few roundings and a sum over so many numbers may change, relative to their sizes."""
    return Fraction(dot_gamma(dimension) + gamma(20))


def exact(*numbers: float) -> list[Fraction]:
    return [Fraction(number) for number in numbers]


@given(n=st.integers(1, 10**9))
def test_gamma_is_no_less_than_higham_s(n):
    e = Fraction(1, 2**53)
    assert gamma(n) >= n * e / (1 - n * e)
    assert gamma(n) <= Fraction(n) * e * Fraction(1001, 1000)


@given(value=signed, error=small)
def test_above_and_below(value, error):
    assert Fraction(rounding.above(value, error)) > Fraction(value) + Fraction(error)
    assert Fraction(rounding.below(value, error)) < Fraction(value) - Fraction(error)


@given(x=st.lists(signed, min_size=1, max_size=40))
def test_dot_gamma_holds_for_dot(x):
    a = np.array(x)
    square = sum(Fraction(v) ** 2 for v in x)
    assert (
        abs(Fraction(vectors.dot(a, a)) - square) <= Fraction(dot_gamma(len(x))) * square + Fraction(rounding.UNSEEN) ** 2
    )  # of underflow


@given(c_bar=positive, length=positive, b=signed, slope=small, offset=small, dimension=dimensions)
def test_a_bound_is_below_what_the_true_cut_proves(c_bar, length, b, slope, offset, dimension):
    square = Fraction(length) ** 2
    found = rounding.dual_value(c_bar, worst(square, dimension), b, CutError(slope, offset), dimension)
    C, b_, slope_, offset_ = exact(c_bar, b, slope, offset)
    longest = root(square) + slope_
    assert Fraction(found) <= C * (b_ - offset_) - C * C * longest**2 / 2
    loss = Fraction(dot_gamma(dimension) + 1e-12) * (C * (abs(b_) + offset_) + C * C * longest**2)
    assert Fraction(found) >= C * (b_ - offset_) - C * C * longest**2 / 2 - 4 * loss - 1  # and not far below


@given(length=positive, C=positive, loss=positive, more=positive, dimension=dimensions)
def test_an_objective_is_above_what_it_is(length, C, loss, more, dimension):
    square = Fraction(length) ** 2
    found = objective(worst(square, dimension), dimension, C, loss, more)
    true = square / 2 + Fraction(more) + Fraction(C) * Fraction(loss)
    assert true <= Fraction(found) <= true * (1 + 2 * doubt(dimension)) + TINY


@given(one=st.tuples(small, small), other=st.tuples(small, small), share=st.floats(0.0, 1.0), size=positive, offset=positive)
def test_a_mixture_of_two_cuts_has_their_errors_and_a_few_roundings(one, other, share, size, offset):
    found = mixed(CutError(*one), CutError(*other), share, size, offset)
    t, e = Fraction(share), Fraction(1, 2**52)
    for got, left, right, own in zip(found, one, other, (size, offset), strict=True):
        true = (1 - t) * Fraction(left) + t * Fraction(right)
        assert true + e * Fraction(own) <= Fraction(got) <= true + 2 * doubt() * (true + Fraction(own)) + TINY
    p = combined(share, CutError(*one), 2.0, CutError(*other), size, offset)
    for got, left, right, own in zip(p, one, other, (size, offset), strict=True):
        true = t * Fraction(left) + 2 * Fraction(right)
        assert true + e * Fraction(own) <= Fraction(got) <= true + 2 * doubt() * (true + Fraction(own)) + TINY


@given(
    p=small,
    q=positive,
    a=st.lists(signed, min_size=3, max_size=3),
    a2=st.lists(signed, min_size=3, max_size=3),
    dimension=dimensions,
)
def test_the_square_of_a_sum_of_two_cuts(p, q, a, a2, dimension):
    dots = product(a, a), product(a, a2), product(a2, a2)
    across = nextafter(float(dots[1] - Fraction(dot_gamma(dimension)) * root(dots[0] * dots[2])), inf)
    found = combined_square(p, q, worst(dots[0], dimension), across, worst(dots[2], dimension), dimension)
    P, Q = exact(p, q)
    true, size = P * P * dots[0] + 2 * P * Q * dots[1] + Q * Q * dots[2], P * root(dots[0]) + Q * root(dots[2])
    assert true <= Fraction(found) <= true + 4 * doubt(dimension) * size**2 + TINY


@given(length=positive, w=positive, b=signed, slope=small, offset=small, dimension=dimensions)
def test_what_a_cut_is_doubted_by(length, w, b, slope, offset, dimension):
    a_square, w_square = Fraction(length) ** 2, Fraction(w) ** 2
    found = rounding.plane_doubt(worst(a_square, dimension), worst(w_square, dimension), b, CutError(slope, offset), dimension)
    across = Fraction(dot_gamma(dimension)) * root(a_square * w_square)  # that of a and w
    own = Fraction(1, 2**53) * abs(root(a_square * w_square) + Fraction(b))
    error = Fraction(slope) * root(w_square) + Fraction(offset)
    assert Fraction(found) >= across + own + error
    assert Fraction(found) <= 2 * doubt(dimension) * (root(a_square * w_square) + abs(Fraction(b))) + error * LOOSE + TINY


@given(
    near=triples, a=triples, c_bar=positive, pull=st.floats(0.01, 100.0), b=signed, slope=st.floats(0.0, 1e-3), offset=small,
    above=positive, apart=positive, axis=st.integers(0, 2),
)  # fmt: skip
def test_an_intercept_is_no_further_than_what_the_true_cut_allows(near, a, c_bar, pull, b, slope, offset, above, apart, axis):
    """With the worst that `dot` may give, and the worst cut that its error allows, along one axis."""
    dots = product(near, near), product(a, a), product(a, near)
    primal = float(dots[0]) / 2 + above
    bound = primal - min(apart, above)
    across = nextafter(float(dots[2] + Fraction(dot_gamma(3)) * root(dots[0] * dots[1])), inf)
    found = Nearby(c_bar, np.array(near), primal, bound).farthest(pull, worst(dots[1], 3), across, b, CutError(slope, offset))
    assume(found is not None)
    C, P, radius = Fraction(c_bar), Fraction(primal), root(2 * (Fraction(primal) - Fraction(bound)))
    for moved in (-slope, slope):
        true = [Fraction(x) + (j == axis) * Fraction(moved) for j, x in enumerate(a)]
        length = root(sum((Fraction(x) + C * y) ** 2 for x, y in zip(near, true, strict=True)))
        most = length**2 / 2 if length <= radius else length * radius - radius**2 / 2
        reach = P - dots[0] / 2 - C * (product(near, true) + Fraction(b) - Fraction(offset)) + most
        assert Fraction(found) >= reach / (C * Fraction(pull))


@given(bound=st.floats(1e-250, 1e250))
def test_a_grid_is_as_fine_as_is_said(bound):
    q = Fraction(rounding.spacing(rounding.exact_rounder(bound)))
    assert Fraction(bound) <= q * 2**51 < 2 * Fraction(bound) * LOOSE


@given(terms=st.lists(signed, min_size=1, max_size=30))
def test_sums_on_a_grid_are_exact_in_every_order_and_off_by_what_is_said(terms):
    grids = Grids.holding(1.0, max(sum(map(abs, terms)), 1e-300))
    r = grids.weight
    rounded = [(x + r) - r for x in terms]
    assert sum(rounded) == sum(reversed(rounded)) == float(sum(map(Fraction, rounded)))
    away = abs(sum(map(Fraction, rounded)) - sum(map(Fraction, terms)))
    assert away <= Fraction(grids.weight_error(len(terms)))
    fine = grids.finer(len(terms))
    rests = [((x - y) + fine.fine_weight) - fine.fine_weight for x, y in zip(terms, rounded, strict=True)]
    assert sum(rests) == sum(reversed(rests)) == float(sum(map(Fraction, rests)))
    both = sum(map(Fraction, rounded)) + sum(map(Fraction, rests))
    assert abs(both - sum(map(Fraction, terms))) <= Fraction(fine.weight_error(len(terms)))
    assert (grids.folds, fine.folds) == (1, 2)
    assert fine.weight_error(len(terms)) < 1e-9 * max(grids.weight_error(len(terms)), 1e-300) or len(terms) > 10**6


@given(rows=st.integers(1, 10**6), slope=positive, offset=positive, total=positive)
def test_errors_of_a_cut_count_its_terms_and_its_roundings(rows, slope, offset, total):
    scale = RowScale(rows, 3 * rows, 3, 2.0)
    grids = Grids.holding(slope * total, offset * total)
    found = scale.cut_error(grids, slope, offset, total, LossRounding(conjugate=2))
    q, T = Fraction(rounding.spacing(grids.vector)), Fraction(total)
    true = q / 2 * root(Fraction(3 * rows * rows)) / T
    assert true + Fraction(2, 2**53) * Fraction(slope) <= Fraction(found.slope)
    assert Fraction(found.slope) <= true * LOOSE + 2 * doubt() * Fraction(slope) + TINY
    true = Fraction(rounding.spacing(grids.weight)) / 2 * rows / T
    assert true + Fraction(3, 2**53) * Fraction(offset) <= Fraction(found.offset)
    assert Fraction(found.offset) <= true * LOOSE + 2 * doubt() * Fraction(offset) + TINY


@given(
    rows=st.integers(1, 10**6), computed=positive, weight=positive, error=small,
    slope=st.floats(0.1, 10.0), near=st.integers(0, 8), value=st.integers(1, 40),
)  # fmt: skip
def test_a_loss_is_no_larger_than_is_said(rows, computed, weight, error, slope, near, value):
    loss = LossRounding(slope, value, near, 1)
    found = rounding.loss_above(computed, rows, weight, error, loss)
    e = Fraction(1, 2**53)
    least = Fraction(computed) * (1 + value * e) + Fraction(slope) * Fraction(error) + near * e * Fraction(weight)
    assert least <= Fraction(found)
    around = (2 * doubt() + 2 * value * e + 8 * (rows * e) ** 2) * Fraction(computed) + 2 * near * e * Fraction(weight)
    assert Fraction(found) <= Fraction(computed) + Fraction(slope) * Fraction(error) * LOOSE + around + TINY


@pytest.mark.parametrize("steps", [[1.0], [0.3, 0.9], [1.7, 0.01, 0.5]])
@given(z=st.lists(st.tuples(signed, signed, signed, signed), min_size=1, max_size=1))
def test_scores_that_are_carried_along_are_off_by_what_is_said(steps, z):
    """One row of one entry 1 and weight 1: its score is w itself, and S = 1."""
    scale = RowScale(1, 1, 1, 1.0)
    drift, scored = Drift(), z[0][: len(steps)]
    w_b, z_b = Fraction(0), 0.0
    for k, w in zip(steps, scored, strict=True):
        drift.scored = abs(w)
        carried = z_b + k * (w - z_b)
        w_b += Fraction(k) * (Fraction(w) - w_b)
        before = drift.ahead(k, scale)
        drift.step(k, abs(float(w_b)) * (1 + 1e-12), scale)
        assert before >= 0.0
        z_b = carried
        assert abs(Fraction(z_b) - w_b) <= Fraction(drift.error)
    assume(drift.error > 0.0)
    error = drift.error
    drift.step(0.0, 1e300, scale)
    assert drift.error == error == drift.ahead(0.0, scale)
