"""Labels of classes as users wrote them."""

from __future__ import annotations

import numpy as np

from streamcut.errors import BadInputError


def positive_rows(y: np.ndarray, labels: tuple[float, float], rest: bool, first_row: int) -> np.ndarray:
    """Which of the labels `y` are the positive one of (negative, positive), bool (n,); `rest`: the negative is all others.

    Raises BadInputError for a label unknown here, counting rows from `first_row`.
    """
    negative, positive = labels
    found = y == positive
    unknown = ~found & (y != negative)
    if not rest and unknown.any():
        row = int(np.argmax(unknown))
        raise BadInputError(
            f"row {first_row + row} (0-based) has label {y[row]:g}, but the model knows only {negative:g} and {positive:g}"
        )
    return found


def class_numbers(y: np.ndarray, labels: tuple[float, ...], first_row: int) -> np.ndarray:
    """The index of each label of `y` in `labels`, which increase, int64 (n,).

    Raises BadInputError for a label unknown here, counting rows from `first_row`.
    """
    known = np.asarray(labels)
    found = np.minimum(np.searchsorted(known, y), len(known) - 1)
    unknown = known[found] != y
    if unknown.any():
        row = int(np.argmax(unknown))
        some = ", ".join(f"{label:g}" for label in labels[:10])
        more = f" and {len(labels) - 10} more" if len(labels) > 10 else ""
        raise BadInputError(f"row {first_row + row} (0-based) has label {y[row]:g}, but the model knows only {some}{more}")
    return found
