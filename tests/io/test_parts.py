"""Shards that are read in parts: the same rows, in less memory, so that short memory never costs places of a lane."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import streamcut
from streamcut.config import TrainOptions
from streamcut.errors import CorruptError, MemoryBudgetError
from streamcut.execution import parted as parting
from streamcut.execution import plan as planning
from streamcut.execution.parted import Shards, parted
from streamcut.execution.plan import Machine, plan_memory
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.systems import resident_bytes
from streamcut.io.memory import MemoryDataset
from streamcut.io.opening import open_dataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.io.stores.hdf5_parts import HDF5Parts
from streamcut.io.stores.parts import Parts
from streamcut.io.stores.writer import StoreWriter
from streamcut.io.stores.zarr_parts import ZarrParts
from streamcut.jobs.binary import BinaryJob
from streamcut.oracles.dual import ascent, random_order
from streamcut.training import train

ROWS = 900


def write(path, X, y, *, shard_nnz=1 << 20, weight=None, backend="zarr"):
    given = {"shard_nnz": shard_nnz, "n_features": X.shape[1], "options": {}, "backend": backend}
    with StoreWriter(str(path), **given) as writer:
        writer.append(Chunk(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, y, weight=weight), {"block": 0})
        writer.finish({})
    return open_dataset(str(path))


def rows(n, per_row, features, *, seed=0, dtype=np.float32, noise=True):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 2 * per_row, n)
    indptr = np.append(0, np.cumsum(lengths))
    starts = rng.integers(0, features - 4 * per_row, n)
    indices = np.concatenate(
        [start + np.sort(rng.choice(4 * per_row, m, replace=False)) for start, m in zip(starts, lengths, strict=True)]
    )
    values = rng.standard_normal(indptr[-1]) if noise else rng.integers(1, 4, indptr[-1])
    return sp.csr_array((values.astype(dtype), indices.astype(np.int32), indptr), (n, features))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Shards with one block of each array; with several, values compressed and not; with small numbers and weights; of ones."""
    folder, found = tmp_path_factory.mktemp("parts"), {}
    small, large = rows(ROWS, 12, 4000), rows(12_000, 50, 90_000, seed=1)
    ones = rows(ROWS, 12, 4000, seed=2)
    ones.data[:] = 1.0
    found["small"] = write(folder / "small.zarr", small, np.arange(ROWS) % 3.0, shard_nnz=2500)
    found["blocks"] = write(folder / "blocks.zarr", large, np.arange(12_000) % 2.0, shard_nnz=400_000)
    found["bytes"] = write(
        folder / "bytes.zarr", rows(9_000, 80, 90_000, seed=3, dtype=np.int8, noise=False), np.arange(9_000) % 2.0,
        weight=np.arange(9_000) % 5 + 0.5,
    )  # fmt: skip
    found["ones"] = write(folder / "ones.zarr", ones, np.arange(ROWS) % 2.0)
    found["hdf5"] = write(folder / "h.h5s", large, np.arange(12_000) % 2.0, shard_nnz=400_000, backend="hdf5")
    found["hdf5 ones"] = write(folder / "ones.h5s", ones, np.arange(ROWS) % 2.0, weight=np.arange(ROWS) + 0.5, backend="hdf5")
    return found


