"""Kernel features for any job that trains linear models."""

from __future__ import annotations

from dataclasses import replace

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed
from streamcut.io.dataset import Dataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.kernel_choice import chosen_kernel
from streamcut.kernels.fourier import FourierMap
from streamcut.models.model import Model
from streamcut.oracles.landmarks import nystroem_map
from streamcut.oracles.mapped import MappedDataset


def with_features(feed: Feed, options: TrainOptions) -> MappedDataset:
    """The data of `feed` with approximate features of the options' kernel. Raises UsageError where unsupported."""
    name = "nystroem" if options.fourier is None else "fourier"
    if options.task == "sequence":
        raise UsageError(f"{name}: task sequence takes kernels by --solver=sampled-linear or sampled-constant")
    if options.distributed:
        raise UsageError(f"{name}: features are made on threads only, not on Dask")
    kernel, seed, data = chosen_kernel(options, feed), options.seed, feed.data
    if options.fourier is not None:
        dimension = data.manifest.statistics.n_features
        return MappedDataset(data, FourierMap.drawn(kernel, dimension, options.fourier, seed))
    assert options.nystroem is not None
    return MappedDataset(data, nystroem_map(feed, kernel, options.nystroem, seed))


def mapped(model: Model, data: Dataset) -> Model:
    """A linear model of kernel features, as a model of the original rows."""
    assert isinstance(data, MappedDataset)
    return replace(model, map=data.map)


def memory(data: Dataset, workers: int) -> tuple[tuple[str, int], ...]:
    """Memory of the features, besides buffers of mapped rows and the map itself, which already exists: (what, bytes)."""
    assert isinstance(data, MappedDataset)
    kept, saved, each = data.map.memory
    behind = 0 if data.inner.manifest.backend == "memory" else buffer_bytes(data.inner.manifest)
    work = f"features of a kernel: {kept} once more for the model's file, and what {workers} workers read and compute"
    made = 2 * buffer_bytes(data.manifest)  # a shard is allocated while the previous one exists, and the allocator keeps as much
    return ((work, saved + workers * (2 * behind + made + each + (1 << 20))),)
