"""Data whose shards are read in parts, where whole shards take too much memory for the places a lane is read from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from streamcut.errors import MemoryBudgetError
from streamcut.execution.occurring import OccurringDataset
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.scaled import ScaledDataset, scaled_shard
from streamcut.io.dataset import Dataset
from streamcut.io.stores.zarr_parts import ZarrParts
from streamcut.io.stores.zarr_store import ZarrStore


def parted(data: Dataset) -> Dataset | None:
    """The same rows in smaller shards, read from the same files; None where only whole shards can be read.

    This holds for anything but our own stores on a local disk, and for grouped rows, since a shard holds whole groups.
    """
    if isinstance(data, ScaledDataset | OccurringDataset):
        inner = parted(data.inner)
        if inner is None:
            return None
        found: Any = copy.copy(data)
        shards = inner.manifest.shards
        found.inner = inner
        if isinstance(data, ScaledDataset):
            shards = tuple(map(scaled_shard, shards))
        found.manifest = replace(data.manifest, shards=shards)
        return found
    if data.manifest.statistics.groups is not None:
        return None
    if type(data) is ZarrStore:
        return ZarrParts(data)
    if data.manifest.backend == "hdf5":  # its library is already loaded
        from streamcut.io.stores.hdf5_parts import HDF5Parts
        from streamcut.io.stores.hdf5_store import HDF5Store

        return HDF5Parts(data) if type(data) is HDF5Store else None
    return None


class Shards:
    """`data` with whole shards, or in parts once requested; `whole`: never in parts."""

    def __init__(self, data: Dataset, *, whole: bool = False) -> None:
        self._whole, self._never = data, whole

    @cached_property
    def _parts(self) -> Dataset | None:
        return None if self._never else parted(self._whole)

    def of(self, plan: MemoryPlan) -> Dataset:
        """The data as `plan` reads it."""
        return self._parts if plan.parted and self._parts is not None else self._whole

    def planned(self, plan: Callable[[Dataset], MemoryPlan], wanted: tuple[int, int]) -> MemoryPlan:
        """The plan for the data: for its parts where whole shards don't fit, or leave less of a lane in memory at a time
        than `wanted`, (streams, batch), and parts leave more. Raises MemoryBudgetError with the minimum."""
        try:
            whole, refused = plan(self._whole), None
        except MemoryBudgetError as error:
            whole, refused = None, error
        if whole is not None and (not whole.reads_again or (whole.streams, whole.batch) >= wanted):
            return whole
        if self._parts is not None:
            try:
                parts = replace(plan(self._parts), parted=True)
                if whole is None or _rank(parts) > _rank(whole):
                    return parts
            except MemoryBudgetError as error:
                refused = refused and min(refused, error, key=lambda each: each.least or 0)
        if whole is None:
            assert refused is not None
            raise refused
        return whole


def _rank(plan: MemoryPlan) -> tuple[bool, int, int]:
    return not plan.spilled, plan.streams, plan.batch
