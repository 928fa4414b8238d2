"""How good a model is on labelled rows, which are streamed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from streamcut.data.inputs import Raw
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling, RowBytes
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.opened import read_lines
from streamcut.foundation.shown import Shown
from streamcut.measures.classes import BinaryMeasures, MulticlassMeasures
from streamcut.measures.ranking import RankingMeasures, RocAreaMeasures
from streamcut.measures.regression import RegressionMeasures
from streamcut.measures.sequence import SequenceMeasures
from streamcut.models.files import as_model
from streamcut.models.model import Model
from streamcut.prediction import scored_chunks, warn_of


class Measures(Protocol):
    """Collects the measures of a task. The best model has the greatest measure of `to_choose`, the least of `losses`.

    row_bytes   most memory for each row received: (without weights, with them)
    """

    def __init__(self, model: Model) -> None: ...

    row_bytes: ClassVar[RowBytes]
    to_choose: ClassVar[tuple[str, ...]]
    losses: ClassVar[tuple[str, ...]]

    def add(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Take rows and their scores, both valid only during the call."""

    def measures(self) -> Mapping[str, object]:
        """Every measure by its name, the most informative first; None where undefined."""


_OF_TASK: dict[str, type[Measures]] = {
    "binary": BinaryMeasures,
    "multiclass": MulticlassMeasures,
    "regression": RegressionMeasures,
    "one-class": BinaryMeasures,
    "ranking": RankingMeasures,
    "roc-area": RocAreaMeasures,
    "sequence": SequenceMeasures,
}


class Evaluation(Shown):
    """The measures of a model, each an attribute: `evaluation.accuracy`.

    unseen   {kind of value that did not fit the model's recipe: count}
    """

    def __init__(self, measures: Mapping[str, Any], unseen: Mapping[str, int] | None = None) -> None:
        self._measures, self.unseen = measures, dict(unseen or {})

    def measures(self) -> dict[str, Any]:
        """Every measure by its name (JSON types); None where undefined on this data."""
        return dict(self._measures)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._measures:
            raise AttributeError(f"no measure {name!r}; there are {', '.join(self.__dict__.get('_measures', {}))}")
        return self._measures[name]

    def shown(self) -> dict[str, object]:
        return {name: value for name, value in self._measures.items() if value is None or isinstance(value, str | int | float)}


def evaluate(
    model: Model | str | os.PathLike, data: object, *, index_base: int | None = None, ignore_extra_features: bool = False,
    label_names: Mapping[float, str] | str | os.PathLike | None = None, strict: bool = False, raw: Raw | None = None,
    memory: str = "auto",
) -> Evaluation:  # fmt: skip
    """See streamcut.api."""
    reading = raw or Raw(index_base)
    reading.strict |= strict
    collected = collect(model, data, ignore_extra_features, reading, label_names, ceiling=Ceiling(memory))
    if raw is None:
        warn_of(reading.unseen)
    return Evaluation(collected.measures(), reading.unseen)


def measures_of(model: Model) -> Measures:
    """The collector of a model's measures. Raises UsageError where there are none."""
    if model.task not in _OF_TASK:
        raise UsageError(f"there are no measures for a model of task {model.task}")
    return _OF_TASK[model.task](model)


def collect(
    model: Model | str | os.PathLike,
    data: object,
    ignore_extra_features: bool = False,
    raw: Raw | None = None,
    label_names: Mapping[float, str] | str | os.PathLike | None = None,
    *,
    into: Measures | None = None,
    ceiling: Ceiling | None = None,
) -> Measures:
    """The measures of the model's task, or those that are given (`into`), after all rows of `data`. Raises as `evaluate`."""
    ceiling = ceiling or Ceiling()
    model = as_model(model, ceiling.expect_model)
    collected = measures_of(model) if into is None else into
    if label_names is None:
        pass
    elif model.task == "sequence":
        collected = SequenceMeasures(model, label_names if isinstance(label_names, Mapping) else _named(label_names))
    else:
        raise UsageError(f"label_names: only models of sequences have named chunks, not a model of task {model.task}")
    rows = scored_chunks(
        model, data, ignore_extra_features=ignore_extra_features, raw=raw, ceiling=ceiling, kept=collected.row_bytes
    )
    for chunk, scores in rows:
        collected.add(chunk, scores)
    return collected


def _named(path: str | os.PathLike) -> dict[float, str]:
    """The names of labels in a file with a label and its name on every line."""
    lines = [line.split() for line in read_lines(path, "label names")]
    names: dict[float, str] = {}
    for number, words in enumerate(lines, start=1):
        try:
            label, name = words
            names[float(label)] = name
        except ValueError:
            text = " ".join(words)
            raise BadInputError(f"{os.fspath(path)}, line {number}: expected a label and its name, found {text!r}") from None
    return names


def measure_to_choose(task: str, name: str | None, probable: bool = False) -> str:
    """`name`; None: the log loss of `probable` classifiers, whose losses give probabilities, else the task's first measure.

    Raises UsageError when no model can be chosen by it.
    """
    names = (*_OF_TASK[task].to_choose, *_OF_TASK[task].losses) if task in _OF_TASK else ()
    if not names or (name is not None and name not in names):
        raise UsageError(f"measure: {name!r} cannot choose a model of task {task}; these can: {', '.join(names) or 'none'}")
    if name is None:
        return "log_loss" if probable and "log_loss" in names else names[0]
    return name


def merit(name: str, value: float) -> float:
    """`value` of the measure `name`, negated where the least is best: the best model has the greatest merit."""
    return -value if any(name in measures.losses for measures in _OF_TASK.values()) else value
