"""One group larger than memory: whatever room there is to sort, the same bits as with all of it."""

import pytest
from kit.ranking import bits, problem

import streamcut
from streamcut import train


def test_a_cluster_gives_the_same_bits(tmp_path):
    pytest.importorskip("distributed")
    X, y, _ = problem(400, 15, levels=2)
    with streamcut.create(tmp_path / "rows.zarr", 15, shard_nnz=700) as out:
        out.append(X, y)
    options = {"task": "roc-area", "C": 0.3, "lanes": 3, "max_passes": 12}
    clustered = train(str(tmp_path / "rows.zarr"), scheduler="local-cluster", workers=2, scratch=str(tmp_path), **options)
    assert bits(clustered) == bits(train(str(tmp_path / "rows.zarr"), **options))
