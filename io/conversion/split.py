"""The split of rows into two outputs."""

from __future__ import annotations

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.io.conversion.shuffle import random_keys, take_rows

SPLIT_STREAM = 1  # of random_keys: a split says nothing about a shuffle of the same seed


class Splitter:
    """Deals rows to (OUTPUT, --split-output): with probability `share` to the first, by seed and row number (or qid) alone."""

    def __init__(self, share: float | None, seed: int) -> None:
        self.share, self.seed = share, seed

    def parts(self, chunk: Chunk, *more: np.ndarray) -> list[tuple]:
        """[(rows, more…) for each output]; `more` are arrays with one element a row."""
        if self.share is None:
            return [(chunk, *more)]
        numbers = chunk.first_row + np.arange(chunk.n_rows) if chunk.qid is None else chunk.qid
        first = random_keys(self.seed, numbers, SPLIT_STREAM) < np.uint64(self.share * 2.0**64)
        return [(take_rows(chunk, which), *(a[which] for a in more)) for which in (np.flatnonzero(first), np.flatnonzero(~first))]
