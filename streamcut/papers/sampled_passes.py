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
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk, concatenate, group_starts
from streamcut.kernels.vectors import Vectors
from streamcut.oracles.classes_passes import targets
from streamcut.oracles.kernel_columns import take
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
    """Examples and their rows: `starts` (S + 1) their first rows, `weight` (S,), `delta` (S,) including the weight."""

    numbers: np.ndarray
    starts: np.ndarray
    rows: Chunk
    target: np.ndarray
    path: np.ndarray
    weight: np.ndarray
    delta: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, examples: np.ndarray) -> Examples:
        """A copy of these examples (int64)."""
        lengths = np.diff(self.starts)[examples]
        starts = np.append(0, np.cumsum(lengths))
        rows = np.arange(starts[-1]) + np.repeat(self.starts[examples] - starts[:-1], lengths)
        return Examples(
            self.numbers[rows],
            starts,
            take(self.rows, rows),
            self.target[rows],
            self.path[rows],
            self.weight[examples],
            self.delta[examples],
        )

    def with_(self, other: Examples) -> Examples:
        """Both, concatenated."""
        ours, theirs = self.rows, other.rows
        return Examples(
            np.append(self.numbers, other.numbers),
            np.append(self.starts, self.starts[-1] + other.starts[1:]),
            concatenate([ours, theirs]),
            np.append(self.target, other.target),
            np.append(self.path, other.path),
            np.append(self.weight, other.weight),
            np.append(self.delta, other.delta),
        )


class Line(NamedTuple):
    """Points w_b + k (w − w_b), k in `steps`, w_b and w being two mixtures (2, T) of the cuts in `slots`, with `dense` parts."""

    slots: np.ndarray
    mixtures: np.ndarray
    dense: np.ndarray
    steps: np.ndarray


@dataclass(slots=True)
class LossSums:
    """Results of a pass: Σ u loss at each point of a line as (total, rounding lost), and at one of them Σ uΔ, the number of
    examples with uΔ > 0, and a sample of them.

    The sample has the smallest keys, a pseudo-random number per example: it is uniform, however rows are split among workers.
    Its order, and that of `keys`, depends on the split.
    """

    loss: np.ndarray
    delta: np.ndarray = field(default_factory=lambda: np.zeros(2))
    wrong: int = 0
    keys: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))
    sample: Examples | None = None

    def offer(self, keys: np.ndarray, found: Examples, chosen: np.ndarray, most: int) -> None:
        """Keep the `most` examples with the smallest keys, from those held and the `chosen` ones of `found` (with `keys`)."""
        if self.sample is None:
            best = _smallest(keys, most)
            self.keys, self.sample = keys[best], found.take(chosen[best])
            return
        both = np.append(self.keys, keys)
        best = _smallest(both, most)
        old, new = best[best < len(self.keys)], best[best >= len(self.keys)] - len(self.keys)
        self.keys = np.append(self.keys[old], keys[new])
        self.sample = self.sample.take(old).with_(found.take(chosen[new]))


def _smallest(keys: np.ndarray, most: int) -> np.ndarray:
    """The places of the `most` smallest keys; no two keys are equal."""
    return np.argpartition(keys, most)[:most] if len(keys) > most else np.arange(len(keys))


@dataclass(frozen=True, slots=True)
class LossPass(Pass):
    """The loss of all rows at the points of a line, and the wrong examples at point number `place`.

    new   a cut whose scores are not in the row state yet, its slot, and its rows
    most  examples to keep; `seed` decides which
    """

    task: SampledTask
    line: Line
    place: int
    new: tuple[int, Expansion, Vectors] | None
    most: int
    seed: int
    interruptible: ClassVar[bool] = True

    @property
    def whole_groups(self) -> bool:
        return self.task.groups

    def begin(self, first_row: int) -> LossSums:
        return LossSums(np.zeros((len(self.line.steps), 2)))

    def visit_chunk(self, sums: LossSums, rows: Rows, chunk: Chunk) -> None:
        cached, line = rows["cached"], self.line
        if self.new is not None:
            slot, expansion, vectors = self.new
            cached[:, slot] = expansion.scores(vectors, chunk)
        ends = np.empty((2, chunk.n_rows, self.task.columns))
        for mixture, end in zip(line.mixtures, ends, strict=True):
            sampled.mix(cached, line.slots, mixture, end)
        if not np.isfinite(ends).all():
            row = chunk.first_row + int(np.argmin(np.isfinite(ends).all(axis=(0, 2)))) + 1
            raise CorruptError(f"row {row}: its score is not finite; scale the features")
        starts = group_starts(chunk) if self.task.groups else np.arange(chunk.n_rows + 1)
        target = targets(self.task, chunk)
        weight = self.task.weights(starts, chunk.y, chunk.weight)
        for number, step in enumerate(line.steps.tolist()):
            z, dense = ((1.0 - step) * here + step * there for here, there in (ends, line.dense))
            worst, loss, wrong_by = self.task.judge(starts, target, z, dense)
            accumulate(weight * loss, sums.loss[number])
            if number == self.place:
                path, delta = worst, weight * wrong_by
        accumulate(delta, sums.delta)
        wrong = np.flatnonzero(delta)
        sums.wrong += len(wrong)
        numbers = chunk.first_row + np.arange(chunk.n_rows)
        keys = np.empty(len(wrong), np.uint64)
        splitmix.keys(numbers[starts[:-1][wrong]], self.seed, keys)
        if len(sums.keys) == self.most:  # most examples are not among the smallest
            near = keys < sums.keys.max()
            wrong, keys = wrong[near], keys[near]
        sums.offer(keys, Examples(numbers, starts, chunk, target, path, weight, delta), wrong, self.most)

    def merge(self, total: LossSums, part: LossSums) -> LossSums:
        for own, other in zip(total.loss, part.loss, strict=True):
            accumulate(other, own)
        accumulate(part.delta, total.delta)
        total.wrong += part.wrong
        if part.sample is not None:
            if total.sample is None:
                total.keys, total.sample = part.keys, part.sample
            else:
                total.offer(part.keys, part.sample, np.arange(len(part.keys)), self.most)
        return total


@dataclass(frozen=True, slots=True)
class ScorePass(Pass):
    """Recomputes the scores of all rows by the cut in `slot`, which checkpoints do not keep."""

    slot: int
    expansion: Expansion
    vectors: Vectors
    interruptible: ClassVar[bool] = True

    def visit_chunk(self, partial: None, rows: Rows, chunk: Chunk) -> None:
        rows["cached"][:, self.slot] = self.expansion.scores(self.vectors, chunk)
