"""Kernel features for any job that trains linear models."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.execution.feed import Feed, Traffic
from streamcut.io.dataset import Dataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.jobs.kernel_choice import chosen_kernel
from streamcut.kernels.feature_map import FourierMap, NystroemMap
from streamcut.kernels.kernel import Kernel
from streamcut.models.model import Model
from streamcut.oracles.kernel_columns import fetch
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


def nystroem_map(feed: Feed, kernel: Kernel, landmarks: int, seed: int) -> NystroemMap:
    """The map of `landmarks` rows of the data of `feed`, drawn uniformly or in proportion to weights, of weight 0 never."""
    rows = fetch(feed, _drawn(feed, np.random.default_rng(seed), landmarks), Traffic())
    return NystroemMap.of(kernel, rows, feed.data.manifest.statistics.n_features, {"landmarks": landmarks, "seed": seed})


def _drawn(feed: Feed, rng: np.random.Generator, most: int) -> np.ndarray:
    """Numbers of up to `most` distinct rows, increasing: drawn uniformly, or in proportion to their weights, never of weight 0.

    With weights each row has the key log(r) / u, r uniform, and the largest are taken (Efraimidis & Spirakis 2006); one pass.
    """
    statistics = feed.data.manifest.statistics
    if statistics.weight_sum is None:
        return np.sort(rng.choice(statistics.n_rows, min(most, statistics.n_rows), replace=False, shuffle=False))
    numbers, keys = np.empty(0, np.int64), np.empty(0)
    for block in feed.blocks(0, statistics.n_rows, feed.buffers(), Traffic()):
        assert block.weight is not None
        counts = np.flatnonzero(block.weight)
        numbers = np.append(numbers, block.first_row + counts)
        keys = np.append(keys, np.log(rng.random(len(counts))) / block.weight[counts])
        if len(keys) > most:
            best = np.sort(np.argpartition(-keys, most - 1)[:most])
            numbers, keys = numbers[best], keys[best]
    return numbers
