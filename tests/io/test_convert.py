"""What goes into `convert` comes out of the store: every kind of input, order, split, refusal and count."""

from __future__ import annotations

import lzma
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from kit.store_crash import content as store_bytes
from reference.rows import make_rows, read_rows, write_svmlight

import streamcut
from streamcut import convert
from streamcut.errors import BadInputError, NotFoundError, UsageError


@pytest.fixture(scope="module")
def rows():
    return make_rows(500, 1)


@pytest.fixture(scope="module")
def groups():
    return make_rows(500, 2, groups=7)


def leftovers(folder: Path) -> list[str]:
    """What a conversion should not leave behind."""
    return [name for name in os.listdir(folder) if name.endswith((".partial", ".tmp", ".replaced", ".scratch"))]


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
    assert streamcut.open(tmp_path / "b.store").manifest.statistics == streamcut.open(tmp_path / "a.zarr").manifest.statistics
    convert(tmp_path / "b.store", tmp_path / "c.zarr", shard_nnz=200)
    assert streamcut.open(tmp_path / "c.zarr").manifest.fingerprint == streamcut.open(tmp_path / "a.zarr").manifest.fingerprint


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


def test_the_first_refused_lines_are_kept_in_the_store(tmp_path):
    lines = ["1 1:1", "spam 1:1", "1 2:x", "-1 2:1", *30 * ["1 3"]]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    report = convert(tmp_path / "a.svm", tmp_path / "a.zarr", on_error="skip")
    assert report.counters["skipped_lines"] == 32
    assert len(read_rows(tmp_path / "a.zarr")) == 2
    assert len(report.rejects) == 20
    assert "a.svm:2:1: " in report.rejects[0]
    assert report.rejects[0].endswith(": spam 1:1")
    assert "a.svm:3:3: " in report.rejects[1]
    assert streamcut.open(tmp_path / "a.zarr").manifest.source["refused"] == report.rejects
    with pytest.raises(BadInputError, match="more than 1 refused"):
        convert(tmp_path / "a.svm", tmp_path / "b.zarr", on_error="skip", max_errors=1)
    (tmp_path / "a.svm").write_text("1 1:1\n")
    assert convert(tmp_path / "a.svm", tmp_path / "a.zarr", on_error="skip", force=True).rejects == []


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


def test_options_that_the_format_cannot_have(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(np.eye(3)))
    with pytest.raises(UsageError, match="label does not apply to svmlight"):
        convert(text, tmp_path / "o.zarr", labels="y")
    with pytest.raises(UsageError, match="label is needed for npz input: a file with one label per row"):
        convert(tmp_path / "x.npz", tmp_path / "o.zarr")
    with pytest.raises(UsageError, match="hash_bits does not apply to npz"):
        convert(tmp_path / "x.npz", tmp_path / "o.zarr", labels="y", hash_bits=4)


def test_label_maps_come_as_text_files_and_dictionaries(tmp_path):
    (tmp_path / "map").write_text("ham=-1\nspam=1\n")
    (tmp_path / "a.svm").write_text("ham 1:1\nspam 1:1\nspam 2:1\n")
    for given_map in ("ham=-1,spam=1", str(tmp_path / "map"), {"ham": -1, "spam": 1}):
        report = convert(tmp_path / "a.svm", tmp_path / "a.zarr", label_map=given_map, force=True)
        assert report.outputs[str(tmp_path / "a.zarr")].labels == {-1.0: 1, 1.0: 2}
    with pytest.raises(NotFoundError, match="neither word=number"):
        convert(tmp_path / "a.svm", tmp_path / "b.zarr", label_map="nothing")


def test_equal_data_make_equal_stores_whatever_the_threads_blocks_and_times(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    convert(text, tmp_path / "1.zarr", threads=1, shard_nnz=300)
    os.utime(text, (1, 1))
    convert(text, tmp_path / "2.zarr", threads=2, memory="4GB", shard_nnz=300)
    assert store_bytes(tmp_path / "1.zarr") == store_bytes(tmp_path / "2.zarr")
