"""The power goes at any moment of a conversion, and the disk keeps no more than it promised: resuming gives the same bytes."""

from __future__ import annotations

from pathlib import Path

import kit.shared.store_power_loss
import pytest
from kit.store_crash import content
from reference.power_loss import WAYS, Moment, Recorder, left_over

from inside.kit.store_crash import convert

quick_disk = kit.shared.store_power_loss.quick_disk


SHARD_NNZ = 2000
STRIDE = 5  # of the moments inside one shard; coprime to what a file takes


@pytest.fixture(scope="module", params=["zarr", "hdf5"])
def backend(request) -> str:
    return request.param


def recorded(root: Path, backend: str, **options) -> list[Moment]:
    with Recorder(root) as recorder:
        convert(root / "store", backend, shard_nnz=SHARD_NNZ, **options)
    return recorder.moments


def some(moments: list[Moment]) -> list[tuple[int, Moment]]:
    """Every STRIDE-th moment, and all of those that publish the store."""
    last = len(moments) - 12
    return [(number, moment) for number, moment in enumerate(moments) if number % STRIDE == 0 or number >= last]


@pytest.mark.thirds
@pytest.mark.parametrize("way", WAYS)
def test_the_power_goes_while_a_store_is_made(tmp_path, backend, way):
    (tmp_path / "live").mkdir()
    moments = recorded(tmp_path / "live", backend)
    whole = content(tmp_path / "live" / "store")
    appeared, kept = 0, []
    for number, moment in some(moments):
        disk = tmp_path / f"{number}"
        left_over(moment, disk, way, seed=number)
        if (disk / "store").exists():
            appeared += 1
        else:
            kept += convert(disk / "store", backend, shard_nnz=SHARD_NNZ, resume=True)[:1]
        assert content(disk / "store") == whole, f"{way} at {moment.before}"
    assert appeared > 0
    assert max(kept) > 200  # of 400 rows: what was finished is not done again
    if way != "anything":
        assert kept == sorted(kept)


@pytest.mark.thirds
@pytest.mark.parametrize("way", WAYS)
def test_the_power_goes_while_a_store_is_replaced(tmp_path, way):
    live = tmp_path / "live"
    live.mkdir()
    convert(live / "store", shard_nnz=2 * SHARD_NNZ)  # a copied folder is known by its manifest: that has to be another one
    older = content(live / "store")
    moments = recorded(live, "zarr", force=True)
    newer = content(live / "store")
    for number, moment in some(moments):
        disk = tmp_path / f"{number}"
        left_over(moment, disk, way, seed=number)
        names = [name for name in ("store", "store.replaced") if (disk / name).exists()]
        assert names, f"{way} at {moment.before}: neither the old nor the new store"
        if names == ["store.replaced"]:
            assert content(disk / "store.replaced") == older
        else:
            assert content(disk / "store") in (older, newer)
        convert(disk / "store", shard_nnz=SHARD_NNZ, resume=True, force=True)
        assert content(disk / "store") == newer
