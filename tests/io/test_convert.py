"""What goes into `convert` comes out of the store: every kind of input, order, split, refusal and count."""

import lzma
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.rows import make_rows, read_rows, store_bytes, write_svmlight

from streamcut.errors import BadInputError, LockedError, MemoryBudgetError, NotFoundError, UsageError
from streamcut.foundation.files import locked
from streamcut.foundation.systems import resident_bytes
from streamcut.io.conversion.convert import convert
from streamcut.io.conversion.options import ConvertOptions
from streamcut.io.conversion.plan import make_plan
from streamcut.io.opening import open_dataset
from streamcut.io.stores.verify import verify_store
from streamcut.io.stores.writer import StoreWriter


@pytest.fixture(scope="module")
def rows():
    return make_rows(500, 1)


@pytest.fixture(scope="module")
def groups():
    return make_rows(500, 2, groups=7)


def leftovers(folder: Path) -> list[str]:
    """What a conversion should not leave behind."""
    return [name for name in os.listdir(folder) if name.endswith((".partial", ".tmp", ".replaced", ".scratch"))]


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_text_comes_back_as_it_was(tmp_path, rows, backend):
    text = write_svmlight(tmp_path / "a.svm", rows)
    report = convert(text, tmp_path / "a.store", backend=backend, shard_nnz=300)
    assert read_rows(tmp_path / "a.store") == rows
    assert verify_store(tmp_path / "a.store", read_data=True).problems == ()
    assert len(open_dataset(tmp_path / "a.store").manifest.shards) > 3
    assert report.outputs[str(tmp_path / "a.store")].n_rows == report.rows == 500
    assert report.bytes_in == text.stat().st_size
    assert report.counters == {}
    assert leftovers(tmp_path) == []


def test_several_files_directories_and_globs_are_read_in_order(tmp_path, rows):
    folder = tmp_path / "in"
    folder.mkdir()
    write_svmlight(folder / "b.svm", rows[200:])
    (folder / "a.svm.xz").write_bytes(lzma.compress(write_svmlight(tmp_path / "a.svm", rows[:200]).read_bytes()))
    convert(folder, tmp_path / "1.zarr")
    convert(str(folder / "*.svm*"), tmp_path / "2.zarr")
    convert([folder / "a.svm.xz", folder / "b.svm"], tmp_path / "3.zarr")
    assert read_rows(tmp_path / "1.zarr") == read_rows(tmp_path / "2.zarr") == read_rows(tmp_path / "3.zarr") == rows


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_a_store_can_be_stored_otherwise(tmp_path, groups, backend):
    convert(write_svmlight(tmp_path / "a.svm", groups), tmp_path / "a.zarr", shard_nnz=200, n_features=77)
    convert(tmp_path / "a.zarr", tmp_path / "b.store", backend=backend, shard_nnz=900)
    assert read_rows(tmp_path / "b.store") == groups
    assert open_dataset(tmp_path / "b.store").manifest.statistics == open_dataset(tmp_path / "a.zarr").manifest.statistics
    convert(tmp_path / "b.store", tmp_path / "c.zarr", shard_nnz=200)
    assert open_dataset(tmp_path / "c.zarr").manifest.fingerprint == open_dataset(tmp_path / "a.zarr").manifest.fingerprint


