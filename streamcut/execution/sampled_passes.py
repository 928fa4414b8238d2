"""Cuts made of few examples, and the pass that scores all rows by them.

Row state: `cached` (cuts, columns) float32, the scores ⟨a_t, φ(x)⟩ of a row by every live cut, by the cut's slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from streamcut.chunk import Chunk, concatenate, group_starts
from streamcut.errors import CorruptError
from streamcut.execution.row_state import Rows
from streamcut.io.conversion.gather import gather_rows
from streamcut.kernels.kernel import Kernel
from streamcut.passes import hinge, sampled
from streamcut.passes.budget import kernel_rows
from streamcut.risks.sampled import SampledTask

TILE = 8 << 20  # numbers of a tile (64 MiB)
_VALUES = 1 << 16  # kernel values at once: they stay in the second cache level


def take(chunk: Chunk, rows: np.ndarray) -> Chunk:
    """These rows (int64) of a chunk, in memory of their own."""
    lengths = np.diff(chunk.indptr)[rows]
    indptr = np.append(0, np.cumsum(lengths))
    indices = np.empty(indptr[-1], chunk.indices.dtype)
    gather_rows(chunk.indptr[rows], lengths, chunk.indices, indices)
    data = None
    if chunk.data is not None:
        data = np.empty(indptr[-1], chunk.data.dtype)
        gather_rows(chunk.indptr[rows], lengths, chunk.data, data)
    return Chunk(indptr, indices, data, chunk.y[rows], None if chunk.qid is None else chunk.qid[rows])


class Vectors:
    """Rows s_j that others are compared with, dense and feature-major, in tiles that bound memory."""

    def __init__(self, rows: Chunk, dimension: int) -> None:
        self._tiles = []
        entries = np.diff(rows.indptr)
        data = np.ones(rows.nnz) if rows.data is None else rows.data
        width = min(max(TILE // max(dimension, 1), 8), max(rows.n_rows, 1))
        for start in range(0, rows.n_rows, width):
            stop = min(start + width, rows.n_rows)
            V = np.zeros((dimension, stop - start))
            part = slice(rows.indptr[start], rows.indptr[stop])
            V[rows.indices[part], np.repeat(np.arange(stop - start), entries[start:stop])] = data[part]
            self._tiles.append((start, V, np.einsum("ij,ij->j", V, V)))

    def values(self, kernel: Kernel, chunk: Chunk) -> Iterator[tuple[int, int, np.ndarray]]:
        """(i, j, k(x_i…, s_j…) float64) in blocks that together are all values of the chunk's rows; valid until the next."""
        for start, V, squares in self._tiles:
            width = len(squares)
            at_once = max(1, _VALUES // width)
            scratch, room = np.empty(width), np.empty((min(at_once, chunk.n_rows), width))
            for first in range(0, chunk.n_rows, at_once):
                some = chunk.rows(first, min(first + at_once, chunk.n_rows))
                block = room[: some.n_rows]
                kernel_rows(some.indptr, some.indices, some.data, V, squares, kernel.compiled, scratch, block)
                yield first, start, block


@dataclass(frozen=True, slots=True)
class Expansion:
    """The slope of a cut: Σ_k φ(x_k) in columns[k] by factors[k], and dense numbers that no kernel is applied to.

    numbers  of the rows x_k in the data; constant (columns,): what the constant term of the kernel adds to every score
    """

    numbers: np.ndarray
    rows: Chunk
    columns: np.ndarray
    factors: np.ndarray
    constant: np.ndarray
    dense: np.ndarray

    def scores(self, kernel: Kernel, vectors: Vectors, chunk: Chunk) -> np.ndarray:
        """⟨a, φ(x)⟩ in every column, float64 (n, columns), of the rows of a chunk; `vectors` are those of `rows`."""
        out = np.tile(self.constant, (chunk.n_rows, 1))
        for i, j, values in vectors.values(kernel, chunk):
            part = slice(j, j + values.shape[1])
            sampled.add_scores(values, self.columns[part], self.factors[part], out[i : i + len(values)])
        return out

    def scores_of(self, kernel: Kernel, vectors: Vectors, count: int) -> np.ndarray:
        """As `scores`, of the `count` rows that `vectors` are."""
        out = np.tile(self.constant[:, None], (1, count))
        for i, j, values in vectors.values(kernel, self.rows):
            part = slice(i, i + len(values))
            sampled.add_scores_across(values, self.columns[part], self.factors[part], out[:, j : j + values.shape[1]])
        return np.ascontiguousarray(out.T)


@dataclass(slots=True)
class Examples:
    """Examples and their rows: `starts` (S + 1) where each begins, `cached` (n, cuts, columns) the rows' scores by cuts."""

    numbers: np.ndarray
    starts: np.ndarray
    rows: Chunk
    target: np.ndarray
    path: np.ndarray
    delta: np.ndarray
    cached: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, examples: np.ndarray) -> Examples:
        """These examples (int64), in memory of their own."""
        lengths = np.diff(self.starts)[examples]
        starts = np.append(0, np.cumsum(lengths))
        rows = np.arange(starts[-1]) + np.repeat(self.starts[examples] - starts[:-1], lengths)
        arrays = (array[rows] for array in (self.target, self.path))
        return Examples(self.numbers[rows], starts, take(self.rows, rows), *arrays, self.delta[examples], self.cached[rows])

    def with_(self, other: Examples) -> Examples:
        """Both."""
        ours, theirs = self.rows, other.rows
        return Examples(
            np.append(self.numbers, other.numbers),
            np.append(self.starts, self.starts[-1] + other.starts[1:]),
            concatenate([ours, theirs]),
            np.append(self.target, other.target),
            np.append(self.path, other.path),
            np.append(self.delta, other.delta),
            np.concatenate((self.cached, other.cached)),
        )


