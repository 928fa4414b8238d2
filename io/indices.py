"""Numbers from outside that become indices: checked before they are narrowed and before any kernel uses them.

A cast hides errors: 0.5 becomes 0, 2⁶³ + 5 becomes 5 in int32, and −1 is the last one. Kernels check no bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamcut.errors import BadInputError


def expect_indices(values: np.ndarray, bound: int, where: str | Callable[[int], str], what: str = "index") -> np.ndarray:
    """`values` unchanged, after checking that they are of an integer type with 0 <= value < `bound`. Any cast that holds
    `bound` is safe afterwards.

    where   names the place in messages, or a function that names it for the position of the first wrong value in `values`
    what    noun for a value in messages

    Raises BadInputError. Floats, even whole ones, and booleans are refused.
    """

    def wrong(position: int, how: str) -> BadInputError:
        return BadInputError(f"{where if isinstance(where, str) else where(position)}: {how}")

    if not values.size:  # of any type
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
    """`pointers` as int64, after checking that they are integers from 0 to `entries` and never decrease.

    where, what   as in `expect_indices`

    Raises BadInputError.
    """
    found = expect_indices(pointers, entries + 1, where, what).astype(np.int64)
    falls = np.flatnonzero(np.diff(found) < 0)
    if len(falls):
        place = where if isinstance(where, str) else where(int(falls[0]))
        raise BadInputError(f"{place}: {what}s decrease; the file is damaged")
    return found
