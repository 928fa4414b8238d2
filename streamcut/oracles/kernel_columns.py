"""The oracle of kernel solvers: responses of all rows, kept up to date by kernel columns, and the support rows.

The responses c_j = y_j Σ_i α_i y_i k(x_i, x_j) are row state, one per row. A change of a few α_i
is one pass over the data, regardless of the number of changed rows; in memory a pass costs only its arithmetic. The rows
with α_i ≠ 0 and their α are kept in memory: they are the model.

SMO accesses rows in any order, so `read_whole` loads all of them into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamcut.compiled import kernel_columns
from streamcut.errors import CorruptError
from streamcut.execution.feed import Feed, Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.row_buffer import RowBuffer
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, concatenate, copied
from streamcut.io.dataset import entry_bytes, first_rows
from streamcut.io.manifest import Manifest
from streamcut.kernels.kernel import RBF, Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.models.kept import Kept

TILE = 1 << 20  # numbers of support rows that are dense at a time, for each worker
_ENTRIES = 1 << 18  # of rows scored in memory at once


def scores_in_memory(
    kernel: Kernel, chunk: Chunk, rows: np.ndarray, support: np.ndarray, coefficients: np.ndarray, dimension: int, workers: int
) -> np.ndarray:
    """Σ_k coefficients[k] k(x_i, x_j) with j = support[k], for i in `rows`, rows of `chunk`: float64, on threads."""
    vectors = Vectors(kernel, take(chunk, support), dimension, tile=TILE, kept=False)
    out, at_once = np.zeros(len(rows)), max(_ENTRIES * chunk.n_rows // max(chunk.nnz, 1), 1)

    def add(first: int) -> None:
        some = slice(first, first + at_once)
        vectors.add_sums(take(chunk, rows[some]), coefficients, out[some])

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(add, range(0, len(rows), at_once)))
    return out


class KernelColumn:
    """k(·, s) of one row s (the only one of `row`) over rows in memory."""

    def __init__(self, kernel: Kernel, row: Chunk, square: float, dimension: int) -> None:
        entries = slice(row.indptr[0], row.indptr[-1])
        self._kernel, self._square, self._dense = kernel, square, np.zeros(dimension)
        self._dense[row.indices[entries]] = 1.0 if row.data is None else row.data[entries]

    def over(self, chunk: Chunk, squares: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """The kernel values, float64, one for each of `rows` (None: for all rows of the chunk)."""
        out, squares = np.empty(chunk.n_rows if rows is None else len(rows)), squares if rows is None else squares[rows]
        entries = chunk.indptr, chunk.indices, chunk.data
        products = np.empty(kernel_columns.STRIP)
        kernel_columns.column(rows, *entries, squares, self._dense, self._square, self._kernel.compiled, products, out)
        return out


class SharedColumns:
    """Columns k(·, x_i) over all `n_rows` rows in memory, float32, shared by problems on the same rows: as many as `size` bytes
    hold, the first requested. Each is computed once."""

    def __init__(self, n_rows: int, size: int) -> None:
        self._most = size // (4 * n_rows)
        self._columns: dict[int, np.ndarray] = {}

    def of(self, row: int, compute: Callable[[], np.ndarray]) -> np.ndarray | None:
        """The column of `row`; None if it does not fit."""
        found = self._columns.get(row)
        if found is None and len(self._columns) < self._most:
            found = self._columns[row] = compute().astype(np.float32)
        return found


def squared_norms(chunk: Chunk) -> np.ndarray:
    """‖x_i‖² of the rows of a chunk."""
    out = np.empty(chunk.n_rows)
    kernel_columns.squared_norms(chunk.indptr, chunk.indices, chunk.data, out)
    return out


def mean_row(chunk: Chunk, dimension: int) -> Chunk:
    """The mean of the rows of a chunk, as a chunk of one row."""
    here = slice(int(chunk.indptr[0]), int(chunk.indptr[-1]))
    mean = np.bincount(chunk.indices[here], None if chunk.data is None else chunk.data[here], dimension) / chunk.n_rows
    (index,) = np.nonzero(mean)
    return Chunk(np.array([0, len(index)]), index.astype(chunk.indices.dtype), mean[index], np.zeros(1))


def take(chunk: Chunk, rows: np.ndarray) -> Chunk:
    """The rows `rows` of a chunk, in that order, as a copy; features and labels only."""
    starts, lengths = chunk.indptr[rows], chunk.indptr[rows + 1] - chunk.indptr[rows]
    indptr = np.append(0, np.cumsum(lengths))
    places = np.repeat(starts - indptr[:-1], lengths) + np.arange(indptr[-1])
    return Chunk(indptr, chunk.indices[places], None if chunk.data is None else chunk.data[places], chunk.y[rows])


@dataclass(frozen=True, slots=True)
class _SignPass(Pass):
    """Fills `square` and `sign` of the row state."""

    kernel: Kernel
    positive: float
    interruptible: ClassVar[bool] = True

    def visit_chunk(self, partial: None, rows: Rows, chunk: Chunk) -> None:
        rows["square"][:] = squared_norms(self.kernel.moved(chunk))
        if not np.isfinite(rows["square"]).all():
            bad = int(np.argmin(np.isfinite(rows["square"])))
            raise CorruptError(f"row {chunk.first_row + bad + 1}: its squared norm is not finite; scale the features")
        rows["sign"][:] = np.where(chunk.y == self.positive, 1, -1)


@dataclass(frozen=True, slots=True)
class _FollowPass(Pass):
    """c ← scale·(c + y Σ_k coefficients_k k(·, s_k)); `c_sum` += c where it is kept. It must not be applied twice.

    others  the rows s_k: the column of the only one, or their vectors
    """

    kernel: Kernel
    others: KernelColumn | Vectors
    coefficients: np.ndarray
    scale: float

    def visit_chunk(self, partial: None, rows: Rows, chunk: Chunk) -> None:
        if isinstance(self.others, KernelColumn):
            change = self.others.over(self.kernel.moved(chunk), rows["square"])
            change *= self.coefficients[0]
        else:
            change = np.zeros(chunk.n_rows)
            self.others.add_sums(chunk, self.coefficients, change)
        rows["c"][:] = self.scale * (rows["c"] + rows["sign"] * change)
        if "c_sum" in rows:
            rows["c_sum"][:] += rows["c"]


class Responses(Kept):
    """c_j = y_j Σ_i α_i y_i k(x_i, x_j) for all rows j of a runner; α = 0 at first. `averaged`: also sums of c and α over steps.

    evaluations   kernel values computed: one per row of the data for every row that a step changes, and those among
                  the rows of a batch
    passes, traffic   reads of the data
    """

    resized = ("numbers",)

    def __init__(self, runner: Runner, kernel: Kernel, positive: float, *, averaged: bool = False) -> None:
        statistics = runner.feed.data.manifest.statistics
        self.n_rows, self._dimension = statistics.n_rows, statistics.n_features
        self.kernel = kernel
        self.evaluations = 0
        self.passes = 0
        self.traffic = Traffic()
        self._runner = runner
        self._averaged = averaged
        # Rows are fetched again by their numbers, which makes α as long as it was, and adds to the traffic.
        self.kept = ("numbers", "c", "alpha", *(("c_sum", "alpha_sum") * averaged), "evaluations", "passes", "traffic")
        for name in ("c", "square") + ("c_sum",) * averaged:
            runner.row_state.add(name)
        runner.row_state.add("sign", np.int8)
        self._read(_SignPass(kernel, positive))
        self._buffers = runner.feed.buffers()
        self._slots: dict[int, int] = {}
        self._support: list[Chunk] = []
        self._alpha = np.zeros((2, 64))  # α and its sum over steps, one number for each row in _support

    @property
    def c(self) -> np.ndarray:
        """float64 (m,); do not modify it."""
        return self._runner.rows["c"]

    @property
    def c_sum(self) -> np.ndarray:
        """Σ c over steps, float64 (m,)."""
        return self._runner.rows["c_sum"]

    @property
    def signs(self) -> np.ndarray:
        """y_j, int8 (m,)."""
        return self._runner.rows["sign"]

    @property
    def diagonal(self) -> np.ndarray:
        """k(x_j, x_j), float64 (m,)."""
        squares = self._runner.rows["square"]
        return np.ones(self.n_rows) if self.kernel.code == RBF else self.kernel.diagonal(squares)

    @property
    def alpha(self) -> np.ndarray:
        """α of the rows in `numbers`, float64; a view."""
        return self._alpha[0, : len(self._support)]

    @property
    def alpha_sum(self) -> np.ndarray:
        """Σ α over steps, as `alpha`."""
        return self._alpha[1, : len(self._support)]

    @property
    def numbers(self) -> np.ndarray:
        """The rows ever changed, in the order of their first change, int64."""
        return np.fromiter(self._slots, np.int64, len(self._slots))

    @numbers.setter
    def numbers(self, rows: np.ndarray) -> None:
        if len(np.unique(rows)) != len(rows):
            raise ValueError("array numbers holds a row twice")
        self._take_in(rows)
        self._slots = {row: slot for slot, row in enumerate(rows.tolist())}
        self._support = [self._support[place] for place in np.argsort(np.argsort(rows))]

    def alpha_of(self, row: int) -> float:
        slot = self._slots.get(row)
        return 0.0 if slot is None else float(self._alpha[0, slot])

    def square_of(self, rows: np.ndarray, steps: np.ndarray) -> float:
        """‖Σ step_i y_i φ(x_i)‖² for the distinct `rows`; more than one are counted as b² evaluations."""
        squares = self._runner.rows["square"][rows]
        if len(rows) == 1:
            return float(steps[0] * steps[0] * self.kernel.diagonal(squares)[0])
        self._take_in(rows)
        chunk, coefficients, products = self._chunk(rows), steps * self.signs[rows], np.zeros(len(rows))
        Vectors(self.kernel, chunk, self._dimension).add_sums(chunk, coefficients, products)
        self.evaluations += len(rows) ** 2
        return float(coefficients @ products)

    def step(self, rows: np.ndarray, steps: np.ndarray, scale: float = 1.0) -> None:
        """α_i += step for the distinct `rows` (int64), then α and c times `scale`, then both to their sums. One pass."""
        self._take_in(rows)
        slots = [self._slots[row] for row in rows.tolist()]
        self._alpha[0, slots] += steps
        if scale != 1.0:
            self._alpha[0] *= scale
        if self._averaged:
            self._alpha[1] += self._alpha[0]
        chunk = self._chunk(rows)
        others: KernelColumn | Vectors
        if len(rows) == 1:
            square = float(self._runner.rows["square"][rows[0]])
            others = KernelColumn(self.kernel, self.kernel.moved(chunk), square, self._dimension)
        else:
            others = Vectors(self.kernel, chunk, self._dimension)
        self._read(_FollowPass(self.kernel, others, steps * self.signs[rows], scale))
        self.evaluations += len(rows) * self.n_rows

    def support(self, alpha: np.ndarray) -> tuple[Chunk, np.ndarray]:
        """The rows whose α (in the order of `numbers`) is not 0, and their α_i y_i; a single zero row if there is none."""
        (kept,) = np.nonzero(alpha)
        kept = kept[np.argsort(self.numbers[kept])] if len(kept) else np.zeros(1, np.int64)
        return concatenate([self._support[slot] for slot in kept]), alpha[kept] * self.signs[self.numbers[kept]]

    def _chunk(self, rows: np.ndarray) -> Chunk:
        chunks = [self._support[self._slots[row]] for row in rows.tolist()]
        return chunks[0] if len(chunks) == 1 else concatenate(chunks)

    def _take_in(self, rows: np.ndarray) -> None:
        """Load rows that are not in memory yet, from the shards that hold them."""
        missing = np.array(sorted(row for row in rows.tolist() if row not in self._slots), np.int64)
        if len(missing) == 0:
            return
        self._support += fetch(self._runner.feed, missing, self._buffers, self.traffic)
        for row in missing.tolist():
            self._slots[row] = len(self._slots)
        if len(self._support) > self._alpha.shape[1]:
            larger = np.zeros((2, 2 * len(self._support)))
            larger[:, : self._alpha.shape[1]] = self._alpha
            self._alpha = larger

    def _read(self, work: Pass) -> None:
        _, report = self._runner.run(work)
        self.passes += 1
        self.traffic += report.traffic


def fetch(feed: Feed, numbers: np.ndarray, buffers: object | None, traffic: Traffic) -> list[Chunk]:
    """The rows `numbers` (increasing), each as a chunk of its own in memory. Only shards that hold one of them are read."""
    shards = np.searchsorted(first_rows(feed.data.manifest), numbers, side="right")
    found: list[Chunk] = []
    for inside in np.split(numbers, np.flatnonzero(np.diff(shards)) + 1):
        for block in feed.blocks(int(inside[0]), int(inside[-1]) + 1, buffers, traffic):
            here = inside[(inside >= block.first_row) & (inside < block.first_row + block.n_rows)] - block.first_row
            found += [copied(block.rows(i, i + 1)) for i in here.tolist()]
    return found


def whole_bytes(manifest: Manifest) -> int:
    """Bytes of memory that `read_whole` takes; values have a type that holds those of every shard."""
    statistics = manifest.statistics
    return entry_bytes(manifest) * statistics.nnz + 24 * (statistics.n_rows + 1)


def read_whole(feed: Feed) -> tuple[Chunk, Traffic]:
    """Every row of the data, and the traffic. Data that is already one chunk in memory is not copied."""
    manifest, traffic = feed.data.manifest, Traffic()
    statistics = manifest.statistics
    if feed.data.path is None and len(manifest.shards) == 1:
        return feed.data.read(0), traffic
    rows = RowBuffer(manifest, statistics.n_rows, statistics.nnz)
    for block in feed.blocks(0, statistics.n_rows, feed.buffers(), traffic):
        rows.add(replace(block, qid=None))
    return rows.chunk(), traffic
