"""The scores as a risk of one group sees them (streamcut.oracles.sorted_scores)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Literal, Protocol, TypeVar

import numpy as np

Result = TypeVar("Result")


class Scores(Protocol):
    """Scores of all rows, with classes from 0 on, in sorted order without all being in memory at once.

    counts  rows of each class
    bounds, inside, ties   ranges of the sorted order, as in SortedScores
    room    scores that may be in memory at a time
    """

    counts: np.ndarray
    bounds: np.ndarray
    inside: np.ndarray
    ties: np.ndarray
    room: int

    def sweep(self, work: Callable[[int, np.ndarray, dict[str, np.ndarray]], Result]) -> Iterator[Result]: ...

    def whole(self) -> tuple[np.ndarray, np.ndarray]: ...

    def sorted_range(self, r: int, only: int | None = None) -> tuple[np.ndarray, np.ndarray]: ...

    def stream(self, c: int, *, descending: bool, skip: int = 0) -> Iterator[np.ndarray]: ...


class OneGroupRisk(Protocol):
    """A convex risk of the scores of all rows jointly.

    grouped          False
    classes          number that it distinguishes
    coefficient_sum  at least Σ |c_i| of any cut
    numbers          float64 per row that sorting can use
    apart            whether it reads classes separately, two at a time
    """

    grouped: ClassVar[Literal[False]]
    apart: ClassVar[bool]
    coefficient_sum: ClassVar[float]

    @property
    def classes(self) -> int: ...

    @property
    def numbers(self) -> int: ...

    def encode(self, labels: np.ndarray, codes: np.ndarray) -> None:
        """Fill `codes` (int8) with the classes of some rows. Raises CorruptError for an unexpected label."""

    def evaluate(self, scores: Scores) -> tuple[float, float]:
        """(risk, offset b of its cut); fills the row state `c` with a subgradient of the risk.

        The risk at any scores s is at least ⟨c, s⟩ + b, and equal to it at `scores`.
        """
