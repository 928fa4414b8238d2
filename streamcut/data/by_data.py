"""Options of `train` that follow from the data: the task, the intercept, and labels by their words."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, CorruptError, UsageError
from streamcut.io.dataset import Dataset, first_rows
from streamcut.io.recipe.recipe import LabelRule
from streamcut.losses import row_loss

log = logging.getLogger(__name__)

_PROBABLE = {"auto": "logistic", "binary": "logistic", "multiclass": "softmax"}  # losses by tasks
LARGEST_TARGET = 1e100  # in absolute value: its square times the row count must be finite


def for_data(options: TrainOptions, data: Dataset) -> TrainOptions:
    """`options` with task "auto" resolved, a free intercept and a loss with probabilities for models of tables, and the positive
    label as the store's number.

    As far as the options allow: rows with qid are ranked; labels that are not integers, or more than a store counts, are
    regression targets; more than two other labels are classes. Otherwise the task is binary.
    Of two words, the alphabetically last is positive, as in scikit-learn; of two numbers, the greater.
    Raises BadInputError for rows without labels and for targets that the loss does not take, UsageError for an unknown
    positive label.
    """
    rule = LabelRule() if data.recipe is None else data.recipe.labels
    if rule.none and options.task != "one-class":
        raise BadInputError(f"{data.path}: its rows have no labels (--label=none): they can be scored, not trained on")
    if (positive := _number(options.positive_label, rule)) is not options.positive_label:
        options = replace(options, positive_label=positive)
    options = _task(options, data)
    if data.recipe is not None and data.recipe.table is not None:
        options = with_probabilities(with_free_intercept(options))
    if options.task == "regression":
        _check_targets(options, data)
    labels = data.manifest.statistics.labels
    if options.task in ("auto", "binary") and options.positive_label is None and rule.learned and labels and len(labels) == 2:
        positive = max(labels, key=lambda number: rule.names[number])
        if options.has("positive_label"):
            return replace(options, positive_label=positive)
    return options


def with_free_intercept(options: TrainOptions) -> TrainOptions:
    """`options` with an unpenalised intercept, where none was requested and no given option forbids it."""
    if options.intercept != "auto":
        return options
    try:
        free = replace(options, intercept="free")
    except UsageError:
        return options
    return free if free.has("intercept") else options


def with_probabilities(options: TrainOptions) -> TrainOptions:
    """`options` of a classifier with a loss that gives probabilities, where no loss, solver or kernel was requested."""
    loss = _PROBABLE.get(options.task)
    if loss is None or (options.loss, options.solver, options.kernel) != ("auto", "auto", "linear"):
        return options
    try:
        return replace(options, loss=loss)
    except UsageError:
        return options  # an option prevents it


def _task(options: TrainOptions, data: Dataset) -> TrainOptions:
    statistics = data.manifest.statistics
    if options.task != "auto":
        return options
    if options.chosen_task != "binary":  # set by an option
        return replace(options, task=options.chosen_task)
    if options.chosen_loss != "hinge":
        return options
    if statistics.groups is not None:
        task, why = "ranking", "the rows have a qid"
    elif options.positive_label is None and _numbers(statistics.labels):
        task, why = "regression", "the labels are real numbers"
    elif options.positive_label is None and (statistics.labels is None or len(statistics.labels) > 2):
        task, why = "multiclass", f"there are {'many' if statistics.labels is None else len(statistics.labels)} labels"
    else:
        return options
    try:
        decided = replace(options, task=task)
    except UsageError:
        return options  # an option prevents it
    log.info("task %s: %s", task, why)
    return decided


def _numbers(labels: dict[float, int] | None) -> bool:
    """Whether labels look like regression targets; None: too many to be counted."""
    return labels is None or (len(labels) > 2 and not all(label.is_integer() for label in labels))


def _check_targets(options: TrainOptions, data: Dataset) -> None:
    """Raises BadInputError, with the first row, for targets that the loss does not take."""
    loss, statistics = row_loss(options.chosen_loss, options.as_dict()), data.manifest.statistics
    least, most = max(loss.least_target, -LARGEST_TARGET), LARGEST_TARGET
    if least <= statistics.label_min and statistics.label_max <= most:
        return
    for shard, first in enumerate(first_rows(data.manifest)[: len(data.manifest.shards)]):
        y = data.read(shard).y
        bad = np.flatnonzero((y < least) | (y > most))
        if len(bad):
            row, target, limits = first + int(bad[0]) + 1, y[bad[0]], f"from {least:g} to {most:g}"
            raise BadInputError(f"row {row}: its target is {target:g}; loss {options.chosen_loss!r} takes targets {limits}")
    raise CorruptError(f"{data.path}: its statistics are not those of its rows; run `streamcut info --check --read-data`")


def _number(label: float | str | None, rule: LabelRule) -> float | None:
    """The number of a label, which may be given as a word."""
    if label is None or isinstance(label, int | float):
        return label
    numbers = {word: number for number, word in rule.names.items()}
    if label in numbers:
        return numbers[label]
    try:
        return float(label)
    except ValueError:
        labels = ", ".join(map(repr, list(numbers)[:10])) or "numbers"
        raise UsageError(f"positive_label: {label!r} is none of the labels: {labels}") from None