def test_matrices_with_labels_in_a_file(tmp_path):
    X = sp.random_array((300, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    y = np.arange(300) % 3
    sp.save_npz(tmp_path / "x.npz", X)
    scipy.io.mmwrite(tmp_path / "x.mtx", X, precision=17)
    np.save(tmp_path / "y.npy", y)
    for name in ("x.npz", "x.mtx"):
        convert(tmp_path / name, tmp_path / "x.zarr", labels=str(tmp_path / "y.npy"), force=True, shard_nnz=500)
        data = open_dataset(tmp_path / "x.zarr")
        chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
        assert data.manifest.statistics.labels == {0.0: 100, 1.0: 100, 2.0: 100}
        np.testing.assert_array_equal(np.concatenate([chunk.data for chunk in chunks]), X.data)
        np.testing.assert_array_equal(np.concatenate([chunk.indices for chunk in chunks]), X.indices)


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


def test_group_by_qid_sorts_groups_and_keeps_their_inner_order(tmp_path, groups):
    mixed = [groups[i] for i in np.random.default_rng(3).permutation(len(groups))]
    text = write_svmlight(tmp_path / "a.svm", mixed)
    with pytest.raises(BadInputError, match=r"a\.svm:\d+: qid .*group_by_qid=True"):
        convert(text, tmp_path / "a.zarr")
    assert leftovers(tmp_path) == []
    convert(text, tmp_path / "a.zarr", group_by_qid=True)
    assert read_rows(tmp_path / "a.zarr") == sorted(mixed, key=lambda row: row[1])
    with pytest.raises(BadInputError, match="the rows have no qid"):
        convert(write_svmlight(tmp_path / "b.svm", make_rows(5, 0)), tmp_path / "b.zarr", group_by_qid=True)


@pytest.mark.parametrize("options", [{}, {"shuffle": 1}])
@pytest.mark.parametrize("grouped", [False, True])
def test_split_deals_every_row_to_one_side(tmp_path, rows, groups, grouped, options):
    given_rows = groups if grouped else rows
    text = write_svmlight(tmp_path / "a.svm", given_rows)
    report = convert(text, tmp_path / "a.zarr", split=0.7, shard_nnz=200, **options)
    train, test = read_rows(tmp_path / "a.zarr"), read_rows(tmp_path / "a-test.zarr")
    assert list(report.outputs) == [str(tmp_path / "a.zarr"), str(tmp_path / "a-test.zarr")]
    assert Counter(train + test) == Counter(given_rows)
    assert 0.55 < len(train) / 500 < 0.85
    if grouped:
        assert not {row[1] for row in train} & {row[1] for row in test}
    if not options:
        kept = iter(given_rows)
        assert all(row in kept for row in train), "without a shuffle the rows keep their order"


def test_the_sides_of_a_split_do_not_depend_on_the_shuffle(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    convert(text, tmp_path / "a.zarr", split=0.5)
    convert(text, tmp_path / "b.zarr", split=0.5, split_output=tmp_path / "rest", shuffle=9)
    convert(text, tmp_path / "c.zarr", split=0.5, split_seed=1)
    assert Counter(read_rows(tmp_path / "a-test.zarr")) == Counter(read_rows(tmp_path / "rest"))
    assert read_rows(tmp_path / "a.zarr") != read_rows(tmp_path / "c.zarr")
    with pytest.raises(BadInputError, match="this output gets no rows"):
        convert(write_svmlight(tmp_path / "one.svm", rows[:1]), tmp_path / "one.zarr", split=0.5)


def test_unusual_things_are_counted_and_kept_in_the_store(tmp_path):
    (tmp_path / "a.svm").write_text("# head\n1 3:1 1:2\n-1 2:0\n1 1:1e-60")
    report = convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    expected = {"comment_lines": 1, "unsorted_rows": 1, "explicit_zeros": 1, "underflows": 1, "no_final_newline": 1}
    assert report.counters == expected
    stored = open_dataset(tmp_path / "a.zarr").manifest.source["counters"]
    assert {name: stored[name] for name in expected} == expected


def test_refused_lines_go_to_a_file_that_can_be_corrected(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\nspam 1:1\n1 2:x\n-1 2:1\n")
    report = convert(tmp_path / "a.svm", tmp_path / "a.zarr", on_error="skip")
    assert report.counters["skipped_lines"] == 2
    assert len(read_rows(tmp_path / "a.zarr")) == 2
    text = Path(report.rejects).read_text()
    assert "a.svm:2:1: " in text
    assert "a.svm:3:3: " in text
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["spam 1:1", "1 2:x"]
    with pytest.raises(BadInputError, match="more than 1 refused"):
        convert(tmp_path / "a.svm", tmp_path / "b.zarr", on_error="skip", max_errors=1)
    (tmp_path / "a.svm").write_text("1 1:1\n")
    assert convert(tmp_path / "a.svm", tmp_path / "a.zarr", on_error="skip", force=True).rejects is None
    assert not (tmp_path / "a.zarr.rejects").exists()


@pytest.mark.parametrize("content", ["", "# nothing\n\n"])
def test_no_rows(tmp_path, content):
    (tmp_path / "a.svm").write_text(content)
    for options in ({}, {"shuffle": 1}):
        with pytest.raises(BadInputError, match="no rows"):
            convert(tmp_path / "a.svm", tmp_path / "a.zarr", **options)
    assert os.listdir(tmp_path) == ["a.svm"]


def test_one_row_and_one_class(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    assert convert(tmp_path / "a.svm", tmp_path / "a.zarr").outputs[str(tmp_path / "a.zarr")].labels == {1.0: 1}


def test_a_row_or_group_beyond_the_memory_is_refused_with_both_numbers(tmp_path):
    (tmp_path / "wide.svm").write_text("1 " + " ".join(f"{k}:1" for k in range(1, 2_000_000)) + "\n")
    with pytest.raises(MemoryBudgetError, match=r"wide\.svm:1: .*memory='[0-9]+MB' would suffice"):
        convert(tmp_path / "wide.svm", tmp_path / "a.zarr", memory=resident_bytes() + 160 * 10**6, threads=1)
    line = "1 qid:1 " + " ".join(f"{k}:1" for k in range(1, 50_000)) + "\n"
    with open(tmp_path / "group.svm", "w") as file:
        file.writelines([line] * 200)
    with pytest.raises(MemoryBudgetError, match=r"qid 1 has .* entries or more.* need .* but memory leaves .*"):
        convert(
            tmp_path / "group.svm",
            tmp_path / "a.zarr",
            n_features=50_000,
            memory=resident_bytes() + 120 * 10**6,
            shard_nnz=1 << 18,
        )
    assert not (tmp_path / "a.zarr").exists()


def test_memory_too_small_says_the_least(tmp_path, rows):
    with pytest.raises(
        MemoryBudgetError, match=r"memory: 1\.00 MB is not enough: at least [\d.]+ [MG]B .* process itself takes [\d.]+ [MG]B"
    ):
        convert(write_svmlight(tmp_path / "a.svm", rows), tmp_path / "a.zarr", memory=10**6)


@settings(max_examples=50, deadline=None)
@given(limit=st.integers(1, 4000), base=st.integers(50, 500), sorting=st.booleans(), writers=st.integers(1, 2))
def test_a_plan_adds_up_to_its_limit(limit, base, sorting, writers):
    sizes = {
        "source_bytes": lambda block, threads: 40 * threads * block,
        "writer_bytes": lambda shard, threads: 30 * shard * threads,
    }
    arguments = {"threads": 2, "shard_nnz": None, "sorting": sorting, "writers": writers, **sizes}
    try:
        plan = make_plan(limit << 20, base << 20, **arguments)
    except MemoryBudgetError:
        least = make_plan(None, base << 20, **arguments)
        assert least.limit > limit << 20 or least.limit == 10**9
        return
    reading = sizes["source_bytes"](plan.block_bytes, plan.threads)
    writing = sizes["writer_bytes"](plan.shard_nnz, plan.threads)
    work = max(reading, writing) if sorting else reading + writers * writing
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
    (tmp_path / "b-test.zarr").mkdir()
    with pytest.raises(UsageError, match=r"b-test\.zarr: exists"):
        convert(text, tmp_path / "b.zarr", split=0.5)
    assert store_bytes(tmp_path / "a.zarr") == before
    convert(write_svmlight(tmp_path / "b.svm", rows[:9]), tmp_path / "a.zarr", force=True)
    assert read_rows(tmp_path / "a.zarr") == rows[:9]


def test_inputs_that_cannot_be(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    with pytest.raises(NotFoundError):
        convert(tmp_path / "none.svm", tmp_path / "o.zarr")
    with pytest.raises(NotFoundError, match="no file matches"):
        convert(str(tmp_path / "*.nothing"), tmp_path / "o.zarr")
    with pytest.raises(UsageError, match="named twice"):
        convert([text, text], tmp_path / "o.zarr")
    with pytest.raises(UsageError, match="resume: standard input cannot be read again"):
        convert("-", tmp_path / "o.zarr", resume=True)
    (tmp_path / "zero.svm").write_text("1 0:1\n")
    with pytest.raises(BadInputError, match=r"zero\.svm:1:3: .*index_base=0"):
        convert([text, tmp_path / "zero.svm"], tmp_path / "o.zarr")
    widths = [tmp_path / "w1.npz", tmp_path / "w2.npz"]
    for width, path in zip((3, 4), widths, strict=True):
        sp.save_npz(path, sp.csr_array(np.ones((1, width))))
    (tmp_path / "y").write_text("1\n1\n")
    with pytest.raises(BadInputError, match=r"the inputs have 3, 4 features; .*n_features"):
        convert(widths, tmp_path / "o.zarr", labels=str(tmp_path / "y"))
    assert convert(widths, tmp_path / "o.zarr", labels=str(tmp_path / "y"), n_features=4).rows == 2


def test_a_pipe_is_read_once(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    if os.fork() == 0:
        pipe.write_bytes(text.read_bytes())
        os._exit(0)
    report = convert(pipe, tmp_path / "a.zarr")
    os.wait()
    assert report.bytes_in is None
    assert read_rows(tmp_path / "a.zarr") == rows


def test_a_target_that_is_being_written_is_locked(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    (tmp_path / "a.zarr.partial").mkdir()
    with locked(tmp_path / "a.zarr.partial" / "lock", "it"), pytest.raises(LockedError, match="being written"):
        convert(text, tmp_path / "a.zarr")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": 1.5}, "split: 1.5 is not between 0 and 1"),
        ({"split_output": "x"}, "split_output needs split"),
        ({"max_errors": 3}, "max_errors needs on_error='skip'"),
        ({"hash_bits": 40}, "outside 1 … 31"),
        ({"hash_bits": 4, "n_features": 3}, "leave n_features out"),
        ({"threads": 0}, "threads: 0 is too small"),
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


def test_options_that_the_format_cannot_have(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(np.eye(3)))
    with pytest.raises(UsageError, match="label does not apply to svmlight"):
        convert(text, tmp_path / "o.zarr", labels="y")
    with pytest.raises(UsageError, match="label is needed for npz input: a file with one label per row"):
        convert(tmp_path / "x.npz", tmp_path / "o.zarr")
    with pytest.raises(UsageError, match="hash_bits does not apply to npz"):
        convert(tmp_path / "x.npz", tmp_path / "o.zarr", labels="y", hash_bits=4)


def test_memory_is_a_size_or_bytes():
    assert ConvertOptions(memory="2GB").memory == ConvertOptions(memory=2 * 10**9).memory == 2 * 10**9
    assert ConvertOptions(memory="auto").memory is None
    assert ConvertOptions(memory="50%").memory > 0


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


def test_real_data_equal_another_reader(tmp_path, data_dir, load):
    X, y = load("mq2008_fold1test")
    convert(data_dir / "mq2008_fold1test" / "train.svm.xz", tmp_path / "m.zarr", dtype="float64")
    data = open_dataset(tmp_path / "m.zarr")
    chunk = data.read(0)
    nonzero = X.copy()
    nonzero.eliminate_zeros()
    np.testing.assert_array_equal(chunk.indices, nonzero.indices)
    np.testing.assert_allclose(chunk.data, nonzero.data, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(chunk.y, y)
    assert data.manifest.statistics.groups == 109
