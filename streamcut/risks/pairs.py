"""Ordered pairs of rows: ranking inside queries, ordinal regression, and the area under the ROC curve (Joachims 2006).

    R(w) = Σ over pairs (i, j) with y_i > y_j, and of one query where there are queries, of u_ij max(0, 1 − (s_i − s_j))

with Σ u_ij = 1: u_ij = 1/|P| for the normalisation "pairs", the paper's; 1/(Q·|P_q|) for "queries", in which each of the Q
queries that have pairs counts alike. Labels are compared, never taken for 1 … R. With two labels and no queries 1 − R is at most
the area under the ROC curve. A constant feature cancels in every pair, so there is no bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.errors import BadInputError
from streamcut.passes import pairs


@dataclass(frozen=True, slots=True)
class Pairs:
    """A global risk whose groups are the queries; the code of a row is the number of its label among those of its query."""

    normalisation: str = "pairs"
    code_type: ClassVar[type] = np.int32
    coefficient_sum: ClassVar[float] = 2.0  # each pair gives its weight to both of its rows
    room_bytes: ClassVar[int] = 24  # two arrays of keys, two of places

    def encode(self, labels: np.ndarray, starts: np.ndarray, codes: np.ndarray) -> None:
        pairs.number_levels(labels, starts, *_sorting_room(starts), codes)

    def sizes(self, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Number of pairs in each group."""
        sizes = np.empty(len(starts) - 1, np.int64)
        pairs.count_pairs(codes, starts, _tree(codes), sizes)
        return sizes

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        """Weight of a pair in each group; all 0 when there are no pairs at all."""
        if self.normalisation == "pairs":
            return np.full(len(sizes), 1.0 / max(float(sizes.sum()), 1.0))
        return 1.0 / (max(np.count_nonzero(sizes), 1) * np.maximum(sizes, 1).astype(np.float64))

    def evaluate(
        self, codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        sums = np.zeros((2, 2))
        pairs.hinge_pairs(codes, starts, weights, scores, *_sorting_room(starts), _tree(codes), out, sums)
        return sums


def _sorting_room(starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    largest = int(np.diff(starts).max())
    if largest > np.iinfo(np.int32).max:
        raise BadInputError(f"a query of {largest:,} rows is too long: 2,147,483,647 at most are compared with each other")
    return np.empty(largest, np.uint64), np.empty(largest, np.int32), np.empty(largest, np.uint64), np.empty(largest, np.int32)


def _tree(codes: np.ndarray) -> np.ndarray:
    return np.empty(int(codes.max()) + 2, np.int64)
