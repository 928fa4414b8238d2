"""The passes of sequence labelling: blocks of whole sequences, whose rows are scored one by one and labelled jointly.

Row state, all but `begins` only where there is a line search: `begins` 1 in the first row of a sequence, `t` the row's class, `z`
(K,) its scores at the last scored w, `z_b` (K,) those at the best point w_b.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import multiclass
from streamcut.errors import CorruptError
from streamcut.execution.passes import Blocks, Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.rounding import Grids
from streamcut.losses.sequence import SequenceRisk
from streamcut.oracles import row_passes
from streamcut.oracles.row_passes import CutSums, Totals
from streamcut.oracles.targets import targets

_ROWS = 1024  # rows moved at a time


@dataclass(slots=True)
class SequenceSums(CutSums):
    """Also the number of sequences."""

    sequences: int = 0


def _merge(total: SequenceSums, part: SequenceSums) -> SequenceSums:
    row_passes.merge(total, part)
    total.sequences += part.sequences
    return total


@dataclass(frozen=True, slots=True)
class ScorePass(Pass):
    """Scores at `w` and, with `cut`, the cut at z_b + κ(z − z_b), where transitions weigh `transitions`. `at_w`: the cut and the
    loss at w itself, without row state of a best point.

    `first` also fills `begins` and `t`, and counts sequences and rows. w None: the scores are there (OCAS's second pass).
    """

    risk: SequenceRisk
    grids: Grids
    dimension: int
    bias: float
    kappa: float
    transitions: np.ndarray
    _: KW_ONLY
    w: np.ndarray | None = None
    cut: bool = True
    at_w: bool = False
    first: bool = False
    interruptible: ClassVar[bool] = True

    @property
    def blocks(self) -> Blocks:
        return Blocks(groups=True)

    def begin(self, first_row: int) -> SequenceSums:
        features = self.dimension // self.risk.classes - self.risk.classes
        totals = Totals.nothing(features) if self.first else None
        return SequenceSums(np.zeros(self.dimension) if self.cut else None, totals=totals)

    def visit_chunk(self, sums: SequenceSums, rows: Rows, chunk: Chunk) -> None:
        K, entries, starts = self.risk.classes, (chunk.indptr, chunk.indices, chunk.data), group_starts(chunk)
        target = rows["t"] if self.w is None else targets(self.risk, chunk)
        if sums.totals is not None:
            sums.totals.add(chunk, None, float(chunk.n_rows), self.bias, self.grids)
            sums.sequences += len(starts) - 1
            if "t" in rows:
                rows["t"][:] = target
                rows["begins"][starts[:-1]] = 1
        z = rows["z"] if "z" in rows else np.empty((chunk.n_rows, K))
        if self.w is not None:
            multiclass.scores(*entries, self.w[: -K * K].reshape(-1, K), self.bias, z)
            finite = np.isfinite(z).all(axis=1)
            if not finite.all():
                row = chunk.first_row + int(np.argmin(finite)) + 1
                raise CorruptError(f"row {row}: a score is not finite; run `streamcut info --check --read-data`")
        if sums.a is None:
            return
        path, excess = self.risk.worst(starts, target, z if self.at_w else rows["z_b"], z, self.kappa, self.transitions)
        if self.at_w:
            self.risk.add(excess, sums.loss)
        emissions, transitions = sums.a[: -K * K].reshape(-1, K), sums.a[-K * K :].reshape(K, K)
        multiclass.scatter(*entries, target, path, self.bias, self.grids.vector, emissions)
        self.risk.count_transitions(starts, target, path, transitions)
        sums.b[0] += float(np.count_nonzero(path != target))

    merge = staticmethod(_merge)


@dataclass(frozen=True, slots=True)
class LinePass(row_passes.RowPass):
    """[[loss, rounding lost], [its derivative in k, …]] at z_b + k(z − z_b), which becomes z_b if `step`.

    `transitions` are those at k, `slopes` their derivative.
    """

    risk: SequenceRisk
    k: float
    transitions: np.ndarray
    slopes: np.ndarray
    step: bool = False
    blocks: ClassVar[Blocks] = Blocks(groups=True)

    row_arrays: ClassVar[tuple[str, ...]] = ("z", "z_b", "t", "begins")

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros((2, 2))

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        starts = np.append(np.flatnonzero(rows["begins"]), len(rows["t"]))
        z_b, z, k = rows["z_b"], rows["z"], self.k
        if self.step:
            for first in range(0, len(z), _ROWS):  # temporaries for all rows would be as large as the scores
                here = slice(first, first + _ROWS)
                z_b[here] += k * (z[here] - z_b[here])
            k = 0.0
        excess, slope = self.risk.along_line(starts, rows["t"], z_b, z, k, self.transitions, self.slopes)
        self.risk.add(excess, sums[0])
        self.risk.add(slope, sums[1])

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        for line, other in zip(total, part, strict=True):
            self.risk.add(other, line)
        return total
