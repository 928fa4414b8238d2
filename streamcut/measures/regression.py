"""Measures of predicted numbers, in one pass and in memory that does not grow with rows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.measures.separation import ratio
from streamcut.models.model import Model


class RegressionMeasures:
    """Measures over rows of weight u_i (1 by default); None where one is undefined, such as R² of equal targets.

    r2                     1 − Σ u (y − s)² / Σ u (y − mean y)²
    mean_absolute_error, mean_squared_error, root_mean_squared_error
    pinball_loss           of the quantile that was fitted, for loss "quantile" only
    mean_poisson_deviance  2 mean(y log(y/μ) − y + μ) with μ = e^s, for loss "poisson" only

    Errors are those of the prediction, which is e^s for "poisson" and s for all other losses.
    """

    row_bytes: ClassVar[tuple[int, int]] = (0, 0)
    to_choose: ClassVar[tuple[str, ...]] = ("r2",)
    losses: ClassVar[tuple[str, ...]] = (
        "mean_absolute_error", "mean_squared_error", "root_mean_squared_error", "pinball_loss", "mean_poisson_deviance",
    )  # fmt: skip

    def __init__(self, model: Model) -> None:
        self._model = model
        self._loss, self._quantile = model.problem.loss, dict(model.problem.options).get("quantile", 0.5)
        self._rows, self._weight, self._absolute, self._own = 0, 0.0, 0.0, 0.0
        self._square, self._mean, self._spread = 0.0, 0.0, 0.0  # of errors; of targets: mean and Σ u (y − mean)²

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores."""
        y, u = chunk.y, np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        weight = float(u.sum())
        self._rows += chunk.n_rows
        if weight == 0.0:
            return
        error = y - self._model.labels_of(scores)
        self._absolute += float(u @ np.abs(error))
        self._square += float(u @ (error * error))
        if self._loss == "quantile":
            self._own += float(u @ np.maximum(self._quantile * error, (self._quantile - 1.0) * error))
        elif self._loss == "poisson":
            some = np.where(y > 0.0, y, 1.0)
            self._own += 2.0 * float(u @ (np.where(y > 0.0, y * (np.log(some) - scores), 0.0) - y + np.exp(scores)))
        mean = float(u @ y) / weight  # blocks merge as in Chan, Golub & LeVeque (1983)
        apart, total = mean - self._mean, self._weight + weight
        self._spread += float(u @ (y - mean) ** 2) + apart * apart * self._weight * weight / total
        self._mean += apart * weight / total
        self._weight = total

    def measures(self) -> dict[str, float | int | None]:
        """Every measure by its name."""
        mse = ratio(self._square, self._weight)
        unexplained = ratio(self._square, self._spread)
        name = {"quantile": "pinball_loss", "poisson": "mean_poisson_deviance"}.get(self._loss)
        return {
            "r2": None if unexplained is None else 1.0 - unexplained,
            "mean_absolute_error": ratio(self._absolute, self._weight),
            "mean_squared_error": mse,
            "root_mean_squared_error": None if mse is None else float(np.sqrt(mse)),
            **({} if name is None else {name: ratio(self._own, self._weight)}),
            "rows": self._rows,
            "weight": self._weight,
        }
