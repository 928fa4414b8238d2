"""Early stopping: models are measured on other rows during training, which ends once they no longer improve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamcut.config import TrainOptions
from streamcut.errors import UsageError
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.models.model import Model

_ROW = 64  # bytes: scores kept and sorted, weights


class EarlyStopping:
    """Keeps the best model by a measure of streamcut.evaluate, and decides when to stop.

    data      the rows on which every model is measured
    patience  consecutive iterations without a better model after which training ends
    measure   None: the first that models of the task have
    """

    def __init__(self, data: Dataset, task: str, patience: Any, measure: str | None) -> None:
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise UsageError(f"early_stopping: {patience!r} is not a number of iterations, 1 or above")
        from streamcut.evaluation import measure_to_choose  # loads all measures, which other trainings do not need

        self.data, self.patience, self.measure = data, patience, measure_to_choose(task, measure)
        self.best: Model | None = None
        self.values: list[float] = []
        self._merit, self._since = -float("inf"), 0

    def watching(self, run: Any) -> Callable[[Model], bool]:
        """The same for the intermediate models of a training (streamcut.training.Session)."""

        def watch(model: Model) -> bool:
            run.rest()
            return self(run.in_given_features(model))

        return watch

    def __call__(self, model: Model) -> bool:
        """Measure `model`; True when it is time to stop. Raises UsageError where the measure is undefined."""
        from streamcut.evaluation import evaluate, merit

        value = evaluate(model, self.data).measures().get(self.measure)
        if value is None:
            raise UsageError(f"measure: {self.measure} is not defined on the validation data; choose another one")
        self.values.append(float(value))
        self._since += 1
        if (worth := merit(self.measure, float(value))) > self._merit:
            self.best, self._merit, self._since = model, worth, 0
        return self._since >= self.patience


def measuring_bytes(data: Dataset) -> int:
    """Memory needed to measure on `data`."""
    reading = 0 if isinstance(data, MemoryDataset) else buffer_bytes(data.manifest)
    return reading + _ROW * data.manifest.statistics.n_rows


def expect_possible(chosen: TrainOptions, patience: Any, measure: str | None, held_out: Any, checkpoint: Any) -> None:
    """Raise UsageError where early stopping is not possible."""
    if patience is None:
        if measure is not None:
            raise UsageError("measure: it is for early_stopping; for a grid use `tune`")
        return
    if held_out is None:
        raise UsageError("early_stopping: give the rows to measure on (--validation)")
    if chosen.record.family != "linear" or chosen.in_columns or chosen.problem == "sequence":
        raise UsageError(
            "early_stopping: only for linear solvers, and not for one-vs-rest, l1 with a free intercept, or sequences"
        )
    if checkpoint is not None:
        raise UsageError("early_stopping: checkpoints do not keep its measurements; leave one of them out")
