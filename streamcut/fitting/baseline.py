"""The measures without any feature: the baseline that a model has to beat."""

from __future__ import annotations

import math

import numpy as np

from streamcut.io.dataset import Dataset

_LEAST = float(np.finfo(np.float64).eps)  # of a probability, as in log_loss


def without_features(training: Dataset, validation: Dataset, task: str, positive: float | None) -> dict[str, float]:
    """Measures on `validation` of the model that knows only the labels of `training`, by the names of streamcut.evaluate.

    Two labels (one is `positive`) and classes: their shares as probabilities, and the most frequent one as the answer.
    Regression: the mean. Row weights count. Empty for other tasks.
    """
    if task == "regression":
        (rows, total, _), (weight, linear, squares) = _moments(training), _moments(validation)
        mean = total / rows
        mse = max(squares - 2 * mean * linear + mean * mean * weight, 0.0) / weight
        spread = squares / weight - (linear / weight) ** 2
        explained = {"r2": 1.0 - mse / spread} if spread > 0.0 else {}
        return {**explained, "mean_squared_error": mse, "root_mean_squared_error": math.sqrt(mse)}
    if task not in ("binary", "auto", "multiclass"):
        return {}
    known, there = shares(training, positive), shares(validation, positive)
    most = max(known, key=lambda label: known[label])
    loss = -sum(share * math.log(max(known.get(label, 0.0), _LEAST)) for label, share in there.items())
    return {"log_loss": loss, "accuracy": there.get(most, 0.0)}


def shares(data: Dataset, positive: float | None = None) -> dict[float, float]:
    """{label: its share of the rows by weight}; with a `positive` label all others are merged as nan."""
    statistics = data.manifest.statistics
    counts = dict(statistics.label_weights or statistics.labels or {})
    if positive is not None:
        counts = {positive: counts.get(positive, 0), math.nan: sum(count for label, count in counts.items() if label != positive)}
    total = sum(counts.values())
    return {label: count / total for label, count in counts.items()} if total else {}


def _moments(data: Dataset) -> tuple[float, float, float]:
    """Σ u, Σ u y, Σ u y²."""
    sums, buffers = np.zeros(3), data.buffers()
    for shard in range(len(data.manifest.shards)):
        chunk = data.read(shard, buffers)
        u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        sums += [u.sum(), u @ chunk.y, u @ np.square(chunk.y)]
    return float(sums[0]), float(sums[1]), float(sums[2])
