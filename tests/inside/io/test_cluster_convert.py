"""`convert` by the workers of a Dask cluster: the same bytes as on one machine, whatever the files are."""

from __future__ import annotations

from pathlib import Path

import kit.shared.cluster_convert
import numpy as np
import pytest
import scipy.sparse as sp
from kit.clusters import started, two_workers
from kit.object_stores import s3_server

import streamcut
from streamcut.errors import BadInputError, ClusterLostError, MemoryBudgetError, UsageError
from streamcut.execution.dask import conversion
from streamcut.execution.dask.conversion import convert_on_cluster, memory_of
from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion import parts
from streamcut.io.manifest import StatisticsBuilder
from streamcut.io.places import remote
from streamcut.io.stores.collector import ShardCutter, ShardRows

files = kit.shared.cluster_convert.files


pytestmark = pytest.mark.cluster

SHARDS = {"shard_nnz": 600}


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as client:
        yield client


def content(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in sorted(store.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("glob", "options"),
    [
        ("*.svm", {"label_weights": True}),
        ("*.svm", {"label_weights": True, "hash_bits": 6, "duplicates": "sum"}),
        ("*.parquet", {"labels": "click", "hash_bits": 8}),
        ("*.parquet", {"labels": "click", "hash_bits": 8, "numeric": "price:bin5"}),
    ],
)
def test_the_same_bytes_as_on_one_machine(cluster, files, tmp_path, glob, options):
    options = {**options, **SHARDS}
    ours = convert_on_cluster(files / glob, tmp_path / "c.zarr", scheduler=cluster, **options)
    one = streamcut.convert(files / glob, tmp_path / "o.zarr", **options)
    assert len(streamcut.open(tmp_path / "o.zarr").manifest.shards) > 2
    assert content(tmp_path / "c.zarr") == content(tmp_path / "o.zarr")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.zarr", "o.zarr"]
    assert (ours.rows, ours.counters, ours.bytes_out) == (one.rows, one.counters, one.bytes_out)


@pytest.mark.long
def test_from_s3_to_s3_by_the_command(files, tmp_path, run, monkeypatch):
    monkeypatch.setattr(remote, "_PAUSE", 0.001)
    with s3_server(monkeypatch):
        for path in files.glob("p[0-2].svm"):
            remote.write_object(f"s3://bucket/in/{path.name}", path.read_bytes())
        line = ("--set", "label-weights=yes", "--shard-nnz", "1000", "--scheduler", "local-cluster", "--workers", "2")
        code, _, said = run("convert", "s3://bucket/in/*.svm", "s3://bucket/c.zarr", *line)
        assert code == 0, said
        assert "190 rows" in said
        streamcut.convert(files / "p[0-2].svm", tmp_path / "o.zarr", label_weights=True, shard_nnz=1000)
        found, expected = streamcut.open("s3://bucket/c.zarr").manifest, streamcut.open(tmp_path / "o.zarr").manifest
        assert (found.shards, found.statistics, found.extras) == (expected.shards, expected.statistics, expected.extras)
        assert not [name for name in remote.objects_below("s3://bucket") if ".parts" in name or ".partial" in name]


def test_workers_that_die_are_replaced(files, tmp_path, monkeypatch):
    where = tmp_path / "dask"
    where.mkdir()
    with started(where, "convert.chunk_rename:9:kill", "") as (address, _):
        convert_on_cluster(files / "*.svm", tmp_path / "c.zarr", scheduler=address, label_weights=True, **SHARDS)
    streamcut.convert(files / "*.svm", tmp_path / "o.zarr", label_weights=True, **SHARDS)
    assert content(tmp_path / "c.zarr") == content(tmp_path / "o.zarr")


@pytest.mark.long
def test_when_no_worker_is_left_it_ends_and_can_be_taken_up(cluster, files, tmp_path, monkeypatch):
    options = {"label_weights": True, **SHARDS}
    where = tmp_path / "dask"
    where.mkdir()
    monkeypatch.setattr(conversion, "DEADLINE", 1.0)
    lost = pytest.raises(ClusterLostError, match="it has been without workers for 1 s")
    with started(where, "convert.chunk_rename:9:kill") as (address, _), lost:
        convert_on_cluster(files / "*.svm", tmp_path / "c.zarr", scheduler=address, **options)
    assert not (tmp_path / "c.zarr").exists()
    convert_on_cluster(files / "*.svm", tmp_path / "c.zarr", scheduler=cluster, resume=True, **options)
    streamcut.convert(files / "*.svm", tmp_path / "o.zarr", **options)
    assert content(tmp_path / "c.zarr") == content(tmp_path / "o.zarr")


def test_what_is_interrupted_is_taken_up(cluster, files, tmp_path, monkeypatch):
    options = {"label_weights": True, **SHARDS}
    monkeypatch.setenv("STREAMCUT_FAILPOINT", "convert.journal:4:EIO")  # of the client
    with pytest.raises(OSError, match="Input/output"):
        convert_on_cluster(files / "*.svm", tmp_path / "c.zarr", scheduler=cluster, **options)
    monkeypatch.delenv("STREAMCUT_FAILPOINT")
    assert not (tmp_path / "c.zarr").exists()
    report = convert_on_cluster(files / "*.svm", tmp_path / "c.zarr", scheduler=cluster, resume=True, **options)
    assert report.resumed_rows > 0
    streamcut.convert(files / "*.svm", tmp_path / "o.zarr", **options)
    assert content(tmp_path / "c.zarr") == content(tmp_path / "o.zarr")


@pytest.mark.parametrize(
    ("glob", "options", "error", "reason"),
    [
        ("*.svm", {"label_weights": True, "shuffle": 1}, UsageError, "shuffle: not available on a cluster"),
        ("*.parquet", {"labels": "site", "hash_bits": 4, "drop": "click"}, UsageError, "learned by one machine"),
        ("*.svm", {}, BadInputError, r"p0\.svm:1:"),
        ("*.svm", {"label_weights": True, "memory": "60MB"}, MemoryBudgetError, "memory"),
    ],
)
def test_what_a_cluster_does_not_convert(cluster, files, tmp_path, glob, options, error, reason):
    with pytest.raises(error, match=reason):
        convert_on_cluster(files / glob, tmp_path / "c.zarr", scheduler=cluster, **options)
    assert not (tmp_path / "c.zarr").exists()


def test_files_of_others_in_the_folder_of_parts_stay(cluster, files, tmp_path):
    (tmp_path / "c.zarr.parts").mkdir()
    (tmp_path / "c.zarr.parts" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"not written by streamcut \(mine\.txt\)"):
        convert_on_cluster(files / "*.svm", tmp_path / "c.zarr", scheduler=cluster, label_weights=True)
    assert (tmp_path / "c.zarr.parts" / "mine.txt").read_text() == "mine"


def test_shards_are_cut_as_by_one_writer(monkeypatch):
    monkeypatch.setattr(parts, "_indptr", lambda part, shard: part.read(shard).indptr)
    rng = np.random.default_rng(3)
    for _ in range(30):
        limit = int(rng.integers(1, 60))
        stores, cutter = [], ShardCutter(limit, lambda limit=limit: ShardRows(limit))
        expected = []
        for _ in range(int(rng.integers(1, 4))):
            lengths = rng.integers(0, rng.choice([2, 9, 80]), int(rng.integers(1, 90)))
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            indices = np.concatenate([np.arange(n) for n in lengths]).astype(np.int32)
            X = sp.csr_matrix((rng.normal(size=len(indices)), indices, indptr), shape=(len(lengths), 80))
            y = rng.choice([-1.0, 1.0], len(lengths))
            expected += [rows.rows for rows in cutter.add(Chunk(indptr, indices, X.data, y))]
            stores.append(streamcut.rows(X, y, shard_nnz=37))
        rest = cutter.rest()
        expected += [rest.rows] if rest is not None else []
        found = [sum(rows.stop - rows.first for rows in shard) for shard in parts.cut(stores, limit)]
        assert found == expected


def test_workers_that_do_not_see_a_file_say_which(tmp_path):
    (tmp_path / "probe").write_text("seen")
    parts.expect_reachable(str(tmp_path / "probe"), [str(tmp_path)], streamcut.__version__)
    with pytest.raises(UsageError, match=r"nothing\.svm: not visible to a worker on .*; read the inputs from a folder that all"):
        parts.expect_reachable(str(tmp_path / "probe"), [str(tmp_path / "nothing.svm")], streamcut.__version__)
    with pytest.raises(UsageError, match="install the same everywhere"):
        parts.expect_reachable(str(tmp_path / "probe"), [], "0.0")


def test_statistics_merge_as_if_all_rows_had_been_added():
    rng = np.random.default_rng(1)
    data = streamcut.rows(rng.normal(size=(300, 7)), rng.integers(0, 5, 300), weight=rng.random(300), shard_nnz=300)
    whole, merged = StatisticsBuilder(), StatisticsBuilder()
    for shard in range(len(data.manifest.shards)):
        own = StatisticsBuilder()
        for builder in (whole, own):
            builder.add(data.read(shard))
        merged.merge(StatisticsBuilder.from_state(own.state()))
    assert merged.state() == whole.state()
    assert merged.finish() == whole.finish()


def test_without_memory_asked_for_workers_take_what_their_limits_leave():
    """And not a gigabyte, of which a process that has done some parts has most already."""
    assert memory_of(None, [3 * 10**9, 0, 2 * 10**9]) == 14 * 10**8
    assert memory_of(10**9, [3 * 10**9]) == 10**9
    assert memory_of(None, [0]) is None
