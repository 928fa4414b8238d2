"""A risk of all rows at once, regardless of their memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamcut.errors import BadInputError
from streamcut.losses.pairs import near_by_cells
from streamcut.losses.scores import OneGroupRisk
from streamcut.models.kept import Kept
from streamcut.oracles.row_blocks import BLOCK_ROWS, RowBlocks
from streamcut.oracles.sorted_scores import SortedScores

CODE_TYPE = np.int8
_VALUE_BYTES = 9  # bytes per sorted score: the score and a guide to it
_BLOCK_BYTES = 40  # bytes per row of the current block: scores, picked scores, selection keys
_LEAST_ROOM = 16 << 20
_ENDLESS = 1 << 62


class OneGroup(Kept):
    """Values and coefficients of a risk, in the row state `z`, `z_b`, `c`, `code`.

    room  bytes for sorting; None: no limit. It does not change results.
    """

    kept = ()
    code_type = CODE_TYPE

    def __init__(self, risk: OneGroupRisk, blocks: RowBlocks, room: int | None = None) -> None:
        self._risk = risk
        self._blocks = blocks
        self._room = _ENDLESS if room is None else room // _VALUE_BYTES
        self._counts = np.zeros(risk.classes, np.int64)
        self._splitters: np.ndarray | None = None

    def begin(self, _: object) -> None:
        """Take the labels in `z`. Raises CorruptError, BadInputError."""
        self._blocks.each(lambda _, rows: self._risk.encode(rows["z"], rows["code"]))
        self.weigh()

    def weigh(self) -> None:
        """Count the rows of each class. Raises BadInputError when no two rows can be compared."""
        counts = self._blocks.map(lambda _, rows: np.bincount(rows["code"], minlength=len(self._counts)))
        self._counts = sum(counts, np.zeros_like(self._counts))
        if self._risk.classes > 1 and np.count_nonzero(self._counts) < 2:
            raise BadInputError("no two rows have different labels: there is nothing to rank")

    def value(self, k: float | None) -> tuple[float, float]:
        """(risk, offset) at z_b + k(z − z_b), or at z when k is None; fills the coefficients."""
        return self._risk.evaluate(self.sorted(k))

    def near(self) -> Any:
        """Fill `up` and `down` at the scores z_b, for risks of pairs; returns the cells of scores used."""
        risk: Any = self._risk
        return near_by_cells(risk, self.sorted(0.0))

    def sorted(self, k: float | None) -> SortedScores:
        """The scores at z_b + k(z − z_b), or at z when k is None."""
        former, apart = self._splitters, self._risk.apart
        scores = SortedScores(self._blocks, k, self._counts, self._room, former=former, apart=apart)
        self._splitters = scores.splitters
        return scores


def sorting_bytes(n_rows: int, numbers: int, workers: int) -> tuple[int, tuple[int, int]]:
    """(bytes for blocks in progress, (least, most) bytes for sorting) of a risk with at most `numbers` float64 a row."""
    most = _VALUE_BYTES * numbers * n_rows
    return workers * _BLOCK_BYTES * min(n_rows, BLOCK_ROWS), (min(most, _LEAST_ROOM), most)
