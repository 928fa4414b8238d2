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
