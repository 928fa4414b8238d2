"""Nyström features for any job that trains linear models."""

from __future__ import annotations

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed
from streamcut.io.dataset import Dataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.kernel_choice import chosen_kernel
from streamcut.oracles.nystroem import NystroemDataset


def with_features(data: Dataset, options: TrainOptions) -> NystroemDataset:
    """`data` as the options' kernel sees it through some random rows of it. Raises UsageError where that is not offered."""
    assert options.nystroem is not None
    if options.task == "sequence":
        raise UsageError("nystroem: task sequence takes kernels by --solver sampled-linear or sampled-constant")
    if options.distributed:
        raise UsageError("nystroem: features are made on threads only, not on Dask")
    return NystroemDataset.drawn(data, chosen_kernel(options, Feed(data)), options.nystroem, options.seed)


def memory(data: NystroemDataset, workers: int) -> tuple[tuple[str, int], ...]:
    """What features take beside the buffers of rows that have them: (what, bytes)."""
    r = data.map.n_features
    landmarks = 8 * r * (2 * r + data.map.dimension)
    behind = 0 if data.inner.manifest.backend == "memory" else buffer_bytes(data.inner.manifest)
    work = f"features of {r:,} rows: landmarks, and what {workers} workers read and compute"
    made = 2 * buffer_bytes(data.manifest)  # a shard is new memory while the last one is there, and the allocator keeps as much
    return ((work, landmarks + workers * (2 * behind + made + 8 * 1024 * r + (1 << 20))),)
