"""lower bound ≤ F(w) ≤ primal, in exact arithmetic and without any tolerance, on thousands of badly scaled problems.

scripts/checks/exact_bounds.py tries as many more as one likes.
"""

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from reference.exact import exp, log, log_of_one_more


@pytest.mark.parametrize("x", [Fraction(1, 3), Fraction(-7, 2), Fraction(-299), Fraction(10) ** -40, Fraction(50)])
def test_enclosures_hold_what_they_enclose(x):
    with localcontext() as context:
        context.prec = 200
        value = (Decimal(x.numerator) / Decimal(x.denominator)).exp()
        low, high = exp(x)
        assert low < Fraction(value) < high
        assert high - low < high / 10**35
        assert log(low)[0] < x < log(high)[1]
        more = log_of_one_more(low, high)
        assert more[0] < Fraction((1 + value).ln()) < more[1]
        assert more[1] - more[0] < more[1] / 10**18
