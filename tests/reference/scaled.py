"""Problems as badly scaled as can be, from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.loss_table import ROW_LOSSES


@dataclass(frozen=True)
class Problem:
    """Rows of two classes, labels ±1, or with numbers as targets. `kind` says in a few words what makes it hard."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    loss: str
    own: dict[str, float]  # options of the loss
    positive_weight: float
    C: float
    bias: float

    @property
    def options(self) -> dict[str, Any]:
        """As `train` takes them."""
        if ROW_LOSSES[self.loss].targets == "numbers":
            return {"task": "regression", "loss": self.loss, "bias": self.bias, **self.own}
        return {"task": "binary", "loss": self.loss, "bias": self.bias, "positive_weight": self.positive_weight, **self.own}


# Options of losses, by name
_OWN = {
    "epsilon": lambda rng: float(rng.choice([0.0, 0.1, 0.5, 10.0 ** rng.uniform(-6, 2)])),
    "delta": lambda rng: float(rng.choice([0.1, 1.0, 10.0 ** rng.uniform(-4, 4)])),
    "quantile": lambda rng: float(rng.choice([0.5, 0.9, 0.01, rng.uniform(0.01, 0.99)])),
}


def problem(loss: str, seed: int) -> Problem:
    """Entries are float64 and not all 1, and rows have weights, so kernels are compiled for one kind of rows only."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    shape = rng.choice(["dense", "sparse", "one-hot", "rank one", "copies", "ones", "nearly copies"])
    X = rng.standard_normal((n, d))
    if shape == "sparse":
        X *= rng.random((n, d)) < 0.3
    elif shape == "one-hot":
        X = np.eye(d)[rng.integers(0, d, n)]
    elif shape == "rank one":
        X = np.outer(rng.standard_normal(n), rng.standard_normal(d))
    elif shape in ("copies", "nearly copies"):
        X = X[rng.integers(0, max(1, n // 3), n)]
        X *= 1.0 + (shape == "nearly copies") * 10.0 ** rng.uniform(-15, -3) * rng.standard_normal((n, d))
    elif shape == "ones":
        X = (rng.random((n, d)) < 0.5).astype(float)
    noise = rng.choice([0.0, 10.0 ** rng.uniform(-12, 0), 0.5])
    score = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    columns = rng.choice(["", "columns 1e±8", "two scales"])
    if columns == "columns 1e±8":
        X = X * 10.0 ** rng.uniform(-8, 8, d)
    elif columns == "two scales":
        X = X * rng.choice([1.0, 10.0 ** rng.uniform(-8, 8)], d)
    scaled = rng.choice(["", "", "rows 1e±6"])
    if scaled:
        X = X * 10.0 ** rng.uniform(-6, 6, (n, 1))
    if rng.random() < 0.2:
        X[rng.random(n) < 0.3] = 0.0
    if rng.random() < 0.3:
        X = X.astype(np.float32)
    X = X.astype(float) * (1.5 if np.isin(X, (0.0, 1.0)).all() else 1.0)
    record = ROW_LOSSES[loss]
    named, y = _numbers(score, rng, loss) if record.targets == "numbers" else _labels(score, rng)
    weights, weight = rng.choice(["", "", "weights", "weights 1e±6"]), np.ones(n)
    if weights:
        weight = rng.uniform(0, 2, n) if weights == "weights" else 10.0 ** rng.uniform(-6, 6, n)
        weight[rng.random(n) < 0.2] = 0.0
        weight[0] = max(weight[0], 1e-3)
    C = 10.0 ** rng.uniform(-6, 8) if rng.random() < 0.7 else float(rng.choice([1e-6, 1.0, 100.0, 1e8]))
    bias, positive_weight = float(rng.choice([0.0, 1.0, 1.0, 10.0, 0.1])), float(rng.choice([1.0, 1.0, 0.1, 7.0]))
    own = {name: _OWN[name](rng) for name in record.options}
    positive_weight = positive_weight if record.targets == "labels" else 1.0
    kind = ", ".join(filter(None, (shape, named, columns, scaled, weights)))
    return Problem(kind, X, y, weight, loss, own, positive_weight, float(C), bias)


def _labels(score: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    named = str(rng.choice(["random labels", "planted labels", "planted labels"]))
    middle = np.median(score)
    y = np.where((rng.standard_normal(len(score)) > 0.0) if named == "random labels" else score > middle, 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return named, y


def _numbers(score: np.ndarray, rng: np.random.Generator, loss: str) -> tuple[str, np.ndarray]:
    named = str(rng.choice(["planted numbers", "planted numbers", "large numbers", "equal numbers", "small numbers"]))
    if loss == "poisson" and named == "small numbers":
        return named, 10.0 ** rng.uniform(-8, 0) * np.exp(np.clip(score, -30.0, 30.0))
    if loss == "poisson":
        mean = {"large numbers": 10.0 ** rng.uniform(0, 6), "equal numbers": 0.0}.get(named, 2.0)
        return named, rng.poisson(mean * np.exp(np.clip(score, -3.0, 3.0))).astype(float)
    if named == "equal numbers":
        return named, np.full(len(score), float(rng.choice([0.0, 1.0, -1e6])))
    scale = {"large numbers": 10.0 ** rng.uniform(0, 8), "small numbers": 10.0 ** rng.uniform(-8, 0)}.get(named, 1.0)
    return named, scale * score + float(rng.choice([0.0, 0.0, 10.0 * scale]))
