"""Statistics of single features: exact, the same however they come about, and kept with the store."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import streamcut
from streamcut.errors import CorruptError
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.plan import make_plan
from streamcut.io.features import FeatureStatistics, FeatureTally, by_passes, feature_statistics
from streamcut.io.stores.spec import FEATURES, MOST_FEATURES
from streamcut.io.stores.verify import verify_store
from streamcut.io.stores.writer import StoreWriter

N, D = 500, 60


@pytest.fixture(scope="module")
def X():  # noqa: N802
    rng = np.random.default_rng(3)
    X = sp.random_array((N, D), density=0.1, rng=rng, format="csr", data_sampler=rng.standard_normal)
    X = X.multiply(np.arange(D) % 5 != 0).tocsr()  # some features never occur
    X.eliminate_zeros()
    return X


def chunks(X, rows):
    for start in range(0, X.shape[0], rows):
        part = X[start : start + rows]
        yield Chunk(part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data, np.ones(part.shape[0]))


def write(path, X, *, rows=37, **options):
    with StoreWriter(path, n_features=D, options={}, **options) as writer:
        for chunk in chunks(X, rows):
            writer.append(chunk, {})
        return writer.finish({})


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
@pytest.mark.parametrize("shard_nnz", [200, 1 << 22])
def test_they_are_those_of_the_rows_whatever_the_shards(tmp_path, X, backend, shard_nnz):
    write(tmp_path / "a", X, backend=backend, shard_nnz=shard_nnz)
    found = feature_statistics(streamcut.open(tmp_path / "a"))
    dense = X.toarray()
    np.testing.assert_array_equal(found.index, np.flatnonzero(np.abs(dense).sum(axis=0)))
    np.testing.assert_array_equal(found.dense("nonzeros", D), (dense != 0).sum(axis=0))
    np.testing.assert_array_equal(found.dense("largest", D), np.abs(dense).max(axis=0))
    np.testing.assert_array_equal(found.dense("total", D), np.cumsum(dense, axis=0)[-1])  # in the order of the rows
    np.testing.assert_array_equal(found.dense("squares", D), np.cumsum(dense * dense, axis=0)[-1])
    for at_once in (1, 7, D, MOST_FEATURES):
        assert by_passes(streamcut.open(tmp_path / "a"), at_once).to_bytes() == found.to_bytes()
    assert feature_statistics(streamcut.rows(X, np.ones(N))).to_bytes() == found.to_bytes()
    assert verify_store(tmp_path / "a", read_data=True).sound


def test_ones_and_zeros_that_are_stored():
    tally = FeatureTally(4)
    tally.add(Chunk(np.array([0, 2, 3]), np.array([0, 2, 2], np.int32), None, np.ones(2)))
    tally.add(Chunk(np.array([0, 2]), np.array([1, 2], np.int32), np.array([0.0, -3.0]), np.ones(1)))
    found = tally.finish()
    assert found.index.tolist() == [0, 2]
    assert (found.nonzeros.tolist(), found.largest.tolist()) == ([1, 3], [1.0, 3.0])
    assert (found.total.tolist(), found.squares.tolist()) == ([1.0, -1.0], [1.0, 11.0])


def test_more_features_than_are_kept(tmp_path, X):
    manifest = write(tmp_path / "a", X, features=D - 1)
    assert FEATURES not in manifest.extras
    assert feature_statistics(streamcut.open(tmp_path / "a")).to_bytes() == by_passes(streamcut.rows(X, np.ones(N))).to_bytes()
    tally = FeatureTally(3)
    tally.add(Chunk(np.array([0, 1]), np.array([3], np.int32), None, np.ones(1)))
    assert tally.finish() is None


@pytest.mark.parametrize("backend", ["zarr", "hdf5"])
def test_a_resumed_store_has_the_same(tmp_path, X, backend):
    write(tmp_path / "whole", X, backend=backend, shard_nnz=300)
    blocks = list(chunks(X, 50))
    with StoreWriter(tmp_path / "a", n_features=D, options={}, backend=backend, shard_nnz=300) as writer:
        for number, chunk in enumerate(blocks[:6]):
            writer.append(chunk, {"block": number})
    with StoreWriter(tmp_path / "a", n_features=D, options={}, backend=backend, shard_nnz=300, resume=True) as writer:
        begun = writer.resume_from
        number, skip = begun["position"]["block"], begun["skip"]
        writer.append(blocks[number].rows(skip, 50), {"block": number})
        for later in range(number + 1, len(blocks)):
            writer.append(blocks[later], {"block": later})
        writer.finish({})
    assert number > 0
    assert (tmp_path / "a" / FEATURES).read_bytes() == (tmp_path / "whole" / FEATURES).read_bytes()


def test_damage_is_found(tmp_path, X):
    write(tmp_path / "a", X)
    place = tmp_path / "a" / FEATURES
    content = place.read_bytes()
    place.write_bytes(content[:-100] + bytes(100))
    with pytest.raises(CorruptError, match=r"features\.npz: does not have the checksum"):
        feature_statistics(streamcut.open(tmp_path / "a"))
    assert not verify_store(tmp_path / "a", read_data=True).sound
    for wrong in (b"", b"PK", content[:200]):
        with pytest.raises(ValueError, match="not feature statistics"):
            FeatureStatistics.from_bytes(wrong, D)
    with pytest.raises(ValueError, match="within the features"):
        FeatureStatistics.from_bytes(content, 10)


def test_convert_keeps_them_as_memory_allows(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:2\n-1 3:-4\n")
    streamcut.convert(tmp_path / "a.svm", tmp_path / "a.zarr")
    assert feature_statistics(streamcut.open(tmp_path / "a.zarr")).largest.tolist() == [2.0, 4.0]
    sizes = {"threads": 1, "shard_nnz": 1 << 18, "sorting": False, "writers": 1}
    most = [make_plan(limit, 0, **sizes).features for limit in (None, 500 * 10**6, 100 * 10**6)]
    assert most == [MOST_FEATURES, 718_750, 1 << 15]
    assert make_plan(10**9, 0, **sizes, n_features=1 << 22).lines["statistics of features"] == 32 * ((1 << 22) - (1 << 15))
    assert make_plan(10**9, 0, **sizes, n_features=1 << 23).lines["statistics of features"] == 0
