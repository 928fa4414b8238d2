"""The passes of `bundle-dca` as pure functions of a block of rows and its row state.

Row state: `z`, `z_b`, `u`, `target` as in streamcut.oracles.row_passes, and `codes` (rows, cuts): the share α_i / (C u_i) of a
row in each cut, by the cut's slot in the bundle, as a code of the loss's choosing (streamcut.losses.codes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from streamcut.bundle.blocks import Merges
from streamcut.chunk import Chunk
from streamcut.compiled import dual, records, vectors
from streamcut.execution.cache_passes import Change, WriteBackPass
from streamcut.execution.passes import Pass
from streamcut.execution.row_cache import RowCache
from streamcut.execution.runner import Rows
from streamcut.losses.loss import Loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.dual.blocks import Blocks
from streamcut.oracles.dual.dual_pass import DualPass, DualSums
from streamcut.oracles.dual.sample import sample_free
from streamcut.oracles.row_passes import First, Totals, begin


@dataclass(frozen=True, slots=True)
class Ascent:
    """Where a pass starts: `w`, and the mixture (cuts,) of the rows' shares that it is made of; both cuts' slots; κ.

    Of single rows the mixture is (blocks, cuts), and slots are (blocks,); what is less stands for all blocks.

    enough  sweeps over cached rows end when one brings no more than this (units of F)
    value   of the dual at the mixture, nearly
    start   where the running w′ (v′, where the penalty has a threshold) starts if not at w: what the mixture of shares amounts to
    visits  steps for each row of a group while it is in cache, after the first as long as it is at no bound
    stretch  steps are those for this times C, and so are `enough` and `value` (streamcut.solvers.acceleration)
    at_once  cached rows are solved for by interior points before they are swept, where features are few
    """

    w: np.ndarray
    mixture: np.ndarray
    cut: Any
    dual: Any
    kappa: float
    enough: float
    value: float = 0.0
    start: np.ndarray | None = None
    visits: int = 2
    stretch: float = 1.0
    at_once: bool = False

    @property
    def running(self) -> np.ndarray:
        """The w′ of the first row."""
        return self.w if self.start is None else self.start


Part = tuple[np.ndarray, np.ndarray]  # the sums of some blocks that follow each other: cuts (n, 2, folds, D) and b (n, 2, 4)


def add_parts(total: dict[int, Part], parts: dict[int, Part]) -> None:
    """total += parts, both by their first block; may take arrays of `parts` over."""
    for first, part in parts.items():
        if first not in total:
            total[first] = part
            continue
        for ours, theirs in zip(total[first], part, strict=True):
            vectors.add(ours.reshape(-1), theirs.reshape(-1))


@dataclass(slots=True)
class RowsDualSums(DualSums):
    """`cuts` (n, 2, folds, D) and `b` (n, 2, 4) are of the n blocks of a lane; where there is more than one in all, they are in
    `parts` after the lane."""

    parts: dict[int, Part] = field(default_factory=dict)
    first_block: int = 0

    def by_block(self) -> dict[int, Part]:
        """The sums of all blocks."""
        return self.parts or {0: (self.cuts, self.b)}


_PART = "cuts-"


class BlockPass(Pass):
    """Base of passes whose sums have `parts` of `blocks`. Where several lanes share a block, its cuts are arrays that add up."""

    __slots__ = ()
    blocks: Blocks

    def arrays(self, partial: Any) -> dict[str, np.ndarray]:
        found = super().arrays(partial)
        if self.blocks.count > 1:
            del found["cuts"]  # they are in `parts`
        if 1 < self.blocks.count < len(self.blocks.starts):
            found |= {f"{_PART}{first}": cuts for first, (cuts, _) in partial.parts.items()}
        return found

    def put(self, partial: Any, name: str, array: np.ndarray) -> None:
        if name.startswith(_PART):
            first = int(name.removeprefix(_PART))
            partial.parts[first] = array, partial.parts[first][1]
        else:
            super().put(partial, name, array)


def _set_apart(sums: RowsDualSums | RowsChange, blocks: Blocks) -> None:
    """A lane ends: only those of the same blocks add up."""
    if blocks.count > 1:
        sums.parts = {sums.first_block: (sums.cuts, sums.b)}
        sums.cuts = sums.b = np.empty(0)


class Scored(NamedTuple):
    """What a block has before its steps: keys of its rows (n), and dual variables."""

    keys: np.ndarray
    scratch: records.Scratch


@dataclass(frozen=True, slots=True)
class RowsDualPass(BlockPass, DualPass):
    """A DualPass of a loss of single rows. `first` also fills `u` and `target`.

    last    slots (2, blocks)
    sample  the random seed of a sample of the free rows, which caches take instead of those that will move least
    """

    risk: PointwiseRisk
    ascent: Ascent
    last: np.ndarray
    learning: First
    blocks: Blocks
    l1: float | None = None  # the threshold of the penalty
    sample: tuple[int, int] | None = None

    def begin(self) -> RowsDualSums:
        D, n = len(self.ascent.w), self.blocks.each
        totals = Totals.nothing(D) if self.first else None
        return RowsDualSums(self.ascent.running.copy(), np.zeros((n, 2, self.grids.folds, D)), np.zeros((n, 2, 4)), totals)

    def enter(self, sums: RowsDualSums, first_row: int) -> None:
        DualPass.enter(self, sums, first_row)
        if isinstance(sums, RowsDualSums):  # and not what fills a cache again
            sums.first_block = self.blocks.first_of(first_row)

    def finish(self, sums: RowsDualSums, rows: Rows, first_row: int) -> None:
        DualPass.finish(self, sums, rows, first_row)
        _set_apart(sums, self.blocks)

    def merge(self, total: RowsDualSums, part: RowsDualSums) -> RowsDualSums:  # type: ignore[override]
        add_parts(total.parts, part.parts)
        DualPass.merge(self, total, part)
        return total

    def learn(self, totals: Totals, rows: Rows, chunk: Chunk) -> None:
        begin(rows, chunk, self.risk, self.bias, self.learning, totals)

    def prepare(self, sums: RowsDualSums, rows: Rows, chunk: Chunk) -> Scored:  # type: ignore[override]
        """Scores and the predicted cut."""
        if sums.totals is not None:
            self.learn(sums.totals, rows, chunk)
        scored = Scored(np.empty(chunk.n_rows), self._scratch())
        self.require_finite(chunk, self._run(sums, rows, chunk, *scored, 0))
        return scored

    def visit_prepared(self, sums: RowsDualSums, rows: Rows, chunk: Chunk, prepared: Scored) -> None:  # type: ignore[override]
        self._run(sums, rows, chunk, prepared.keys, prepared.scratch._replace(scored=True), self.ascent.visits)
        if sums.cache is not None:
            self.offer(sums.cache, rows, chunk, prepared.keys)

    def ascend(self, sums: RowsDualSums, rows: Rows, chunk: Chunk, keys: np.ndarray) -> int:  # type: ignore[override]
        return self._run(sums, rows, chunk, keys, self._scratch(), self.ascent.visits)

    def _scratch(self) -> records.Scratch:
        return records.Scratch(np.empty(len(self.order)), np.empty(len(self.order), np.int64))

    def _run(self, sums: RowsDualSums, rows: Rows, chunk: Chunk, keys: np.ndarray, scratch: records.Scratch, steps: int) -> int:
        assert sums.w is not None
        now, loss = self.ascent, self.risk.loss
        own = slice(sums.first_block, sums.first_block + self.blocks.each)
        return dual.ascend(
            loss,
            _records(rows, chunk),
            records.Margins(rows["z_b"], rows["z"], rows["codes"], keys),
            records.Start(now.w, now.kappa, loss.parts(now.mixture[own]), self.C, self.bias, self.l1, now.stretch),
            records.Slots(now.cut[own], now.dual[own], self.last[0, own], self.last[1, own]),
            self.blocks.of_rows(chunk.numbers),
            self.grids,
            self.visits(chunk, steps),
            records.DualSums(sums.w, sums.cuts, sums.b),
            scratch,
        )

    def offer(self, cache: RowCache, rows: Rows, chunk: Chunk, keys: np.ndarray) -> None:
        taken, codes, numbers = _records(rows, chunk), rows["codes"], chunk.numbers
        if self.sample is not None:
            sample_free(keys, self.risk.loss.free_below, numbers, self.sample)
        keys = cache.ranked(chunk.first_row, keys)
        blocks = self.blocks.of_rows(numbers)
        first_block = self.blocks.first_of(chunk.first_row)
        slots = self.ascent.dual[first_block : first_block + self.blocks.each]

        def offered(first: int, *buffers) -> tuple[int, int]:
            return dual.offer(self.risk.loss, first, taken, keys, codes, slots, self.bias, numbers, blocks, *buffers)

        cache.fill(offered, chunk.n_rows)


def _records(rows: Rows, chunk: Chunk) -> records.Rows:
    return records.Rows(chunk.indptr, chunk.indices, chunk.data, chunk.y, rows.get("u"))


@dataclass(slots=True)
class At:
    """A row of the current lane, and the lane's first block."""

    row: int = 0
    first_block: int = 0


