"""The data maker: its recipe holds, and neither threads nor the form of the output change what it makes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import streamcut

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts" / "tools"))
import make_data

SMALL = 1 << 14  # nonzeros a block, so that a few thousand rows are several blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(make_data, "BLOCK_NNZ", SMALL)


def source(kind="text", rows=2000, features=3000, nnz_per_row=20, label_noise=0.1, seed=1):
    return make_data.Source(make_data.Recipe(kind, rows, features, nnz_per_row, label_noise, seed))


def matrix(source):
    """(X, y, qid) of all blocks."""
    chunks = [source.block(number) for number in range(-(-source.recipe.rows // source.recipe.block_rows))]
    parts = []
    for chunk in chunks:
        data = np.ones(chunk.nnz, np.float32) if chunk.data is None else chunk.data[: chunk.indptr[-1]]
        shape = (chunk.n_rows, source.recipe.features)
        parts.append(sp.csr_array((data, chunk.indices[: chunk.indptr[-1]], chunk.indptr), shape))
        assert parts[-1].has_canonical_format
    qid = None if chunks[0].qid is None else np.concatenate([chunk.qid for chunk in chunks])
    return sp.vstack(parts, format="csr"), np.concatenate([chunk.y for chunk in chunks]), qid


def test_text_rows_have_length_one_and_at_least_a_column():
    X, y, qid = matrix(source())
    assert X.shape == (2000, 3000)
    np.testing.assert_allclose(sp.linalg.norm(X, axis=1), 1, rtol=1e-6)
    assert np.diff(X.indptr).min() >= 1
    assert set(y) == {-1, 1}
    assert qid is None


def test_text_columns_follow_one_over_rank():
    """Expected: a column of probability p is in a row of n draws with probability 1 − exp(−20 p), n being Poisson(20)."""
    features, rows = 500, 20_000
    X, _, _ = matrix(source(rows=rows, features=features))
    p = 1 / np.arange(1, features + 1)
    contained = -np.expm1(-20 * p / p.sum())
    seen = np.bincount(X.indices, minlength=features)
    z = (seen - rows * contained) / np.sqrt(rows * contained * (1 - contained))
    assert abs(z).max() < 5
    assert 0.8 < z.std() < 1.2


def test_text_values_are_idf_times_one_to_two():
    made = source(rows=1000, features=5000)
    X, _, _ = matrix(made)
    ratio = X.data / made.idf[X.indices]  # (1 + U)·scale of the row, unless columns were merged
    rare = X.indices > 1000
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    low, high = np.full(X.shape[0], np.inf), np.zeros(X.shape[0])
    np.minimum.at(low, row[rare], ratio[rare])
    np.maximum.at(high, row[rare], ratio[rare])
    spread = high[high > 0] / low[high > 0]
    assert np.quantile(spread, 0.95) <= 2
    assert spread.max() > 1.8


def test_labels_come_from_the_planted_score():
    made = source(label_noise=0)
    X, y, _ = matrix(made)
    np.testing.assert_array_equal(y, np.where(X @ made.planted > 0, 1, -1))
    assert np.mean(made.planted != 0) == pytest.approx(0.3, abs=0.05)
    noisy = np.mean(matrix(source(label_noise=0.1))[1] != y)
    assert 0 < noisy < 0.1


def test_clicks_are_one_hot_and_rarely_positive():
    made = source("clicks", rows=20_000, nnz_per_row=12, label_noise=1)
    X, y, _ = matrix(made)
    assert made.block(0).data is None
    ends = np.searchsorted(made.cumulative, np.arange(1, 13), side="right")
    assert ends[-1] == 3000
    fields = np.searchsorted(ends, X.indices.reshape(-1, 12), side="right")
    np.testing.assert_array_equal(fields, np.tile(np.arange(12), (20_000, 1)))
    assert np.mean(y == 1) == pytest.approx(0.03, abs=0.02)


def test_ranking_has_whole_queries_and_graded_relevance():
    _, y, qid = matrix(source("ranking", rows=20_000))
    starts = np.flatnonzero(np.diff(qid, prepend=-1))
    np.testing.assert_array_equal(qid[starts], starts + 1)
    assert np.mean(np.diff(starts)) == pytest.approx(20, abs=3)
    assert set(y) == {0, 1, 2, 3, 4}
    assert np.mean(y == 0) == pytest.approx(0.6, abs=0.1)


@pytest.mark.parametrize("kind", ["text", "clicks", "ranking"])
def test_threads_change_nothing_and_text_is_the_data(tmp_path, kind):
    arguments = ["--kind", kind, "--rows", "3000", "--features", "2000", "--nnz-per-row", "15"]
    make_data.main([str(tmp_path / "one.svm"), *arguments, "--threads", "1"])
    make_data.main([str(tmp_path / "three.svm"), *arguments, "--threads", "3"])
    assert (tmp_path / "one.svm").read_bytes() == (tmp_path / "three.svm").read_bytes()
    X, y, qid = matrix(source(kind, 3000, 2000, 15, make_data.DEFAULTS[kind][1], 0))
    read, labels, queries = load_svmlight_file(tmp_path / "one.svm", n_features=2000, zero_based=False, query_id=True)
    assert abs(read - X).max() < 1e-6
    np.testing.assert_array_equal(labels, y)
    if qid is not None:
        np.testing.assert_array_equal(queries, qid)


def test_another_seed_is_other_data():
    assert (matrix(source(seed=1))[0] != matrix(source(seed=2))[0]).nnz > 0


@pytest.mark.parametrize("wrong", [["--rows", "0"], ["--features", "100"], ["--features", "3000000000"], ["--label-noise", "-1"]])
def test_wrong_arguments_are_refused(tmp_path, wrong, capsys):
    with pytest.raises(SystemExit, match="2"):
        make_data.main([str(tmp_path / "x.svm"), *wrong])
    assert "must be at least" in capsys.readouterr().err


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "x.svm").write_text("mine")
    with pytest.raises(SystemExit, match="2"):
        make_data.main([str(tmp_path / "x.svm")])
    assert "exists" in capsys.readouterr().err
    assert (tmp_path / "x.svm").read_text() == "mine"


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_a_store_holds_the_same_rows(tmp_path, backend):
    path = str(tmp_path / "store")
    make_data.main(
        [path, "--kind", "ranking", "--rows", "3000", "--features", "2000", "--backend", backend, "--shard-nnz", "50000"]
    )
    X, y, qid = matrix(source("ranking", 3000, 2000, 60, 0.5, 0))
    data = streamcut.open(path)
    assert data.manifest.source["make_data"]["seed"] == 0
    assert data.manifest.statistics.n_features == 2000
    chunks = [data.read(shard) for shard in range(len(data.manifest.shards))]
    assert len(chunks) > 2
    np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
    np.testing.assert_array_equal(np.concatenate([chunk.qid for chunk in chunks]), qid)
    np.testing.assert_array_equal(np.concatenate([chunk.indices for chunk in chunks]), X.indices)
    np.testing.assert_array_equal(np.concatenate([chunk.data for chunk in chunks]), X.data)
