"""What bundle-dca keeps of the rows: the cache of those with small keys, the slots of their dual variables, aligned blocks."""

from unittest import mock

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from streamcut.bundle.bundle import Bundle
from streamcut.compiled import dual, records
from streamcut.compiled.splitmix import shuffle
from streamcut.execution import row_cache
from streamcut.execution.row_cache import CacheSize, joined_seed
from streamcut.foundation.rounding import CutError
from streamcut.losses.hinge import Hinge
from streamcut.oracles.dual.loss_cache import LossCache


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 5))
def test_a_full_cache_keeps_rows_of_small_keys(seed, room, parts):
    rng = np.random.default_rng(seed)
    n = 60
    X = sp.random_array((n, 9), density=0.5, format="csr", rng=rng)
    X.data += 1.0
    keys, codes = rng.permutation(n).astype(float), np.zeros((n, 1), np.uint16)
    cache = LossCache(CacheSize(room + 1, 10 * room + 9, "int32", "float64"), Hinge())
    indptr, indices, y = X.indptr.astype(np.int64), X.indices.astype(np.int32), np.ones(n)
    for rows in np.array_split(np.arange(n), parts):
        part = slice(rows[0], rows[-1] + 1)

        def offered(first, *cached, part=part):
            rows = records.Rows(indptr[part.start : part.stop + 1], indices, X.data, y[part], None)
            return dual.offer(Hinge(), first, rows, keys[part], codes[part], 0, 1.0, np.arange(part.start, part.stop), *cached)

        cache.fill(offered, len(rows))
    kept = cache._number[: cache.n]
    assert len(kept) >= int(0.8 * (room + 1)) - 1 or len(kept) == n
    assert (np.diff(kept) > 0).all()
    lost = np.setdiff1d(np.arange(n), kept)
    lost = lost[(np.diff(indptr)[lost] > 0)]
    assert (keys[kept] < cache.limit).all()
    assert (keys[lost] >= cache.limit).all()
    for at, row in enumerate(kept):
        mine = slice(cache._indptr[at], cache._indptr[at + 1])
        np.testing.assert_array_equal(cache._indices[mine], X.indices[X.indptr[row] : X.indptr[row + 1]])
        np.testing.assert_array_equal(cache._data[mine], X.data[X.indptr[row] : X.indptr[row + 1]])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(16, 200), st.integers(0, 200))
def test_sweeps_over_many_rows_go_from_group_to_group_and_look_at_each_row_once(seed, n, left):
    rng = np.random.default_rng(seed)
    with mock.patch.object(row_cache, "_GROUP_NNZ", 6):  # 3 rows
        cache = LossCache(CacheSize(n, 2 * n, "int32", None), Hinge())
        cache.n, cache._indptr[:] = n, 2 * np.arange(n + 1)
        rows = rng.permutation(n)[: min(left, n)]
        cache._order = rows.copy()
        cache._shuffle(seed)
    groups = {tuple(group) for group in np.sort(rows)[: len(rows) // 3 * 3].reshape(-1, 3)}
    assert sorted(cache._order) == sorted(rows)
    if n >= 24:
        assert {tuple(sorted(group)) for group in cache._order[: len(rows) // 3 * 3].reshape(-1, 3)} == groups
    if len(rows) > 40:
        assert (np.diff(cache._order) < 0).any()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(4, 8))
def test_slots_follow_merged_and_dropped_cuts(seed, max_cuts):
    rng = np.random.default_rng(seed)
    bundle, kept = Bundle(3, 10.0, max_cuts), {}
    for _ in range(12):
        merges, slots = bundle.make_room(2)
        for merge in merges:
            kept[merge.into] = (1 - merge.share) * kept[merge.into] + merge.share * kept[merge.gone]
        for slot in slots:
            kept[slot] = rng.standard_normal(3)
            bundle.add(kept[slot], rng.uniform(0, 1), CutError(0.0, 0.0))
        w = bundle.solve(1e-9).w
        mixed = sum(share * kept[slot] for slot, share in enumerate(bundle.mixture()) if share > 0.0)
        np.testing.assert_allclose(w, -10.0 * mixed, atol=1e-12)
        assert len(set(bundle.slots)) == len(bundle) + 1


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
