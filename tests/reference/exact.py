"""F(w) as the exact number that it is. Every float64 is a whole number times a power of two, so F is a rational number for most
losses; logarithms and powers of e are enclosed by Decimal, whose `ln` and `exp` are rounded correctly.

`objective` gives (low, high) with low ≤ F(w) ≤ high, equal where F is rational and otherwise equal in 18 digits or more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

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


def dyadic(values: list[float]) -> tuple[list[int], int]:
    """(whole numbers, digits) with values[i] = numbers[i] / 2^digits."""
    ratios = [value.as_integer_ratio() for value in values]
    digits = max((below.bit_length() - 1 for _, below in ratios), default=0)
    return [above << (digits - below.bit_length() + 1) for above, below in ratios], digits


def objective(parts: tuple[Fraction, Fraction, Fraction], C: float) -> Interval:
    """½‖w‖² + C Σ u_i ℓ_i from `ExactRows.parts`."""
    square, low, high = parts
    return square + Fraction(C) * low, square + Fraction(C) * high


@dataclass(frozen=True)
class ExactRows:
    """Rows as whole numbers over 2^digits, a constant 1 after the last feature; their targets (y = ±1 for labels), their weights.

    loss, options  the loss of each row, a name of `LOSSES`
    """

    rows: list[list[int]]
    digits: int
    targets: list[Fraction]
    weights: list[Fraction]
    loss: Loss
    options: dict[str, Fraction]

    @classmethod
    def of(cls, X: Any, targets: Any, weights: Any, loss: str, options: dict[str, float]) -> ExactRows:
        """X (n, d), targets (n,), weights (n,), all of them floats."""
        n, d = X.shape
        flat, digits = dyadic([*X.astype(float).ravel().tolist(), 1.0])
        rows = [[*flat[i * d : (i + 1) * d], flat[-1]] for i in range(n)]
        exact = [[Fraction(value) for value in column.tolist()] for column in (targets, weights)]
        return cls(rows, digits, *exact, LOSSES[loss], {name: Fraction(value) for name, value in options.items()})

    def parts(self, model: Any, bias: float) -> tuple[Fraction, Fraction, Fraction]:
        """½‖w‖² of a linear model, the weight of its bias feature included, and an enclosure of Σ u_i ℓ_i."""
        w, digits = dyadic([*model.weights.tolist(), float(model.intercept)])
        one = 1 << (digits + self.digits)
        low = high = Fraction(0)
        for row, y, u in zip(self.rows, self.targets, self.weights, strict=True):
            if u:
                score = Fraction(sum(x * v for x, v in zip(row, w, strict=True) if x and v), one)
                least, most = self.loss(score, y, self.options)
                low, high = low + u * least, high + u * most
        square = Fraction(sum(v * v for v in w[:-1]), 1 << (2 * digits))
        if bias:
            square += (Fraction(float(model.intercept)) / Fraction(bias)) ** 2
        return square / 2, low, high