@dataclass(frozen=True, slots=True)
class MergePass(Pass):
    """The rows' shares follow the bundle's merges; the data is not read."""

    loss: Loss
    blocks: Blocks
    merges: Merges
    needs_data: ClassVar[bool] = False
    row_arrays: ClassVar[tuple[str, ...]] = ("codes",)

    def begin(self) -> At:
        return At()

    def enter(self, at: At, first_row: int) -> None:
        at.row, at.first_block = first_row, self.blocks.first_of(first_row)

    def visit_rows(self, at: At, rows: Rows) -> None:
        codes, blocks = rows["codes"], self.blocks.rows(at.row)
        own = slice(at.first_block, at.first_block + self.blocks.each)
        for turn in range(self.merges.into.shape[1]):
            merge = (array[own, turn].copy() for array in self.merges)
            dual.merge_shares(self.loss, codes, blocks, *merge)
        at.row += len(codes)

    def merge(self, total: At, part: At) -> At:
        return total


@dataclass(slots=True)
class RowsChange(Change):
    """`cuts`, `b` and `parts` as in RowsDualSums."""

    parts: dict[int, Part] = field(default_factory=dict)
    first_block: int = 0

    def by_block(self) -> dict[int, Part]:
        """The changes of all blocks."""
        return self.parts or {0: (self.cuts, self.b)}