@dataclass(slots=True)
class Look:
    """What a pass has seen: Σ loss as (total, rounding lost), Σ Δ, the number of examples with Δ > 0, and some of these.

    They are those with the smallest keys, pseudo-random numbers of their own: a uniform sample, whoever looked at which rows.
    """

    loss: np.ndarray = field(default_factory=lambda: np.zeros(2))
    delta: float = 0.0
    wrong: int = 0
    keys: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    sample: Examples | None = None

    def offer(self, keys: np.ndarray, found: Examples, chosen: np.ndarray, most: int) -> None:
        """Of what there is and of `chosen` examples of `found` (with `keys`), keep the `most` with the smallest keys."""
        if self.sample is None:
            best = np.argsort(keys, kind="stable")[:most]
            self.keys, self.sample = keys[best], found.take(chosen[best])
            return
        both = np.append(self.keys, keys)
        best = np.argsort(both, kind="stable")[:most]
        old, new = best[best < len(self.keys)], best[best >= len(self.keys)] - len(self.keys)
        self.keys = np.append(self.keys[old], keys[new])
        self.sample = self.sample.take(old).with_(found.take(chosen[new]))


@dataclass(frozen=True, slots=True)
class LookPass:
    """Scores of all rows by a mixture of cuts (`slots`, β), and what is wrong there.

    new   a cut whose scores are not in the row state yet, the slot it gets, and its rows
    most  examples that are kept; `seed` decides which
    """

    task: SampledTask
    kernel: Kernel
    slots: np.ndarray
    mixture: np.ndarray
    dense: np.ndarray
    new: tuple[int, Expansion, Vectors] | None
    most: int
    seed: int
    needs_data: ClassVar[bool] = True
    can_be_broken_off: ClassVar[bool] = True
    alignment: ClassVar[int] = 1

    @property
    def whole_groups(self) -> bool:
        return self.task.groups

    def begin(self) -> Look:
        return Look()

    def visit(self, look: Look, rows: Rows, chunk: Chunk | None) -> None:
        assert chunk is not None
        cached = rows["cached"]
        if self.new is not None:
            slot, expansion, vectors = self.new
            cached[:, slot] = expansion.scores(self.kernel, vectors, chunk)
        z = np.empty((chunk.n_rows, self.task.columns))
        sampled.mix(cached, self.slots, self.mixture, z)
        if not np.isfinite(z).all():
            row = chunk.first_row + int(np.argmin(np.isfinite(z).all(axis=1))) + 1
            raise CorruptError(f"row {row}: its score is not finite; scale the features")
        starts = group_starts(chunk) if self.task.groups else np.arange(chunk.n_rows + 1)
        target = self.task.targets(chunk.y)
        path, loss, delta = self.task.judge(starts, target, z, self.dense)
        hinge.accumulate(loss, look.loss)
        look.delta += float(delta.sum())
        wrong = np.flatnonzero(delta)
        look.wrong += len(wrong)
        numbers = chunk.first_row + np.arange(chunk.n_rows)
        keys = np.empty(len(wrong), np.uint64)
        sampled.keys(numbers[starts[:-1][wrong]], self.seed, keys)
        if len(look.keys) == self.most:  # most examples are not among the smallest
            near = keys < look.keys[-1]
            wrong, keys = wrong[near], keys[near]
        look.offer(keys, Examples(numbers, starts, chunk, target, path, delta, cached), wrong, self.most)

    def finish(self, look: Look, rows: Rows, first_row: int) -> None:
        """Nothing is left to do."""

    def merge(self, total: Look, part: Look) -> Look:
        hinge.accumulate(part.loss, total.loss)
        total.delta += part.delta
        total.wrong += part.wrong
        if part.sample is not None:
            if total.sample is None:
                total.keys, total.sample = part.keys, part.sample
            else:
                total.offer(part.keys, part.sample, np.arange(len(part.keys)), self.most)
        return total


@dataclass(frozen=True, slots=True)
class StartsPass:
    """Where the groups begin, as a list of arrays of row numbers."""

    needs_data: ClassVar[bool] = True
    can_be_broken_off: ClassVar[bool] = True
    whole_groups: ClassVar[bool] = True
    alignment: ClassVar[int] = 1

    def begin(self) -> list[np.ndarray]:
        return []

    def visit(self, found: list[np.ndarray], rows: Rows, chunk: Chunk | None) -> None:
        assert chunk is not None
        found.append(chunk.first_row + group_starts(chunk)[:-1])

    def finish(self, found: list[np.ndarray], rows: Rows, first_row: int) -> None:
        """Nothing is left to do."""

    def merge(self, total: list[np.ndarray], part: list[np.ndarray]) -> list[np.ndarray]:
        return total + part
