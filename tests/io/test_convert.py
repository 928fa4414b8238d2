"""What goes into `convert` comes out of the store: every kind of input, order, split, refusal and count."""

from __future__ import annotations

import json
import lzma
import os
import zipfile
from collections import Counter

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
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
    assert os.listdir(tmp_path) == ["a.svm"]
    convert(text, tmp_path / "a.zarr", group_by_qid=True)
    assert read_rows(tmp_path / "a.zarr") == sorted(mixed, key=lambda row: row[1])


@pytest.mark.parametrize("options", [{}, {"shuffle": 9}])
@pytest.mark.parametrize("grouped", [False, True])
def test_split_deals_every_row_to_one_side_whatever_the_shuffle(tmp_path, rows, groups, grouped, options):
    all_rows = groups if grouped else rows
    text = write_svmlight(tmp_path / "a.svm", all_rows)
    report = convert(text, tmp_path / "a.zarr", split=0.7, shard_nnz=200, **options)
    train, test = read_rows(tmp_path / "a.zarr"), read_rows(tmp_path / "a-test.zarr")
    assert list(report.outputs) == [str(tmp_path / "a.zarr"), str(tmp_path / "a-test.zarr")]
    assert Counter(train + test) == Counter(all_rows)
    assert 0.55 < len(train) / 500 < 0.85
    if grouped:
        assert not {row[1] for row in train} & {row[1] for row in test}
    if not options:
        left = iter(all_rows)
        assert all(row in left for row in train), "without a shuffle the rows keep their order"
    convert(text, tmp_path / "b.zarr", split=0.7, split_output=tmp_path / "rest")
    convert(text, tmp_path / "c.zarr", split=0.7, split_seed=1)
    assert Counter(read_rows(tmp_path / "rest")) == Counter(test)
    assert read_rows(tmp_path / "a.zarr") != read_rows(tmp_path / "c.zarr")


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


