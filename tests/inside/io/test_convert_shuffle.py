"""The out-of-core order of rows equals a plain sort, whatever the memory, and leaves nothing behind."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamcut.errors import DiskFullError, MemoryBudgetError
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.shuffle import PIECE, ExternalSort, random_keys

ROOM = 2 * PIECE * 16  # what the sort needs beside the rows themselves


def make_rows(n, seed=0, *, mean=5, qid=None, ones=False):
    rng = np.random.default_rng(seed)
    lengths = rng.poisson(mean, n)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.sort(rng.choice(1000, k, replace=False)) for k in lengths] + [np.empty(0)]).astype(np.int32)
    data = None if ones else rng.normal(size=len(indices)).astype(np.float32)
    return Chunk(indptr, indices, data, np.arange(n, dtype=float), qid)


def as_lists(chunks):
    out = []
    for chunk in chunks:
        for i in range(chunk.n_rows):
            cut = slice(chunk.indptr[i], chunk.indptr[i + 1])
            values = np.ones(cut.stop - cut.start) if chunk.data is None else chunk.data[cut]
            out.append((chunk.y[i], chunk.indices[cut].tolist(), values.tolist(), None if chunk.qid is None else chunk.qid[i]))
    return out


def sort_out_of_core(rows, keys, folder, memory, blocks=7):
    with ExternalSort(folder, memory) as sorting:
        edges = np.linspace(0, rows.n_rows, blocks + 1).astype(int)
        for a, b in itertools.pairwise(edges):
            sorting.add(rows.rows(a, b), keys[a:b])
        runs = len(sorting._runs)
        result = as_lists(sorting.sorted())
    assert not folder.exists()
    return result, runs


@settings(max_examples=25, deadline=None)
@given(n=st.integers(0, 400), keys=st.integers(1, 500), seed=st.integers(0, 1000), room=st.sampled_from([6_000, 20_000, 10**6]))
def test_order_equals_a_stable_sort(tmp_path_factory, n, keys, seed, room):
    rows = make_rows(n, seed, ones=seed % 3 == 0)
    rng = np.random.default_rng(seed)
    key = rng.integers(0, keys, n).astype(np.uint64)
    expected = [as_lists([rows])[i] for i in np.argsort(key, kind="stable")]
    got, _ = sort_out_of_core(rows, key, tmp_path_factory.mktemp("sort") / "runs", ROOM + room)
    assert got == expected


def test_many_runs_give_the_order_of_one(tmp_path):
    rows = make_rows(5000, qid=np.arange(5000) // 7)
    key = random_keys(3, rows.qid)
    few, runs_few = sort_out_of_core(rows, key, tmp_path / "a", ROOM + 10**7)
    many, runs_many = sort_out_of_core(rows, key, tmp_path / "b", ROOM + 40_000)
    assert runs_few == 0
    assert runs_many > 10
    assert few == many
    qid = [row[3] for row in many]
    assert 1 + sum(a != b for a, b in zip(qid[1:], qid[:-1], strict=True)) == len(set(qid)), "a group was torn apart"


def test_a_row_that_cannot_fit_is_refused_with_both_numbers(tmp_path):
    rows = make_rows(3, mean=600)
    with pytest.raises(MemoryBudgetError, match=r"row 0 .* entries.*raise memory"):
        sort_out_of_core(rows, np.zeros(3, np.uint64), tmp_path / "runs", ROOM + 1000)


def test_what_a_dead_process_left_is_removed(tmp_path):
    rows = make_rows(500)
    (tmp_path / "runs" / "000000").mkdir(parents=True)
    (tmp_path / "runs" / "000000" / "key").write_bytes(b"junk")
    got, runs = sort_out_of_core(rows, np.arange(500, dtype=np.uint64), tmp_path / "runs", ROOM + 20_000)
    assert runs > 1
    assert got == as_lists([rows])


def test_a_full_scratch_disk_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.run:2:ENOSPC")
    monkeypatch.setattr("streamcut.foundation.files._hits", Counter())
    with pytest.raises(DiskFullError, match=r"runs/000001: No space left .* bytes needed"):
        sort_out_of_core(make_rows(500), np.arange(500, dtype=np.uint64), tmp_path / "runs", ROOM + 20_000)
    assert not (tmp_path / "runs").exists()


def test_random_keys_never_tie_and_look_random():
    numbers = np.arange(200_000)
    keys = random_keys(1, numbers)
    assert len(np.unique(keys)) == len(numbers)
    assert not np.array_equal(np.argsort(keys), np.argsort(random_keys(2, numbers)))
    assert not np.array_equal(keys, random_keys(1, numbers, stream=1))
    assert abs(np.corrcoef(keys.astype(float), numbers)[0, 1]) < 0.01
    assert abs((keys < 2**63).mean() - 0.5) < 0.005