def in_parts(store, entries):
    return (HDF5Parts if store.manifest.backend == "hdf5" else ZarrParts)(store, entries)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_parts_are_the_rows_of_the_store(stores, data):
    store = stores[data.draw(st.sampled_from(sorted(stores)))]
    entries = data.draw(st.one_of(st.integers(1, 4000), st.integers(10_000, 500_000)))
    parts = in_parts(store, max(entries, store.manifest.statistics.nnz // 300))
    assert parts.manifest.statistics == store.manifest.statistics
    assert all(info.nnz <= entries or info.rows == 1 for info in parts.manifest.shards if entries > 10_000)
    order = (
        data.draw(st.permutations(range(len(parts.manifest.shards))))
        if data.draw(st.booleans())
        else range(len(parts.manifest.shards))
    )
    buffers, whole = parts.buffers() if data.draw(st.booleans()) else None, {}
    for shard in range(len(store.manifest.shards)):
        whole[shard] = store.read(shard)
    firsts = np.cumsum([0, *(info.rows for info in store.manifest.shards)])
    for number in order:
        part = parts.read(number, buffers)
        shard = int(np.searchsorted(firsts, part.first_row, side="right")) - 1
        start = part.first_row - whole[shard].first_row
        expected = whole[shard].rows(start, start + part.n_rows)
        inside = slice(expected.indptr[0], expected.indptr[-1])
        np.testing.assert_array_equal(part.indptr, expected.indptr - expected.indptr[0])
        np.testing.assert_array_equal(part.indices, whole[shard].indices[inside])
        np.testing.assert_array_equal(part.y, expected.y)
        for name in ("data", "weight"):
            ours, theirs = getattr(part, name), getattr(expected, name)
            assert (ours is None) == (theirs is None)
            if ours is not None:
                np.testing.assert_array_equal(ours, theirs[inside] if name == "data" else theirs)
                assert ours.dtype == theirs.dtype


def test_parts_take_less_memory_than_they_say(stores):
    """What buffers hold beside their arrays is in the room for files: blocks of 512 KiB of each array, and what is read."""
    parts = ZarrParts(stores["blocks"], 1 << 16)
    buffers = parts.buffers()
    for number in range(len(parts.manifest.shards)):
        parts.read(number, buffers)
    held = sum(len(array.base) for _, array in buffers._held.values())
    used = max(info.nnz for info in parts.manifest.shards) * 4 + (1 << 19)
    assert held + used <= len(buffers.raw) < buffer_bytes(parts.manifest) < buffer_bytes(stores["blocks"].manifest)


def read_all(data):
    parts = data if isinstance(data, Parts) else ZarrParts(data, 1 << 16)
    for number in range(len(parts.manifest.shards)):
        parts.read(number)


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "y"])
def test_damage_is_found(stores, tmp_path, name):
    """Before anything of a file is used, and when it changes after that."""
    X = rows(8_000, 50, 90_000, seed=5)
    write(tmp_path / "d.zarr", X, np.arange(8_000) % 2.0)
    file = tmp_path / "d.zarr" / "shards" / "000000" / name / "c.0"
    sound = file.read_bytes()
    parts = ZarrParts(open_dataset(str(tmp_path / "d.zarr")), 1 << 16)
    buffers = parts.buffers()
    parts.read(0, buffers)
    for at in (3, 10, 18, 40, len(sound) // 2, len(sound) - 30, len(sound) - 2):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 16]) + sound[at + 1 :])
        with pytest.raises(CorruptError, match=name):
            read_all(open_dataset(str(tmp_path / "d.zarr")))
        if 40 <= at < len(sound) - 2:
            with pytest.raises(CorruptError, match="changed while it was in use"):
                read_all(parts)
        file.write_bytes(sound)
    file.write_bytes(sound[:-5])
    with pytest.raises(CorruptError, match="bytes long"):
        parts.read(len(parts.manifest.shards) - 1)


def test_damage_of_hdf5_is_found(tmp_path):
    """Before the library sees a byte of a file, and when it changes after that."""
    write(tmp_path / "d.h5s", rows(8_000, 50, 90_000, seed=5), np.arange(8_000) % 2.0, backend="hdf5")
    file = tmp_path / "d.h5s" / "shards" / "000000.h5"
    sound = file.read_bytes()
    parts = HDF5Parts(open_dataset(str(tmp_path / "d.h5s")), 1 << 16)
    for at in (3, 100, len(sound) // 2, len(sound) - 1):
        file.write_bytes(sound[:at] + bytes([sound[at] ^ 16]) + sound[at + 1 :])
        with pytest.raises(CorruptError, match=r"000000\.h5: does not have the checksum"):
            HDF5Parts(open_dataset(str(tmp_path / "d.h5s")))
        with pytest.raises(CorruptError, match="changed while it was in use"):
            read_all(parts)
    file.write_bytes(sound[:-5])
    with pytest.raises(CorruptError, match="bytes long"):
        parts.read(0)
    file.write_bytes(sound)
    read_all(parts)


def test_a_large_shard_of_hdf5_does_not_decide_the_least_memory(tmp_path):
    X = rows(90_000, 70, 3000, seed=6)
    found = []
    for backend in ("zarr", "hdf5"):
        store = write(tmp_path / backend, X, np.arange(90_000) % 2.0, shard_nnz=1 << 22, backend=backend)
        for whole in (True, False):
            with pytest.raises(MemoryBudgetError) as refused:
                plan_of(store, 1, whole=whole, solver="cpa")
            found.append(refused.value.least)
        model = train(
            str(store.path), memory=f"{resident_bytes() + found[-1] + (4 << 20)}B", workers=1, solver="cpa", max_passes=2
        )
        assert model.resources["planned"] <= model.resources["budget"]
    assert found[0] > found[1] + 10 * 10**6
    assert found[2] > found[3] + 10 * 10**6
    assert abs(found[1] - found[3]) < 5 * 10**6


def test_who_has_parts(stores, tmp_path):
    assert all(parted(store) is not None for store in stores.values())
    X, y = rows(200, 5, 400), np.arange(200) % 2.0
    with streamcut.create(tmp_path / "q.zarr", 400) as out:
        out.append(X, y, qid=np.arange(200) // 10)
    assert parted(open_dataset(str(tmp_path / "q.zarr"))) is None
    assert parted(MemoryDataset(X, y)) is None
    assert Shards(stores["small"], whole=True)._parts is None


def plan_of(store, budget, *, whole=False, **options):
    """The plan of `train` with so many bytes for all but the process."""
    shards, job = Shards(store, whole=whole), BinaryJob.planned(TrainOptions(workers=1, **options), store.manifest)

    def planned(data):
        needs = job.needs(data.manifest)
        if data is not store:
            needs = replace(needs, mixing=tuple(each for each in needs.mixing if each.streams == 4))
        machine = Machine(budget, 0, 1)
        return needs.planned(partial(plan_memory, manifest=data.manifest, machine=machine))

    return shards.planned(planned, job.needs(store.manifest).most_mixed)


@pytest.fixture
def small_parts(monkeypatch):
    """Batches of about 1,000 rows, parts of 300."""
    order = random_order.RandomOrder(nnz=400, batch=32, within=False)
    monkeypatch.setattr(ascent, "ORDER", order)
    monkeypatch.setattr("streamcut.jobs.binary.ORDER", order)
    monkeypatch.setattr(parting, "ZarrParts", partial(ZarrParts, entries=4000))


def test_short_memory_makes_batches_smaller_and_never_places_fewer(tmp_path, small_parts, monkeypatch):
    monkeypatch.setattr("streamcut.jobs.binary.ORDER", random_order.RandomOrder(nnz=1 << 13, batch=32, within=False))
    store = write(tmp_path / "d.zarr", rows(40_000, 100, 4000, seed=7), np.arange(40_000) % 2.0, shard_nnz=1 << 22)
    with pytest.raises(MemoryBudgetError) as refused:
        plan_of(store, 1, row_cache="0")
    least, found = refused.value.least - planning._SPREAD, []  # what differs from run to run
    for budget in np.geomspace(least, 4 * least, 30):
        plan = plan_of(store, int(budget), row_cache="0")
        assert plan.total <= budget
        assert plan.streams == 4
        if plan.reads_again:
            found.append(plan.batch)
    assert found == sorted(found)
    assert found[-1] == 32 > found[0] == 1
    assert len(found) < 30, "then all rows stay in memory"


def test_parts_change_no_bits(tmp_path, small_parts, monkeypatch):
    """Weights, whatever is read at once and however large shards are, by one worker or two."""
    X = rows(12_000, 12, 4000, seed=8)
    y = np.where(X @ np.random.default_rng(0).standard_normal(4000) > 0.0, 1.0, -1.0)
    for n, shard_nnz in enumerate((1 << 20, 20_000)):
        write(tmp_path / f"{n}.zarr", X, y, shard_nnz=shard_nnz)
    given = {"row_cache": "0", "max_passes": 6, "tol": None, "tol_relative": None}
    models = [train(str(tmp_path / f"{n}.zarr"), workers=workers, **given) for n in (0, 1) for workers in (1, 2)]
    seen = []

    def always(shards, plan, wanted):
        seen.append(shards._parts)
        return replace(plan(shards._parts), parted=True, pinned=frozenset([0]), pinned_bytes=0)

    monkeypatch.setattr(Shards, "planned", always)
    models += [train(str(tmp_path / f"{n}.zarr"), workers=workers, **given) for n in (0, 1) for workers in (1, 2)]
    assert len(seen) >= 4
    assert all(np.array_equal(model.weights, models[0].weights) for model in models)
    assert len({model.certificate.lower_bound for model in models}) == 1


def test_scaled_rows_have_parts(tmp_path, small_parts):
    X = rows(3000, 12, 4000, seed=9)
    store = write(tmp_path / "d.zarr", X, np.arange(3000) % 2.0)
    data = streamcut.execution.scaled.scaled(store, "max-abs")
    parts = parted(data)
    assert len(parts.manifest.shards) > len(data.manifest.shards)
    assert (parts.manifest.fingerprint, parts.manifest.statistics) == (data.manifest.fingerprint, data.manifest.statistics)
    whole, part = data.read(0), parts.read(1)
    inside = slice(*whole.indptr[[part.first_row, part.first_row + part.n_rows]])
    np.testing.assert_array_equal(part.data, whole.data[inside])