@dataclass(frozen=True, slots=True)
class RowsWriteBackPass(BlockPass, WriteBackPass):
    """A WriteBackPass of rows that belong to blocks, each with a slot of its own (blocks,)."""

    blocks: Blocks

    def begin(self) -> RowsChange:
        return RowsChange(np.zeros(self.shapes[0]), np.zeros(self.shapes[1]))

    def enter(self, change: RowsChange, first_row: int) -> None:  # type: ignore[override]
        WriteBackPass.enter(self, change, first_row)
        change.first_block = self.blocks.first_of(first_row)

    def visit_rows(self, change: RowsChange, rows: Rows) -> None:  # type: ignore[override]
        assert change.cache is not None
        codes, at = rows["codes"], change.at
        slots = self.slot[change.first_block : change.first_block + self.blocks.each]
        change.cache.write_back((self.blocks.rows(at), slots), self.bias, self.grids, codes, change.cuts, change.b, first_row=at)
        change.at += len(codes)

    def finish(self, change: RowsChange, rows: Rows, first_row: int) -> None:  # type: ignore[override]
        WriteBackPass.finish(self, change, rows, first_row)
        _set_apart(change, self.blocks)

    def merge(self, total: RowsChange, part: RowsChange) -> RowsChange:  # type: ignore[override]
        add_parts(total.parts, part.parts)
        WriteBackPass.merge(self, total, part)
        return total
