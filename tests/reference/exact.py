"""Losses of a score as the exact numbers that they are. Every float64 is a whole number times a power of two, so most losses are
rational; logarithms and powers of e are enclosed by Decimal, whose `ln` and `exp` are rounded correctly.

A loss gives (low, high), equal where it is rational and otherwise equal in 18 digits or more.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

Interval = tuple[Fraction, Fraction]
Loss = Callable[[Fraction, Fraction, dict[str, Fraction]], Interval]  # of a score, its target, the loss's options

_DIGITS = {"prec": 40, "Emax": 10**6, "Emin": -(10**4), "traps": []}
_NEAREST = Context(**_DIGITS)
_DOWN, _UP = (Context(**_DIGITS, rounding=rounding) for rounding in (ROUND_FLOOR, ROUND_CEILING))
_FAR = 300  # e^−z of a larger z is as good as nothing


def as_decimals(x: Fraction) -> tuple[Decimal, Decimal]:
    """Decimals of 40 digits around x."""
    above, below = Decimal(x.numerator), Decimal(x.denominator)
    return _DOWN.divide(above, below), _UP.divide(above, below)


def exp(x: Fraction) -> Interval:
    """An enclosure of e^x, x ≤ 10⁵."""
    if x < -_FAR:
        return Fraction(0), exp(Fraction(-_FAR))[1]
    low, high = as_decimals(x)
    return Fraction(_NEAREST.exp(low).next_minus(_NEAREST)), Fraction(_NEAREST.exp(high).next_plus(_NEAREST))


def log(x: Fraction) -> Interval:
    """An enclosure of log x, x > 0."""
    if x == 1:
        return exactly(Fraction(0))
    low, high = as_decimals(x)
    return Fraction(_NEAREST.ln(low).next_minus(_NEAREST)), Fraction(_NEAREST.ln(high).next_plus(_NEAREST))


def log_of_one_more(low: Fraction, high: Fraction) -> Interval:
    """An enclosure of log(1 + t) for t ≥ 0 in [low, high]: t − t²/2 ≤ log(1 + t) ≤ t."""
    if high < Fraction(1, 10**18):
        return low - low * low / 2, high
    return log(1 + low)[0], log(1 + high)[1]


def exactly(value: Fraction) -> Interval:
    return value, value


def hinge(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    return exactly(max(Fraction(0), 1 - y * s))


def squared_hinge(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    return exactly(max(Fraction(0), 1 - y * s) ** 2)


def smoothed_hinge(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    below = max(Fraction(0), 1 - y * s)
    return exactly(below * below / 2 if below < 1 else below - Fraction(1, 2))


def logistic(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    z = y * s
    low, high = log_of_one_more(*exp(-abs(z)))
    return (low, high) if z > 0 else (low - z, high - z)


def squared(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    return exactly((s - y) ** 2 / 2)


def huber(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    far, delta = abs(s - y), options["delta"]
    return exactly(far * far / 2 if far <= delta else delta * (far - delta / 2))


def epsilon_insensitive(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    return exactly(max(Fraction(0), abs(s - y) - options["epsilon"]))


def squared_epsilon_insensitive(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    return exactly(max(Fraction(0), abs(s - y) - options["epsilon"]) ** 2)


def quantile(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    return exactly((y - s) * options["quantile"] if s < y else (s - y) * (1 - options["quantile"]))


def poisson(s: Fraction, y: Fraction, options: dict[str, Fraction]) -> Interval:
    """e^s − y s − (y − y log y)."""
    low, high = exp(s)
    below, above = log(y) if y else exactly(y)
    return max(Fraction(0), low - y * s - y + y * below), high - y * s - y + y * above


LOSSES: dict[str, Loss] = {
    "hinge": hinge,
    "squared-hinge": squared_hinge,
    "smoothed-hinge": smoothed_hinge,
    "logistic": logistic,
    "squared": squared,
    "huber": huber,
    "epsilon-insensitive": epsilon_insensitive,
    "squared-epsilon-insensitive": squared_epsilon_insensitive,
    "quantile": quantile,
    "poisson": poisson,
}
