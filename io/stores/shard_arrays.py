"""The rows of a shard as stored arrays: each in the smallest exact type, with its checksum."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamcut.compiler.jit import kernel
from streamcut.io.manifest import ArrayInfo, ShardInfo
from streamcut.io.stores.codec import crc32c
from streamcut.io.stores.collector import INT32_MAX, ShardRows
from streamcut.io.stores.spec import VALUES


def write_shard(files: Any, shard: int, rows: ShardRows) -> ShardInfo:
    """Encode one shard and pass it to `files` (e.g. ZarrWriter); runs in a background thread."""
    chunk, ones = rows.chunk(), False
    contents: dict[str, tuple[str, int, int]] = {}

    def narrowed() -> Iterator[tuple[str, np.ndarray]]:
        nonlocal ones
        for name in ("data", "indices", "indptr", "y", "qid", "weight"):
            array = getattr(chunk, name)
            if array is None:
                continue
            if array.dtype == np.float64:
                dtype, all_ones = smallest(array)
                ones = all_ones if name == "data" else ones
                array = array.astype(dtype, copy=False)
            elif name == "indices" and array.dtype != np.int32 and array.max(initial=0) <= INT32_MAX:
                array = array.astype(np.int32)
            elif name == "indptr":
                array = array.astype(contents["indices"][0])
            contents[name] = array.dtype.name, len(array), crc32c(array)
            yield name, array

    guards = files.write_shard(shard, narrowed(), rows.rows)
    arrays = {}
    for name, (dtype, size, crc) in contents.items():
        stored_bytes, stored_crc = guards[name]
        arrays[name] = ArrayInfo(dtype, size, crc, stored_bytes, stored_crc)
    return ShardInfo(rows.rows, rows.nnz, ones, arrays)


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
