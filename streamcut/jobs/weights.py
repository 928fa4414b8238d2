"""Checks that the row weights allow learning, before any row is read."""

from __future__ import annotations

import math

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.io.manifest import Statistics

_LARGEST = 1e150  # its square is a number


def check_weights(statistics: Statistics, options: TrainOptions) -> None:
    """Raise BadInputError when all rows, or all of one class, have weight 0, and when weighted sums would overflow; UsageError
    where `bias` makes them overflow."""
    _check_size(statistics, options)
    if statistics.weight_sum is None:
        return
    if statistics.weight_sum == 0.0:
        raise BadInputError("all rows have weight 0: there is nothing to learn from; check the weights")
    classes = dict(statistics.label_weights or {}) if options.chosen_task in ("binary", "multiclass") else {}
    positive = options.positive_label
    if positive is not None and positive in classes:  # all other labels are one class
        classes = {positive: classes.pop(positive), math.nan: math.fsum(classes.values())}
    for label, weight in classes.items():
        if weight == 0.0:
            which = f"label {label:g}" if label == label else f"a label other than {positive:g}"
            raise BadInputError(f"all rows with {which} have weight 0: there is nothing to learn from; check the weights")


def _check_size(statistics: Statistics, options: TrainOptions) -> None:
    weight = float(statistics.n_rows) if statistics.weight_sum is None else statistics.weight_sum
    factor = max(1.0, options.C or 1.0) * max(1.0, options.positive_weight)
    if options.bias > max(1.0, statistics.max_abs_value) and factor * weight * options.bias > _LARGEST:
        raise UsageError(f"bias: {options.bias:g} for {statistics.n_rows:,} rows makes sums that overflow; choose a smaller one")
    if factor * weight * max(1.0, statistics.max_abs_value) > _LARGEST:
        raise BadInputError(
            f"row weights that add up to {weight:g} and values up to {statistics.max_abs_value:g}, with C {options.C:g}, make "
            "sums that overflow; scale the weights or the values down"
        )
