"""The responses of all rows, kept up to date by kernel columns, and the support rows.

The responses c_j = y_j Σ_i α_i y_i k(x_i, x_j) are row state, one per row. A change of a few α_i
is one pass over the data, regardless of the number of changed rows; in memory a pass costs only its arithmetic. The rows
with α_i ≠ 0 and their α are kept in memory: they are the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.errors import CorruptError
from streamcut.execution.feed import Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, concatenate
from streamcut.kernels.kernel import RBF, Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.models.kept import Kept
from streamcut.oracles.kernel_columns import KernelColumn, fetch, squared_norms


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
