"""Rows of a chunk chosen by their numbers, and random numbers of them."""

from __future__ import annotations

import numpy as np

from streamcut.compiler.jit import kernel
from streamcut.foundation.chunk import Chunk
from streamcut.io.stores.buffers import ShardBuffers

GOLDEN = 0x9E3779B97F4A7C15  # 2⁶⁴ divided by the golden ratio


@kernel
def gather_rows(starts, lengths, source, out):
    """Fill `out` with source[starts[i] : starts[i] + lengths[i]] for i = 0, 1, …, contiguously (in place)."""
    position = 0
    for i in range(len(starts)):
        start = starts[i]
        for t in range(lengths[i]):
            out[position] = source[start + t]
            position += 1


def take_rows(rows: Chunk, which: np.ndarray, space: ShardBuffers | None = None, first_row: int = 0) -> Chunk:
    """Rows `which` (n, integers) of `rows`, copied, in that order; their entries to `space`, if there is one."""
    space = space or ShardBuffers()
    starts = rows.indptr[which]
    lengths = rows.indptr[which + 1] - starts
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def entries(name: str, source: np.ndarray) -> np.ndarray:
        out = space.array(name, source.dtype, int(indptr[-1]))
        gather_rows(starts, lengths, source, out)
        return out

    qid, weight = (None if column is None else column[which] for column in (rows.qid, rows.weight))
    data = None if rows.data is None else entries("data", rows.data)
    return Chunk(indptr, entries("indices", rows.indices), data, rows.y[which], qid, weight, first_row)


def mixed(z: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014) on uint64, which is invertible."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
