"""The power goes at any moment of a conversion, and the disk keeps no more than it promised: resuming gives the same bytes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kit.store_crash import content, make
from reference.power_loss import WAYS, Moment, Recorder, left_over

import streamcut
from streamcut.errors import StreamcutError

STRIDE = 31  # of the moments inside one shard; coprime to what a file takes


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """What is durable is the recorder's to say; real disks take their time."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def some(moments: list[Moment]) -> list[tuple[int, Moment]]:
    """Every STRIDE-th moment, and all of those that publish the store."""
    last = len(moments) - 12
    return [(number, moment) for number, moment in enumerate(moments) if number % STRIDE == 0 or number >= last]


def is_store(path: Path) -> bool:
    try:
        streamcut.open(path)
    except StreamcutError:
        return False
    return True


def without_journal(root: Path) -> dict[str, bytes]:
    return {name: kept for name, kept in content(root).items() if not name.startswith(("journal/", ".lock"))}


@pytest.mark.parametrize(("backend", "replaced"), [("zarr", False), ("hdf5", False), ("zarr", True)])
def test_the_power_goes_while_a_store_is_made_or_replaced(tmp_path, backend, replaced):
    live, how = tmp_path / "live", {"shard_nnz": 1500, **({"force": True} if replaced else {})}
    live.mkdir()
    older = None
    if replaced:
        make(live / "store", shard_nnz=3000, scale=2.0)
        older = content(live / "store")["manifest.json"]
    with Recorder(live) as recorder:
        make(live / "store", backend, **how)
    newer = content(live / "store")
    assert older != newer["manifest.json"]
    for way in WAYS:
        appeared, kept = 0, []
        for number, moment in some(recorder.moments):
            disk = tmp_path / f"{way} {number}"
            left_over(moment, disk, way, seed=number)
            whole = is_store(disk / "store")
            if whole:
                appeared += 1
                assert without_journal(disk / "store") == newer or content(disk / "store")["manifest.json"] == older
            if replaced or not whole:
                kept.append(make(disk / "store", backend, resume=True, **how))
                assert content(disk / "store") == newer, f"{way} at {moment.before}"
        assert appeared > 0
        assert replaced or max(kept) > 200  # of 400 rows: what was finished is not done again