def test_inputs_and_options_that_cannot_be(tmp_path, rows, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_svmlight(tmp_path / "a.svm", rows)
    write_svmlight(tmp_path / "one.svm", rows[:1])
    (tmp_path / "zero.svm").write_text("1 0:1\n")
    (tmp_path / "y").write_text("1\n1\n")
    for width in (3, 4):
        sp.save_npz(f"w{width}.npz", sp.csr_array(np.ones((1, width))))
    for source, options, error, said in (
        ("none.svm", {}, NotFoundError, "none.svm"),
        ("*.nothing", {}, NotFoundError, "no file matches"),
        (["a.svm", "a.svm"], {}, UsageError, "named twice"),
        ("-", {"resume": True}, UsageError, "resume: standard input cannot be read again"),
        (["a.svm", "zero.svm"], {}, BadInputError, r"zero\.svm:1:3: .*index_base=0"),
        (["w3.npz", "w4.npz"], {"labels": "y"}, BadInputError, r"the inputs have 3, 4 features; .*n_features"),
        ("one.svm", {"split": 0.5}, BadInputError, "this output gets no rows"),
        ("one.svm", {"group_by_qid": True}, BadInputError, "the rows have no qid"),
        ("a.svm", {"labels": "y"}, UsageError, "label does not apply to svmlight"),
        ("a.svm", {"label_map": "nothing"}, NotFoundError, "neither word=number"),
        ("w3.npz", {}, UsageError, "label is needed for npz input: a file with one label per row"),
        ("w3.npz", {"labels": "y", "hash_bits": 4}, UsageError, "hash_bits does not apply to npz"),
    ):
        with pytest.raises(error, match=said):
            convert(source, "o.zarr", **options)
    assert convert(["w3.npz", "w4.npz"], "o.zarr", labels="y", n_features=4).rows == 2


def test_label_maps_come_as_text_files_and_dictionaries(tmp_path):
    (tmp_path / "map").write_text("ham=-1\nspam=1\n")
    (tmp_path / "a.svm").write_text("ham 1:1\nspam 1:1\nspam 2:1\n")
    for given_map in ("ham=-1,spam=1", str(tmp_path / "map"), {"ham": -1, "spam": 1}):
        report = convert(tmp_path / "a.svm", tmp_path / "a.zarr", label_map=given_map, force=True)
        assert report.outputs[str(tmp_path / "a.zarr")].labels == {-1.0: 1, 1.0: 2}


def test_equal_data_make_equal_stores_whatever_the_threads_blocks_and_times(tmp_path, rows):
    text = write_svmlight(tmp_path / "a.svm", rows)
    convert(text, tmp_path / "1.zarr", threads=1, shard_nnz=300)
    os.utime(text, (1, 1))
    convert(text, tmp_path / "2.zarr", threads=2, memory="4GB", shard_nnz=300)
    assert store_bytes(tmp_path / "1.zarr") == store_bytes(tmp_path / "2.zarr")


# --- the command, and what is neither a store nor data --------------------------------------------------------------------------


def test_what_the_commands_convert_and_info_say(run, tmp_path, groups):
    text, store = write_svmlight(tmp_path / "a.svm", groups), tmp_path / "a.zarr"
    code, out, err = run("convert", text, store, "--shard-nnz", 300)
    assert (code, out) == (0, "")
    for said in ("500 rows, 40 features", "72 groups of equal qid", "labels -1: "):
        assert said in err
    found = json.loads(run("info", store, "--json")[1])
    assert found["source"]["made_from"]["inputs"] == [[str(text), text.stat().st_size]]
    assert found["fingerprint"] in run("info", store)[1]
    code, out, err = run("info", store, "--check", "--read-data")
    assert (code, out, "sound" in err) == (0, "", True)
    code, out, err = run("convert", text, tmp_path / "b.zarr", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["outputs"][str(tmp_path / "b.zarr")]["n_rows"] == report["rows"] == 500
    assert report["plan"]["sort_bytes"] == 0 < report["plan"]["shard_nnz"]
    assert run("convert", text, tmp_path / "c.zarr", "--quiet") == (0, "", "")
    code, _, err = run("convert", text, tmp_path / "d.zarr", "--memory", "100")
    assert (code, "add a unit" in err) == (2, True)


FOREIGN = {"a.xlsx": "spreadsheet", "a.PKL": "pickle", "a.dta": "statistics", "a.db": "database"}


@pytest.mark.parametrize("name", FOREIGN)
def test_files_of_other_programs_are_told_by_name(tmp_path, name):
    (tmp_path / name).write_text("1 1:1 3:0.5\n-1 2:1\n" * 20)
    path, store = str(tmp_path / name), tmp_path / "a.zarr"
    for use in (lambda: convert(path, store), lambda: streamcut.train(path), lambda: streamcut.fit(path, label="y")):
        with pytest.raises(BadInputError, match=FOREIGN[name]):
            use()
    assert convert(path, store, format="svmlight").rows == 40


def test_what_is_not_a_store_is_named(tmp_path):
    (tmp_path / "text.svm").write_text("1 1:1\n")
    (tmp_path / "folder").mkdir()
    zarr.create_group(tmp_path / "group.zarr").create_array("numbers", shape=3, dtype="i4")
    zarr.create_array(tmp_path / "array.zarr", shape=3, dtype="i4")
    h5py.File(tmp_path / "plain.h5", "w").close()
    with zipfile.ZipFile(tmp_path / "plain.zip", "w") as archive:
        archive.writestr("x", "y")
    words = {"text.svm": "a file", "folder": "a directory", "group.zarr": "Zarr group", "plain.h5": "HDF5 file"}
    for name, word in {**words, "plain.zip": "a zip file", "nothing": "no such file"}.items():
        with pytest.raises(NotFoundError, match=word):
            streamcut.open(tmp_path / name)
    for name in ("group.zarr", "array.zarr"):
        with pytest.raises(NotFoundError, match="neither a streamcut store nor an AnnData"):
            convert(tmp_path / name, tmp_path / "a.zarr")
