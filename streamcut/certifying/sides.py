"""The first pass of a certification: the objective of the given weights, and the cut there in two halves.

With f = −ℓ′ the cut at w is tight there: where the loss is smooth, its bound alone is F(w) − ½‖∇F(w)‖². Its halves, of the rows
that pull their scores up and of those that pull them down, are cuts too, as is every mixture of them; a mixture in which both
pull equally hard does not depend on the intercept, as a free one requires. The same halves at equal scores do not depend on the
given model, and bound the best intercept (streamcut.bundle.intercept).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from streamcut.certifying.master import FreeMaster, Master
from streamcut.compiled import linear, row_losses, sides
from streamcut.errors import CorruptError
from streamcut.execution.passes import Pass
from streamcut.execution.row_state import Rows
from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import Grids
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.dual.ascent import DualOracle
from streamcut.oracles.row_passes import First, Halves, Totals, begin, merge_loss

UP, DOWN = 0, 1  # slots of the first cuts; that of their sum is 2


@dataclass(slots=True)
class SidesSums:
    """Halves at w, and at equal scores; loss and totals as CutSums."""

    at_w: Halves
    equal: Halves
    totals: Totals
    loss: np.ndarray = field(default_factory=partial(np.zeros, 3))


@dataclass(frozen=True, slots=True)
class SidesPass(Pass):
    """Scores at `w`, the loss there, and halves of cuts at w and where every row has the score `equal`; fills all row state."""

    risk: PointwiseRisk
    grids: Grids
    w: np.ndarray
    bias: float
    equal: float
    first: First
    interruptible: ClassVar[bool] = True

    def begin(self) -> SidesSums:
        D = len(self.w)
        return SidesSums(Halves.nothing(self.grids, D), Halves.nothing(self.grids, D), Totals.nothing(D))

    def visit_chunk(self, sums: SidesSums, rows: Rows, chunk: Chunk) -> None:
        loss, z, u = self.risk.loss, rows["z"], rows.get("u")
        begin(rows, chunk, self.risk, self.bias, self.first, sums.totals)
        linear.scores(chunk.indptr, chunk.indices, chunk.data, self.w, self.bias, z)
        if (bad := row_losses.margins(loss, chunk.y, u, z, sums.loss)) >= 0:
            raise CorruptError(f"row {chunk.first_row + bad + 1}: its score is not finite; run `streamcut check --read-data`")
        sides.remember(loss, chunk.y, z, u, self.grids.limit, rows["codes"])
        sums.at_w.add(chunk, loss, z, u, self.bias, self.grids)
        equal = np.empty(chunk.n_rows)
        sides.equal_scores(loss, chunk.y, self.equal, equal)
        sums.equal.add(chunk, loss, equal, u, self.bias, self.grids)

    def merge(self, total: SidesSums, part: SidesSums) -> SidesSums:
        total.at_w.merged(part.at_w)
        total.equal.merged(part.equal)
        merge_loss(total.loss, part.loss)
        total.totals.merge(part.totals)
        return total


class CertifyOracle(DualOracle):
    """A DualOracle whose first pass is a SidesPass."""

    def first_pass(self, w: np.ndarray, free: bool) -> SidesPass:
        """The cuts at w and those of equal scores; w becomes the best point."""
        self.refine()  # rounding in a₀ costs in proportion to the size of the best intercept
        equal = 0.0
        if self._loss.targets == "numbers":
            equal = self._loss.middle(self._targets)
        return SidesPass(self._risk, self._grids, w, self._bias, equal, self._first)

    def began(self, sums: SidesSums, w: np.ndarray, free: bool) -> tuple[list[Cut], Master, list[np.ndarray]]:
        """(cuts at w by slot: up, down, whole; the Master that mixes cuts; mixtures of the three to try unchanged)."""
        self._learn(sums.totals)
        self._scored(w)
        whole = self._divided(sums.at_w.a.sum(axis=0), sums.at_w.b.sum(axis=0))
        halves = [zip(each.a, each.b, strict=True) for each in (sums.at_w, sums.equal)]
        (up, down), others = ([self._divided(a, b) for a, b in each] for each in halves)
        self.tighten()
        self.refine()
        cuts = [up, down, whole]
        master = FreeMaster(self.c_bar, others) if free else Master(self.c_bar)
        return cuts, master, _balanced(cuts)


def _balanced(cuts: list[Cut]) -> list[np.ndarray]:
    """Two mixtures of the first cuts: the cut at w₀, and the same with its heavier half scaled down to the lighter one."""
    found = [np.array([0.0, 0.0, 1.0])]
    up, down = (abs(float(cuts[side].a[-1])) for side in (UP, DOWN))
    if min(up, down) > 0.0:
        theta = min(up, down) / max(up, down)
        found.append(np.array([0.0, 1.0 - theta, theta] if up > down else [1.0 - theta, 0.0, theta]))
    return found
