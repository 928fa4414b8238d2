"""The rows of a shard as stored arrays: each in the smallest exact type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamcut.compiler.jit import kernel
from streamcut.foundation.chunk import Chunk
from streamcut.io.stores.spec import VALUES

INT32_MAX = 2**31 - 1


def narrowed(chunk: Chunk) -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) of each array of a shard, whose indices are int32 where they fit."""
    for name in ("data", "indices", "indptr", "y", "qid", "weight"):
        array = getattr(chunk, name)
        if array is not None and array.dtype == np.float64:
            yield name, array.astype(smallest(array)[0], copy=False)
        elif array is not None:
            yield name, array.astype(chunk.indices.dtype) if name == "indptr" else array


@kernel
def _fits(values):
    """Counts: (values equal to 1, values exact in int8, values exact in float32)."""
    ones = small = single = 0
    for t in range(len(values)):
        value = values[t]
        ones += value == 1
        small += (value == np.floor(value)) & (value >= -128) & (value <= 127)
        single += np.float64(np.float32(value)) == value
    return ones, small, single


def smallest(values: np.ndarray) -> tuple[str, bool]:
    """(dtype name: int8, float32 or float64; whether every value is 1) for a float64 array. -0 counts as 0."""
    ones, small, single = _fits(values)
    n = len(values)
    return VALUES[0 if small == n else 1 if single == n else 2], ones == n
