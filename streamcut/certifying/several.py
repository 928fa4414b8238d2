"""The first pass of a certification of several classes in one problem: its objective, the cut there, sums by class.

The cut at W has the shares of the loss itself, −∇ℓ: it is tight in every row, and its bound alone is F − ½‖∇F‖², less the cost
of free intercepts with nonzero slopes. The Σ u x of each class bound the intercepts (streamcut.certifying.master).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.certifying.master import FreeClasses, Master
from streamcut.compiled import class_shares, multiclass, vectors
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import gamma, spacing
from streamcut.oracles.classes_passes import ScorePass
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.dual.classes import MulticlassDualOracle
from streamcut.oracles.row_passes import CutSums


@dataclass(slots=True)
class FirstSums:
    """The cut at W, loss and totals; `classes` (D, K + 1): Σ u x of the rows of each class, then minus their total."""

    cut: CutSums
    classes: np.ndarray | None


@dataclass(frozen=True, slots=True)
class ClassesFirstPass(Pass):
    """A ScorePass at W that also fills slot 0 of the rows' shares, and sums by class where intercepts are `free`."""

    scoring: ScorePass
    free: bool
    interruptible: ClassVar[bool] = True

    def begin(self) -> FirstSums:
        K = self.scoring.risk.classes
        return FirstSums(self.scoring.begin(), np.zeros((len(self.scoring.w) // K, K + 1)) if self.free else None)

    def visit_chunk(self, sums: FirstSums, rows: Rows, chunk: Chunk) -> None:
        scoring, target = self.scoring, rows["t"]
        scoring.visit_chunk(sums.cut, rows, chunk)
        class_shares.remember(scoring.risk.loss, target, rows["z"], rows["codes"])
        if sums.classes is not None:
            nobody, rounder = np.full_like(target, scoring.risk.classes), scoring.grids.vector
            entries = chunk.indptr, chunk.indices, chunk.data
            multiclass.scatter(*entries, nobody, target, chunk.weight, scoring.bias, rounder, sums.classes)

    def merge(self, total: FirstSums, part: FirstSums) -> FirstSums:
        self.scoring.merge(total.cut, part.cut)
        if total.classes is not None and part.classes is not None:
            vectors.add(total.classes.reshape(-1), part.classes.reshape(-1))
        return total


class CertifyClassesOracle(MulticlassDualOracle):
    """A MulticlassDualOracle whose first pass is a ClassesFirstPass."""

    def first_pass(self, w: np.ndarray, free: bool) -> ClassesFirstPass:
        """The pass for the cut at w, which becomes the best point."""
        return ClassesFirstPass(ScorePass(self._risk, self._grids, w, self._bias, at_w=True, first=True), free)

    def began(self, sums: FirstSums, w: np.ndarray, free: bool) -> tuple[list[Cut], Master, list[np.ndarray]]:
        """(the cut at w, the Master that mixes cuts, the mixture that is that cut)."""
        assert sums.cut.totals is not None
        self._learn(sums.cut.totals)
        self._scored(w)
        cut = self._cut(sums.cut)
        self.tighten()
        master = Master(self.c_bar)
        if sums.classes is not None:
            by_class = np.ascontiguousarray(sums.classes[:, :-1].T) / self.total_weight
            each = 0.5 * spacing(self._grids.vector) * self._scale.rows / self.total_weight + gamma(self._risk.classes + 32.0)
            master = FreeClasses(self.c_bar, by_class, cut.error, each, self._risk.at_zero)
        return [cut], master, [np.ones(1)]
