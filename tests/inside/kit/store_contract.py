"""What every data set must do, wherever it comes from. Subclasses give a fixture `dataset`: the fixture `rows`, stored."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import first_rows, shard_bytes

SHARD_NNZ = 500
KINDS = ("text", "ones", "queries", "gaps")


@dataclass(frozen=True)
class Rows:
    """Source rows: X (n × d csr, float64), y, and maybe weight and qid."""

    X: sp.csr_array
    y: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None

    def chunk(self) -> Chunk:
        return Chunk(self.X.indptr.astype(np.int64), self.X.indices, self.X.data, self.y, self.qid, self.weight)


def make_rows(kind: str) -> Rows:
    """Small data of each kind: text (thirds of floats), ones, counts with queries and weights, sparse with empty rows."""
    rng = np.random.default_rng(7)
    n, d = 400, 300
    X = sp.random_array((n, d), density=0.03, format="csr", rng=rng)
    y = rng.choice([-1.0, 1.0], n)
    if kind == "text":
        return Rows(X, y + 0.1)
    if kind == "ones":
        X.data[:] = 1
        return Rows(X, y)
    if kind == "queries":
        X.data[:] = rng.integers(1, 100, X.nnz)
        return Rows(X, rng.integers(0, 3, n).astype(float), rng.random(n), np.repeat(np.arange(n // 20), 20))
    X.data[:] = np.float32(X.data)
    X = sp.csr_array(sp.diags_array((np.arange(n) % 3 == 0) * 1.0) @ X)
    X.eliminate_zeros()
    X.sort_indices()
    return Rows(X, y)


def collect(dataset) -> Rows:
    """All rows of a data set, read shard by shard into one set of buffers."""
    buffers = dataset.buffers()
    parts, y, weight, qid = [], [], [], []
    d = dataset.manifest.statistics.n_features
    for shard in range(len(dataset.manifest.shards)):
        chunk = dataset.read(shard, buffers)
        start, stop = chunk.indptr[0], chunk.indptr[-1]
        data = np.ones(chunk.nnz) if chunk.data is None else chunk.data[start:stop].astype(np.float64)
        parts.append(sp.csr_array((data, chunk.indices[start:stop].copy(), chunk.indptr - start), (chunk.n_rows, d)))
        y.append(chunk.y.copy())
        weight.append(None if chunk.weight is None else chunk.weight.copy())
        qid.append(None if chunk.qid is None else chunk.qid.copy())
    return Rows(
        sp.csr_array(sp.vstack(parts)),
        np.concatenate(y),
        None if weight[0] is None else np.concatenate(weight),
        None if qid[0] is None else np.concatenate(qid),
    )


class StoreContract:
    """Tests that use the fixtures `rows` (the source) and `dataset` (the same behind the interface)."""

    def test_rows_are_those_of_the_source(self, rows, dataset):
        found = collect(dataset)
        np.testing.assert_array_equal(found.X.indptr, rows.X.indptr)
        np.testing.assert_array_equal(found.X.indices, rows.X.indices)
        np.testing.assert_array_equal(found.X.data, rows.X.data)
        np.testing.assert_array_equal(found.y, rows.y)
        for name in ("weight", "qid"):
            np.testing.assert_array_equal(getattr(found, name), getattr(rows, name))

    def test_manifest_describes_the_rows(self, rows, dataset):
        manifest, statistics = dataset.manifest, dataset.manifest.statistics
        assert (statistics.n_rows, statistics.n_features) == rows.X.shape
        assert statistics.nnz == rows.X.nnz
        assert statistics.labels == dict(zip(*(a.tolist() for a in np.unique(rows.y, return_counts=True)), strict=True))
        assert statistics.max_row_nnz == np.diff(rows.X.indptr).max()
        np.testing.assert_allclose(statistics.max_squared_norm, rows.X.power(2).sum(axis=1).max(), rtol=1e-12)
        assert (statistics.groups is None) == (rows.qid is None)
        assert len(manifest.shards) > 2
        assert first_rows(manifest)[-1] == rows.X.shape[0]
        for k, info in enumerate(manifest.shards):
            chunk = dataset.read(k)
            assert (chunk.n_rows, chunk.nnz) == (info.rows, info.nnz)
            assert chunk.first_row == first_rows(manifest)[k]
            assert info.nnz <= SHARD_NNZ

    def test_dtypes_are_those_of_the_interface(self, dataset):
        for k, info in enumerate(dataset.manifest.shards):
            chunk = dataset.read(k)
            assert chunk.indptr.dtype == np.int64
            assert chunk.indices.dtype == np.int32
            assert chunk.y.dtype == np.float64
            assert chunk.qid is None or chunk.qid.dtype == np.int64
            assert chunk.weight is None or chunk.weight.dtype == np.float64
            assert (chunk.data is None) == info.ones
            held = [chunk.indptr, chunk.indices[: chunk.nnz], chunk.y, chunk.qid, chunk.weight]
            held.append(None if chunk.data is None else chunk.data[: chunk.nnz])
            assert sum(a.nbytes for a in held if a is not None) <= shard_bytes(dataset.manifest, info)

    def test_what_is_read_without_buffers_is_kept(self, rows, dataset):
        chunks = [dataset.read(k) for k in range(len(dataset.manifest.shards))]
        dataset.read(0, dataset.buffers())
        np.testing.assert_array_equal(np.concatenate([chunk.y for chunk in chunks]), rows.y)

    def test_a_shard_that_is_expected_is_read_all_the_same(self, rows, dataset):
        shards = range(len(dataset.manifest.shards))
        for k in shards:
            dataset.expect(k)
        np.testing.assert_array_equal(np.concatenate([dataset.read(k).y for k in shards]), rows.y)

    def test_groups_are_whole(self, rows, dataset):
        if rows.qid is None:
            return
        seen = [set(dataset.read(k).qid.tolist()) for k in range(len(dataset.manifest.shards))]
        assert sum(map(len, seen)) == len(set.union(*seen))

    def test_threads_with_their_own_buffers_do_not_disturb_each_other(self, rows, dataset):
        found = {}

        def work(thread: int) -> None:
            for _ in range(3):
                found[thread] = collect(dataset)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for k in range(2):
            np.testing.assert_array_equal(found[k].X.data, rows.X.data)
            np.testing.assert_array_equal(found[k].X.indices, rows.X.indices)
