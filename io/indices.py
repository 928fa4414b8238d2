"""Numbers from outside that become indices: looked at before anything narrows them, and before any kernel follows them.

A cast hides what is wrong: 0.5 becomes 0, 2⁶³ + 5 becomes 5 in int32, and −1 is the last one. Kernels check no bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamcut.errors import BadInputError


def expect_indices(values: np.ndarray, bound: int, where: str | Callable[[int], str], what: str = "index") -> np.ndarray:
    """`values`, as they are, once they are known to be of an integer type with 0 <= value < `bound`: every cast that holds
    `bound` is safe now.

    where   names the place in messages; a function is asked for that of the first wrong value, by its position in `values`
    what    a value is called in messages

    Raises BadInputError. Floats are refused whether they are whole or not, and so are booleans.
    """

    def wrong(position: int, how: str) -> BadInputError:
        return BadInputError(f"{where if isinstance(where, str) else where(position)}: {how}")

    if not values.size:  # of whatever type
        return values
    if values.dtype.kind not in "iu":
        raise wrong(0, f"{what} is of type {values.dtype.name}, not a whole number")
    if values.min() < 0:
        first = int(np.argmax(values < 0))
        raise wrong(first, f"{what} {values.flat[first]} is negative")
    if int(values.max()) >= bound:
        first = int(np.argmax(values > bound - 1)) if bound > 0 else 0
        raise wrong(first, f"{what} {values.flat[first]} is not below {bound:,}")
    return values


def expect_pointers(pointers: np.ndarray, entries: int, where: str | Callable[[int], str], what: str = "pointer") -> np.ndarray:
    """`pointers` as int64, once they are known to be of an integer type, from 0 to `entries`, and not to decrease.

    where, what   as `expect_indices` takes them

    Raises BadInputError.
    """
    found = expect_indices(pointers, entries + 1, where, what).astype(np.int64)
    falls = np.flatnonzero(np.diff(found) < 0)
    if len(falls):
        place = where if isinstance(where, str) else where(int(falls[0]))
        raise BadInputError(f"{place}: {what}s decrease; the file is damaged")
    return found
