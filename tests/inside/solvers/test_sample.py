"""The sample of free rows that a row cache takes under accelerated passes."""

import numpy as np
import pytest

from streamcut.losses.loss import FREE_FIRST
from streamcut.oracles.random_order import sample_free


def drawn(numbers, seed):
    keys = np.zeros(len(numbers))
    sample_free(keys, FREE_FIRST, numbers, seed)
    return keys


def test_free_rows_are_drawn_by_their_number_and_the_seed_alone():
    numbers = np.random.default_rng(0).permutation(20_000)
    keys = drawn(numbers, (3, 0))
    assert np.array_equal(keys[5:9], drawn(numbers[5:9], (3, 0)))
    for other in (4, 0), (3, 1):
        assert abs(np.corrcoef(keys, drawn(numbers, other))[0, 1]) < 0.03  # four standard deviations


def test_draws_are_uniform():
    keys = drawn(np.arange(100_000), (1, 2))
    assert keys.min() >= 0.0
    assert keys.max() < 1.0
    counts = np.bincount((10 * keys).astype(int), minlength=10)
    assert counts == pytest.approx(np.full(10, 10_000), abs=400)
    assert abs(np.corrcoef(keys[1:], keys[:-1])[0, 1]) < 0.013


def test_rows_at_a_bound_and_left_out_keep_their_keys():
    keys = np.array([0.2, FREE_FIRST, FREE_FIRST + 0.3, np.inf, 17.0])
    sample_free(keys, FREE_FIRST, np.arange(5), (0, 0))
    assert keys[1:4].tolist() == [FREE_FIRST, FREE_FIRST + 0.3, np.inf]
    assert (keys[[0, 4]] < 1.0).all()
