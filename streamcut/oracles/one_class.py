"""The oracle of one class, and the plane's offset at the end."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamcut.compiled import vectors
from streamcut.losses.one_class import OneClass
from streamcut.models.checkpoint import Fill
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.global_passes import ScoresPass
from streamcut.oracles.global_risk import GlobalOracle
from streamcut.oracles.one_group import OneGroup
from streamcut.oracles.row_blocks import RowBlocks

_PENALTY = 100.0  # C̄·‖a‖² for the cut (a, 1) at w = 0; C̄ affects the optimum only where ‖a‖² is a hundred times smaller


class _LastScores(ScoresPass):
    """Scores of the solution: computed even when the run was asked to stop."""

    __slots__ = ()
    interruptible: ClassVar[bool] = False


class OneClassOracle(GlobalOracle):
    """A GlobalOracle that chooses C̄ = 100 / ‖a‖², a the cut at w = 0: with any C̄ the solution has the same direction."""

    def start(self) -> tuple[Cut, float]:
        cut, loss = super().start()  # m·R, which does not depend on C
        square = vectors.dot(cut.a, cut.a)
        self.C = (_PENALTY / square if square > 0.0 else 1.0) / self._n
        return cut, loss

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers, arrays = super().saved()
        return {**numbers, "C": self.C}, arrays

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        super().restore(numbers, fill)
        self.C = numbers["C"]

    def offset(self, w: np.ndarray, risk: OneClass) -> float:
        """ρ of the plane ⟨w, x⟩ = ρ, which has νm rows below it, rounded down. One pass, after all others."""
        self._runner.run(_LastScores(w, self._bias))
        assert isinstance(self._groups, OneGroup)
        rows = self._runner.row_state
        blocks = RowBlocks(self._n, lambda: self._runner.rows, rows.release, self._blocks.workers)  # none is broken off
        return risk.offset(self._groups.sorted(None, blocks))
