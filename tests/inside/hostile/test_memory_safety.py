"""No number, however odd, leads compiled code out of its arrays; and arrays from outside are looked at before it sees them.

scripts/test_bounds_checked.sh runs all tests with every index checked; here is what no other test provokes.
"""

from __future__ import annotations

import numpy as np
import pytest

from streamcut.compiled.merging import best_h, best_partner, least_degradations
from streamcut.errors import BadInputError
from streamcut.io.memory import MemoryDataset

pytestmark = pytest.mark.process

LEAST = least_degradations()
ODD = [np.nan, np.inf, -np.inf, 1.0000001, 1e300, -1.0]


@pytest.mark.parametrize("odd", ODD)
def test_odd_kernel_values_find_no_place_outside_the_tables(odd):
    assert best_h(0.7, odd) == (1.0, 0.7)
    beta, k = np.array([1.0, 0.5, 2.0, -1.0, 100.0]), np.array([1.0, 0.3, odd, 0.2, odd])
    slot, *_ = best_partner(1, beta, k, 5, LEAST, np.empty(5, np.int32), np.empty(5))
    assert slot in (-1, 0, 2, 4)


@pytest.mark.parametrize("odd", [np.nan, np.inf, 1e300])
def test_odd_coefficients_find_no_place_outside_the_tables(odd):
    assert best_h(odd, 0.5)[0] == 1.0
    beta, k = np.array([1.0, odd, 2.0, odd]), np.array([1.0, 0.3, 0.5, 0.2])
    for least in (0, 1):
        slot, *_ = best_partner(least, beta, k, 4, LEAST, np.empty(4, np.int32), np.empty(4))
        assert -1 <= slot < 4
        assert slot != least


def test_fewer_features_than_the_matrix_has_are_refused():
    with pytest.raises(BadInputError, match="X has 5 features, but n_features is 3"):
        MemoryDataset(np.eye(5), np.arange(5.0), n_features=3)
