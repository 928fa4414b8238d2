"""A ceiling on the resident memory of commands that use a model: needs are computed before the work, and enforced.

Resident memory is measured once the model is loaded; what the rows add is arithmetic on the manifest, as in the plan of
training. Input without a manifest does not tell its row count beforehand, so its rows are counted as they come.
"""

from __future__ import annotations

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.systems import SPREAD, memory_limit, peak_bytes, resident_bytes, too_little
from streamcut.foundation.units import format_bytes
from streamcut.io.manifest import Manifest
from streamcut.io.stores.buffers import buffer_bytes
from streamcut.protocols import ModelLike

Lines = list[tuple[str, int]]
RowBytes = tuple[int, int]  # bytes kept per row of a data set without weights, and with weights

SLACK = 16 << 20  # Python objects, memory the allocator keeps
_KERNELS = 24 << 20  # what scoring loads: Numba's runtime, and machine code
_TEXT, _TABLE = 32 << 20, 128 << 20  # memory to read them: threads, blocks of text, libraries, batches
_SMALL = 32 << 20  # a model this small is loaded under any ceiling, so that a refusal can name the total
_A_ROW, _A_SCORE = 64, 48  # bytes per row of a block, and per score, while in use
_VALUES = 32 << 20  # kernel values in memory at a time, and their vectors


class Ceiling:
    """`memory` is "4GB", "50%" or "auto", as `train` takes it.

    Methods raise MemoryBudgetError, which names what would suffice.
    """

    def __init__(self, memory: str = "auto") -> None:
        self.budget = memory_limit(memory)
        self._before, self._lines = peak_bytes(), list[tuple[str, int]]()
        self._reserved: Lines = []
        self._a_row: RowBytes = (0, 0)
        self._rows = 0

    def reserve(self, what: str, size: int) -> None:
        """Reserve `size` bytes in addition to what is announced later."""
        self._reserved.append((what, size))

    def expect_model(self, size: int) -> None:
        """A model of `size` bytes is about to be loaded."""
        if size > _SMALL:
            self.expect([("the model", size)])

    def expect(self, lines: Lines) -> None:
        """The process will take these lines in addition to its present memory."""
        self._lines = [("interpreter, libraries, model", resident_bytes()), *lines, *self._reserved, ("slack", SLACK)]
        needed = max(sum(size for _, size in self._lines), self._peak())
        if needed > self.budget:
            why = "; ".join(f"{what}: {format_bytes(size)}" for what, size in self._lines)
            raise too_little(self.budget, needed + SPREAD, why)

    def expect_rows(self, model: ModelLike, rows: Manifest | str, kept: RowBytes = (0, 0), at_once: int = 1 << 20) -> None:
        """The rows of this manifest, or of input of this format, will be scored, at most `at_once` together.

        `kept` are bytes per row that stay in memory.
        """
        _load_kernels()
        self._a_row, self._rows = kept if isinstance(rows, str) else (0, 0), 0
        lines = [("kernels", _KERNELS), *_of_model(model)]
        if isinstance(rows, str):
            block = min(at_once, 1 << 16)
            lines.append((f"reading {rows}", _TEXT if rows in ("svmlight", "vw") else _TABLE))
        else:
            n_rows = rows.statistics.n_rows
            block = min(at_once, max((shard.rows for shard in rows.shards), default=0))
            if rows.backend != "memory":
                arrays = [array.stored_bytes for shard in rows.shards for array in shard.arrays.values()]
                lines.append(("reading a shard", buffer_bytes(rows) + max(arrays, default=0)))
            row_bytes = kept[rows.statistics.weight_sum is not None]
            lines += [(f"{row_bytes} bytes × {n_rows:,} rows", row_bytes * n_rows)] * (row_bytes > 0)
        lines.append((f"{block:,} rows at once", block * (_A_ROW + _A_SCORE * model.scores_per_row + _mapped_row(model))))
        self.expect(lines)

    def meet(self, chunk: Chunk) -> None:
        """These rows were scored."""
        self._rows += chunk.n_rows
        row_bytes = self._a_row[chunk.weight is not None]
        if (needed := sum(size for _, size in self._lines) + row_bytes * self._rows) > self.budget:
            why = f"{row_bytes} bytes × the {self._rows:,} rows so far, and as much for each further row"
            raise too_little(self.budget, needed + SPREAD, why)
        self.keep()

    def keep(self) -> None:
        """Check that the process is within its ceiling."""
        held = self._peak() or resident_bytes()
        if held > self.budget:
            needed = held + sum(size for what, size in self._lines[1:] if what != "slack")
            raise too_little(self.budget, needed + SPREAD, f"the process already has {format_bytes(held)}")

    def _peak(self) -> int:
        """The peak of the process since the ceiling was set, if above the earlier peak; else 0."""
        peak = peak_bytes()
        return peak if peak > self._before else 0


def _load_kernels() -> None:
    """Load what every model needs to score rows, so that resident memory includes it."""
    from streamcut.compiled import linear

    linear.scores(np.zeros(1, np.int64), np.empty(0, np.int32), None, np.zeros(1), 0.0, np.empty(0))


def _of_model(model: ModelLike) -> Lines:
    """Memory of scoring besides the weights: a copy with the bias feature's, and another while it is made; or kernel values."""
    weights = getattr(model, "weights", None)
    return [("kernel values", _VALUES)] if weights is None else [("copies of the weights", 2 * weights.nbytes)]


def _mapped_row(model: ModelLike) -> int:
    """Bytes of a row's mapped features, 0 if it is not mapped."""
    return 20 * int(model.map.n_features) if model.map is not None else 0
