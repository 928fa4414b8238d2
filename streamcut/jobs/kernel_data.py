"""What jobs of kernels share: the kernel that the options choose, its approximate features, and held-out rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.views import OccurringDataset
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import EPSILON
from streamcut.io.dataset import is_dataset
from streamcut.io.features import feature_statistics
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.opening import open_dataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.kernels.centre import centre_of
from streamcut.kernels.kernel import RBF, Kernel
from streamcut.kernels.maps import FourierMap, NystroemMap
from streamcut.measures.regression import RegressionMeasures
from streamcut.models.kernel import KernelModel
from streamcut.models.model import Model
from streamcut.oracles.kernel_columns import fetch
from streamcut.oracles.mapped import MappedDataset
from streamcut.oracles.variance import automatic_gamma
from streamcut.problem import Problem
from streamcut.protocols import Dataset

_FARTHEST = 100.0


def chosen_kernel(options: TrainOptions, feed: Feed) -> Kernel:
    """The kernel of the options; γ "auto" takes a pass over the data. Raises BadInputError when the data has no spread."""
    if options.kernel == "linear":
        return Kernel("linear")
    if isinstance(options.gamma, str):
        inner = Feed(feed.data.inner) if isinstance(feed.data, OccurringDataset) else feed  # zeros count
        gamma = automatic_gamma(inner)
    else:
        gamma = float(options.gamma)
    return Kernel(options.kernel, gamma, options.degree, options.coef0)


def centred_kernel(kernel: Kernel, feed: Feed) -> Kernel:
    """The kernel as computed for rows of these data: a distance kernel is centred near the rows, however far from 0 they are.

    Raises BadInputError for other kernels if rows are so far from 0 that values hardly differ: kernel columns are float32.
    """
    sums, statistics = feature_statistics(feed.data), feed.data.manifest.statistics
    centre = centre_of(statistics.n_rows, sums.index, sums.total, sums.squares)
    if kernel.code == RBF:
        return replace(kernel, centre=centre)
    mean = sums.total / statistics.n_rows
    spread = float(np.maximum(sums.squares / statistics.n_rows - mean * mean, EPSILON * mean * mean).sum())
    if centre is not None and float(centre.value @ centre.value) > _FARTHEST**2 * spread:
        worst = int(np.argmax(np.abs(centre.value)))
        raise BadInputError(
            f"kernel: rows are over {_FARTHEST:g} times as far from the origin as from one another, most of it in feature "
            f"{centre.index[worst]} (0-based), mean {centre.value[worst]:g}; kernel {kernel.name} hardly distinguishes them; "
            "subtract the means of such features, or take kernel rbf"
        )
    return kernel


def kernel_model(
    options: TrainOptions, problem: Problem, manifest: Manifest, rows: Chunk, history: list[dict[str, Any]], *,
    fixed: Mapping[str, Any] | None = None, **fields: Any,
) -> KernelModel:  # fmt: skip
    """The model with these support rows; `fixed` are parameters decided by the run, `fields` others of the model."""
    values = np.ones(rows.nnz) if rows.data is None else rows.data.astype(np.float64)
    return KernelModel(
        support=sp.csr_array((values, rows.indices, rows.indptr), shape=(rows.n_rows, manifest.statistics.n_features)),
        problem=problem,
        solver=options.chosen_solver,
        history=history,
        parameters={**options.as_dict(), **(fixed or {})},
        fingerprint=manifest.fingerprint,
        **fields,
    )


def check_norms(statistics: Statistics) -> None:
    """Raise BadInputError when a row's norm is so large that its kernel values are not finite."""
    if not math.isfinite(statistics.max_squared_norm):
        raise BadInputError("the squared norm of a row is not finite; scale the features")


def validation_rows(options: TrainOptions, statistics: Statistics, problem: Problem) -> Dataset | None:
    """The held-out rows of the options, if any. Raises BadInputError for features that the training data lacks, and for labels
    that are none of the problem's."""
    if options.validation is None:
        return None
    rows, name = options.validation, options.as_dict()["validation"]
    data = rows if is_dataset(rows) else open_dataset(rows)
    n_features, labels = data.manifest.statistics.n_features, data.manifest.statistics.labels
    if n_features > statistics.n_features:
        raise BadInputError(f"validation: {name} has {n_features:,} features, the data only {statistics.n_features:,}")
    unknown = sorted(set(labels or ()) - set(problem.labels or labels or ()))
    if unknown and not problem.rest:
        some = ", ".join(f"{label:g}" for label in unknown[:10])
        raise BadInputError(f"validation: {name} has labels that the data does not have: {some}")
    return data


def measured(model: KernelModel, data: Dataset) -> float | None:
    """On these rows: R² of a regression, else the share that the model labels as they are labelled."""
    feed, rows = Feed(data), data.manifest.statistics.n_rows
    fit, right = RegressionMeasures(model) if model.task == "regression" else None, 0
    for block in feed.blocks(0, rows, feed.buffers(), Traffic()):
        scores = model.score_chunk(block)
        if fit is not None:
            fit.add(block, scores)
        elif scores.ndim == 1:
            right += int(np.count_nonzero((scores > 0.0) == model.is_positive(block.y, block.first_row)))
        else:
            right += int(np.count_nonzero(model.labels_of(scores) == block.y))
    return right / rows if fit is None else fit.measures()["r2"]


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


def map_bytes(data: Dataset, workers: int) -> tuple[tuple[str, int], ...]:
    """Memory of the features, besides buffers of mapped rows and the map itself, which already exists: (what, bytes)."""
    assert isinstance(data, MappedDataset)
    kept, saved, per_worker = data.map.memory
    behind = 0 if data.inner.manifest.backend == "memory" else buffer_bytes(data.inner.manifest)
    work = f"features of a kernel: {kept} once more for the model's file, and what {workers} workers read and compute"
    made = 2 * buffer_bytes(data.manifest)  # a shard is allocated while the previous one exists, and the allocator keeps as much
    return ((work, saved + workers * (2 * behind + made + per_worker + (1 << 20))),)


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
