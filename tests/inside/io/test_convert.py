"""What goes into `convert` comes out of the store: every kind of input, order, split, refusal and count."""

import os
from collections import Counter

import kit.shared.convert
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.shared.convert import leftovers
from reference.rows import read_rows, store_bytes, write_svmlight

import streamcut
from streamcut import convert
from streamcut.errors import MemoryBudgetError, NotFoundError, UsageError
from streamcut.foundation.systems import resident_bytes
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import make_plan
from streamcut.io.stores.verify import verify_store
from streamcut.io.stores.writer import StoreWriter, writer_bytes

rows = kit.shared.convert.rows
groups = kit.shared.convert.groups


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_text_comes_back_as_it_was(tmp_path, rows, backend):
    text = write_svmlight(tmp_path / "a.svm", rows)
    report = convert(text, tmp_path / "a.store", backend=backend, shard_nnz=300)
    assert read_rows(tmp_path / "a.store") == rows
    assert verify_store(tmp_path / "a.store", read_data=True).problems == ()
    assert len(streamcut.open(tmp_path / "a.store").manifest.shards) > 3
    assert report.outputs[str(tmp_path / "a.store")].n_rows == report.rows == 500
    assert report.bytes_in == text.stat().st_size
    assert report.counters == {}
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("grouped", [False, True])
def test_shuffle_keeps_rows_and_groups_and_depends_on_the_seed_alone(tmp_path, rows, groups, grouped):
    given_rows = groups if grouped else rows
    text = write_svmlight(tmp_path / "a.svm", given_rows)
    convert(text, tmp_path / "1.zarr", shuffle=5, threads=1, shard_nnz=300)
    convert(
        text, tmp_path / "2.zarr", shuffle=5, threads=2, memory=resident_bytes() + 120 * 10**6, shard_nnz=300, scratch=tmp_path
    )
    convert(text, tmp_path / "3.zarr", shuffle=6, shard_nnz=300)
    first = read_rows(tmp_path / "1.zarr")
    assert first != given_rows
    assert Counter(first) == Counter(given_rows)
    assert store_bytes(tmp_path / "1.zarr") == store_bytes(tmp_path / "2.zarr")
    assert read_rows(tmp_path / "3.zarr") != first
    if grouped:
        order = list(dict.fromkeys(row[1] for row in first))
        assert first == [row for qid in order for row in given_rows if row[1] == qid], (
            "groups stay whole and in their inner order"
        )
    assert leftovers(tmp_path) == []


def test_a_row_beyond_the_memory_is_refused_with_both_numbers(tmp_path):
    (tmp_path / "wide.svm").write_text("1 " + " ".join(f"{k}:1" for k in range(1, 2_000_000)) + "\n")
    with pytest.raises(MemoryBudgetError, match=r"wide\.svm:1: .*raise memory"):
        convert(tmp_path / "wide.svm", tmp_path / "a.zarr", memory=resident_bytes() + 160 * 10**6, threads=1)
    assert not (tmp_path / "a.zarr").exists()


@settings(max_examples=50, deadline=None)
@given(limit=st.integers(1, 4000), base=st.integers(50, 500), sorting=st.booleans(), writers=st.integers(1, 2))
def test_a_plan_adds_up_to_its_limit(limit, base, sorting, writers):
    arguments = {"threads": 2, "shard_nnz": None, "sorting": sorting, "writers": writers}
    try:
        plan = make_plan(limit << 20, base << 20, **arguments)
    except MemoryBudgetError:
        least = make_plan(None, base << 20, **arguments)
        assert least.limit > limit << 20 or least.limit == 10**9
        return
    writing = writer_bytes(plan.shard_nnz, plan.threads)
    work = writing if sorting else plan.block_bytes * 42 + writers * writing
    assert (base << 20) + work + plan.sort_bytes + plan.row_bytes <= limit << 20


def test_outputs_that_cannot_be(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    convert(text, tmp_path / "a.zarr")
    before = store_bytes(tmp_path / "a.zarr")
    with pytest.raises(UsageError, match="exists; choose another name, or replace it with force=True"):
        convert(text, tmp_path / "a.zarr")
    with pytest.raises(NotFoundError, match="its directory does not exist"):
        convert(text, tmp_path / "no" / "a.zarr")
    for source, output in [(tmp_path / "a.zarr", tmp_path / "a.zarr" / "b.zarr"), (tmp_path / "a.zarr", tmp_path / "a.zarr")]:
        with pytest.raises(UsageError, match="lies inside the input"):
            convert(source, output, force=True)
    with pytest.raises(UsageError, match="is the output itself"):
        convert(text, tmp_path / "b.zarr", split=0.5, split_output=tmp_path / "b.zarr")
    for impossible in ({"shard_nnz": 0}, {"threads": 0}):
        with pytest.raises(UsageError, match="at least 1"):
            StoreWriter(tmp_path / "b.zarr", options={}, **impossible)
    (tmp_path / "b-test.zarr").touch()
    with pytest.raises(UsageError, match=r"b-test\.zarr: exists"):
        convert(text, tmp_path / "b.zarr", split=0.5)
    assert store_bytes(tmp_path / "a.zarr") == before
    convert(write_svmlight(tmp_path / "b.svm", rows[:9]), tmp_path / "a.zarr", force=True)
    assert read_rows(tmp_path / "a.zarr") == rows[:9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": 1.5}, "split: 1.5 is not between 0 and 1"),
        ({"split_output": "x"}, "split_output needs split"),
        ({"max_errors": 3}, "max_errors needs on_error='skip'"),
        ({"hash_bits": 40}, "outside 1 … 31"),
        ({"hash_bits": 4, "n_features": 3}, "leave n_features out"),
        ({"threads": 0}, "workers: 0 is too small"),
        ({"shard_nnz": 0}, "shard_nnz: 0 is too small"),
        ({"backend": "sql"}, "'sql' is unknown; use one of zarr, hdf5"),
        ({"memory": "100"}, "add a unit"),
        ({"label_map": "a=1,a=2"}, "'a' is given twice"),
        ({"label_map": "a=b,c=1"}, "'a=b' is not word=number"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(UsageError, match=message):
        ConvertOptions(**options)


def test_label_maps_come_as_text_files_and_dictionaries(tmp_path):
    (tmp_path / "map").write_text("ham=-1\nspam=1\n")
    (tmp_path / "a.svm").write_text("ham 1:1\nspam 1:1\nspam 2:1\n")
    for given_map in ("ham=-1,spam=1", str(tmp_path / "map"), {"ham": -1, "spam": 1}):
        report = convert(tmp_path / "a.svm", tmp_path / "a.zarr", label_map=given_map, force=True)
        assert report.outputs[str(tmp_path / "a.zarr")].labels == {-1.0: 1, 1.0: 2}
    with pytest.raises(NotFoundError, match="neither word=number"):
        ConvertOptions(label_map="nothing")


def test_equal_data_make_equal_stores_whatever_the_threads_blocks_and_times(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    convert(text, tmp_path / "1.zarr", threads=1, shard_nnz=300)
    os.utime(text, (1, 1))
    convert(text, tmp_path / "2.zarr", threads=2, memory=resident_bytes() + 120 * 10**6, shard_nnz=300)
    assert store_bytes(tmp_path / "1.zarr") == store_bytes(tmp_path / "2.zarr")
