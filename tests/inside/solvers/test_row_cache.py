"""The order in which sweeps visit cached rows."""

from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from streamcut.compiled.splitmix import shuffle
from streamcut.execution import row_cache
from streamcut.execution.row_cache import joined_seed, shuffle_rows


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(16, 200), st.integers(0, 200))
def test_sweeps_over_many_rows_go_from_group_to_group_and_look_at_each_row_once(seed, n, left):
    rng = np.random.default_rng(seed)
    with mock.patch.object(row_cache, "_GROUP_NNZ", 6):  # 3 rows
        rows = rng.permutation(n)[: min(left, n)]
        order = rows.copy()
        shuffle_rows(order, 2 * n, n, seed)
    groups = {tuple(group) for group in np.sort(rows)[: len(rows) // 3 * 3].reshape(-1, 3)}
    assert sorted(order) == sorted(rows)
    if n >= 24:
        assert {tuple(sorted(group)) for group in order[: len(rows) // 3 * 3].reshape(-1, 3)} == groups
    if len(rows) > 40:
        assert (np.diff(order) < 0).any()


def test_every_order_of_rows_comes_as_often_as_any_other():
    counts = {}
    for seed in range(6000):
        order = np.arange(4)
        shuffle(order, 5, joined_seed(seed // 100, seed % 100, 7, 0))
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert len(counts) == 24
    assert chisquare(list(counts.values())).pvalue > 1e-4


def test_seeds_of_other_numbers_are_others():
    seeds = {joined_seed(a, b, c, d) for a in range(8) for b in range(8) for c in (0, 1000, 1001, 2**40) for d in range(4)}
    assert len(seeds) == 8 * 8 * 4 * 4
    assert all(0 <= seed < 2**63 for seed in seeds)
