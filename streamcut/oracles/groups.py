"""Risks of many independent groups of rows, evaluated in blocks of whole groups; and of all rows, regardless of their memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from streamcut.compiled import score_ranges
from streamcut.errors import BadInputError, CorruptError
from streamcut.execution.row_state import Rows
from streamcut.io.manifest import Statistics
from streamcut.losses.pairs import Cells, near_by_cells
from streamcut.losses.scores import OneGroupRisk
from streamcut.models.kept import Kept
from streamcut.oracles.sorted_scores import BLOCK_ROWS, Result, RowBlocks, SortedScores


class GroupRisk(Protocol):
    """A convex risk of the scores of all rows, a sum over groups of rows (`starts[g]:starts[g + 1]`) that are independent.

    grouped          True
    code_type        dtype of the codes of labels
    coefficient_sum  upper bound on Σ |c_i| of any cut
    room_bytes       memory of `evaluate` per row, without its arguments
    """

    grouped: ClassVar[Literal[True]]
    code_type: ClassVar[type]
    coefficient_sum: ClassVar[float]
    room_bytes: ClassVar[int]

    def encode(self, labels: np.ndarray, starts: np.ndarray, codes: np.ndarray) -> None:
        """Fill `codes`; all arguments are for a block of whole groups, as below."""

    def sizes(self, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The total possible loss of each group, int64; 0: none."""

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Weights of all groups, float64, from all sizes."""

    def evaluate(
        self, codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        """Fill `out` with a subgradient c of the risk; returns [[risk, rounding lost], [offset b, rounding lost]].

        The risk at any scores s is at least ⟨c, s⟩ + b, and equal to it at `scores`.
        """


class Groups(Kept):
    """The groups of a risk: its values and coefficients, in the row state `z`, `z_b`, `c`, `code`.

    A block has at least BLOCK_ROWS rows, and ends where a group does.
    """

    kept = ("starts",)

    def __init__(self, risk: GroupRisk, blocks: RowBlocks, statistics: Statistics) -> None:
        self.code_type = risk.code_type
        self._risk = risk
        self._blocks = blocks
        self._weights = np.empty(0)
        self.starts = np.zeros((statistics.groups or 1) + 1, np.int64)
        self.starts[-1] = statistics.n_rows

    def begin(self, runs: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Take the labels in `z`, and the `runs` of equal qid (LabelPass). Raises CorruptError, BadInputError."""
        if runs:
            rows, qid = (np.concatenate(arrays) for arrays in zip(*runs, strict=True))
            starts = rows[np.append(True, qid[1:] != qid[:-1])]
            if len(starts) != len(self.starts) - 1:
                raise CorruptError(
                    f"{len(starts):,} queries, but the manifest has {len(self.starts) - 1:,}; see `streamcut info --check`"
                )
            self.starts[:-1] = starts

        def encode(rows: Rows, starts: np.ndarray, _: slice) -> None:
            self._risk.encode(rows["z"], starts, rows["code"])

        self._map(encode)
        self.weigh()

    def weigh(self) -> None:
        """Compute the weights of the groups from the codes. Raises BadInputError when no two rows can be compared."""
        of_blocks: list[np.ndarray] = self._map(lambda rows, starts, _: self._risk.sizes(rows["code"], starts))
        sizes = np.concatenate(of_blocks)
        if not sizes.any():
            where = "" if len(sizes) == 1 else " of one query (qid)"
            raise BadInputError(f"no two rows{where} have different labels: there is nothing to rank")
        self._weights = self._risk.weights(sizes)

    def value(self, k: float | None) -> tuple[float, float]:
        """(risk, offset) at z_b + k(z − z_b), or at z when k is None; fills the coefficients."""

        def evaluate(rows: Rows, starts: np.ndarray, groups: slice) -> np.ndarray:
            scores = rows["z"]
            if k is not None:
                scores = np.empty(len(scores))
                score_ranges.between(rows["z_b"], rows["z"], k, scores)
            return self._risk.evaluate(rows["code"], starts, self._weights[groups], scores, rows["c"])

        risk, offset = (math.fsum(part.ravel()) for part in np.stack(self._map(evaluate), axis=1))
        return risk, offset

    def near(self) -> None:
        """Fill `up` and `down` at the scores z_b, for risks of pairs."""

        def fill(rows: Rows, starts: np.ndarray, groups: slice) -> None:
            risk: Any = self._risk
            risk.near(rows["code"], starts, self._weights[groups], rows["z_b"], rows["up"], rows["down"])

        self._map(fill)

    def _map(self, work: Callable[[Rows, np.ndarray, slice], Result]) -> list[Result]:
        """work(row state, group starts in it, their group numbers) of each block."""
        bounds = [0]
        while bounds[-1] < len(self.starts) - 1:
            bounds.append(int(np.searchsorted(self.starts[:-1], self.starts[bounds[-1]] + BLOCK_ROWS)))

        def one(first_row: int, rows: Rows) -> Result:
            b = int(np.searchsorted(firsts, first_row))
            starts = self.starts[bounds[b] : bounds[b + 1] + 1]
            return work(rows, starts - first_row, slice(bounds[b], bounds[b + 1]))

        firsts = self.starts[bounds]
        return list(self._blocks.map(one, firsts))


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

    def near(self) -> Cells:
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
