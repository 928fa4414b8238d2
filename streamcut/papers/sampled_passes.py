"""Cuts built from few examples, and the pass that scores all rows by them.

Row state: `cached` (cuts, columns) float32, the scores ⟨a_t, φ(x)⟩ of a row by every live cut, by the cut's slot.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from streamcut.compiled import sampled, splitmix
from streamcut.compiled.vectors import accumulate
from streamcut.errors import CorruptError
from streamcut.execution.passes import Blocks, Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk, group_starts, ranges, take
from streamcut.kernels.vectors import Vectors
from streamcut.oracles.row_passes import targets
from streamcut.papers.sampled_tasks import SampledTask


@dataclass(frozen=True, slots=True)
class Expansion:
    """The slope of a cut: Σ_k φ(x_k) in columns[k] by factors[k], and dense numbers outside the kernel.

    numbers  of the rows x_k in the data; constant (columns,): the contribution of the kernel's constant term to every score
    first    the first row of the example of x_k; weight: u of that example
    """

    numbers: np.ndarray
    rows: Chunk
    columns: np.ndarray
    factors: np.ndarray
    constant: np.ndarray
    dense: np.ndarray
    first: np.ndarray
    weight: np.ndarray

    def scores(self, vectors: Vectors, chunk: Chunk) -> np.ndarray:
        """⟨a, φ(x)⟩ in every column, float64 (n, columns), of the rows of a chunk; `vectors` are those of `self.rows`."""
        out = np.tile(self.constant, (chunk.n_rows, 1))
        if out.shape[1] == 1:
            vectors.add_sums(chunk, self.factors.reshape(-1), out.reshape(-1))
            return out
        for i, j, values in vectors.values(chunk):
            part = slice(j, j + values.shape[1])
            sampled.add_scores(values, self.columns[part], self.factors[part], out[i : i + len(values)])
        return out

    def scores_of(self, vectors: Vectors, count: int) -> np.ndarray:
        """As `scores`, for the `count` rows of `vectors`."""
        out = np.tile(self.constant[:, None], (1, count))
        for i, j, values in vectors.values(self.rows):
            part = slice(i, i + len(values))
            sampled.add_scores_across(values, self.columns[part], self.factors[part], out[:, j : j + values.shape[1]])
        return np.ascontiguousarray(out.T)


@dataclass(slots=True)
class Examples:
    """Examples and their rows: `starts` (S + 1) their first rows, `weight` (S,)."""

    numbers: np.ndarray
    starts: np.ndarray
    rows: Chunk
    target: np.ndarray
    weight: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, examples: np.ndarray) -> Examples:
        """A copy of these examples (int64)."""
        rows, starts = ranges(self.starts[examples], np.diff(self.starts)[examples])
        return Examples(self.numbers[rows], starts, take(self.rows, rows), self.target[rows], self.weight[examples])


class Segment(NamedTuple):
    """Points w_b + k (w − w_b), k in `steps`, w_b and w being two mixtures (2, T) of the cuts in `slots`, with `dense` parts."""

    slots: np.ndarray
    mixtures: np.ndarray
    dense: np.ndarray
    steps: np.ndarray

    def ends(self, cached: np.ndarray) -> np.ndarray:
        """Scores at w_b and at w, float64 (2, n, columns), of rows with these scores by cuts (n, cuts, columns)."""
        ends = np.empty((2, len(cached), cached.shape[2]))
        for mixture, end in zip(self.mixtures, ends, strict=True):
            sampled.mix(cached, self.slots, mixture, end)
        return ends

    def at(self, step: float, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(scores (n, columns), dense part) at this step."""
        z, dense = ((1.0 - step) * here + step * there for here, there in (ends, self.dense))
        return z, dense


@dataclass(slots=True)
class LossSums:
    """Results of a pass: Σ u loss at each point of a line as (total, rounding lost), and at one of them Σ uΔ, the number of
    examples with uΔ > 0, and a sample of them: their first rows and numbers of rows.

    The sample has the smallest keys, a pseudo-random number per example: it is uniform, however rows are split among workers.
    """

    loss: np.ndarray
    delta: np.ndarray = field(default_factory=lambda: np.zeros(2))
    wrong: int = 0
    keys: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    first: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    lengths: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def offer(self, keys: np.ndarray, first: np.ndarray, lengths: np.ndarray, most: int) -> None:
        """Keep the `most` examples with the smallest keys, no two of which are equal."""
        keys, first, lengths = np.append(self.keys, keys), np.append(self.first, first), np.append(self.lengths, lengths)
        best = np.argpartition(keys, most)[:most] if len(keys) > most else slice(None)
        self.keys, self.first, self.lengths = keys[best], first[best], lengths[best]


@dataclass(frozen=True, slots=True)
class LossesPass(Pass):
    """The loss of all rows at the points of a line, and the wrong examples at point number `place`.

    new   a cut whose scores are not in the row state yet, its slot, and its rows
    most  examples to keep; `seed` decides which
    """

    task: SampledTask
    line: Segment
    place: int
    new: tuple[int, Expansion, Vectors] | None
    most: int
    seed: int
    interruptible: ClassVar[bool] = True

    @property
    def blocks(self) -> Blocks:
        return Blocks(groups=self.task.groups)

    def begin(self, first_row: int) -> LossSums:
        return LossSums(np.zeros((len(self.line.steps), 2)))

    def visit_chunk(self, sums: LossSums, rows: Rows, chunk: Chunk) -> None:
        cached, line = rows["cached"], self.line
        if self.new is not None:
            slot, expansion, vectors = self.new
            cached[:, slot] = expansion.scores(vectors, chunk)
        ends = line.ends(cached)
        if not np.isfinite(ends).all():
            row = chunk.first_row + int(np.argmin(np.isfinite(ends).all(axis=(0, 2)))) + 1
            raise CorruptError(f"row {row}: its score is not finite; scale the features")
        starts = group_starts(chunk) if self.task.groups else np.arange(chunk.n_rows + 1)
        target = targets(self.task, chunk)
        weight = self.task.weights(starts, chunk.y, chunk.weight)
        for number, step in enumerate(line.steps.tolist()):
            _, loss, wrong_by = self.task.judge(starts, target, *line.at(step, ends))
            accumulate(weight * loss, sums.loss[number])
            if number == self.place:
                delta = weight * wrong_by
        accumulate(delta, sums.delta)
        wrong = np.flatnonzero(delta)
        sums.wrong += len(wrong)
        first, keys = chunk.first_row + starts[wrong], np.empty(len(wrong), np.uint64)
        splitmix.keys(first, self.seed, keys)
        sums.offer(keys, first, np.diff(starts)[wrong], self.most)

    def merge(self, total: LossSums, part: LossSums) -> LossSums:
        for loss, other in zip(total.loss, part.loss, strict=True):
            accumulate(other, loss)
        accumulate(part.delta, total.delta)
        total.wrong += part.wrong
        total.offer(part.keys, part.first, part.lengths, self.most)
        return total


@dataclass(frozen=True, slots=True)
class CutScores(Pass):
    """Recomputes the scores of all rows by the cut in `slot`, which checkpoints do not keep."""

    slot: int
    expansion: Expansion
    vectors: Vectors
    interruptible: ClassVar[bool] = True

    def visit_chunk(self, partial: None, rows: Rows, chunk: Chunk) -> None:
        rows["cached"][:, self.slot] = self.expansion.scores(self.vectors, chunk)
