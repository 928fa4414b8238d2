"""One class (Schölkopf et al. 2001): rows on one side of a plane as far from the origin as possible, except a fraction ν.

    R(w) = max(0, 1 − mean of the νm lowest scores)

the last of these counting in part if νm is not an integer. Schölkopf's problem is min ½‖w‖² − ρ + (1/νm) Σ max(0, ρ − s_i).
With the best ρ for each w, a ν-quantile of the scores, that is ½‖w‖² minus the mean of the νm lowest. Along each direction the
mean is linear in the length of w, so only a direction has to be found, and min ½‖w‖² + C̄ R(w) has the same one for every C̄; for
C̄ large enough the mean is 1 at the optimum, and the least F is 1 / (2r²) for a largest mean r at ‖w‖ = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from streamcut.losses.scores import Scores


@dataclass(frozen=True, slots=True)
class OneClass:
    """A risk of one group (OneGroupRisk) without labels. nu: ν, above 0 and at most 1."""

    nu: float
    grouped: ClassVar[Literal[False]] = False
    apart: ClassVar[bool] = False
    coefficient_sum: ClassVar[float] = 1.0
    classes: ClassVar[int] = 1
    numbers: ClassVar[int] = 1

    def encode(self, labels: np.ndarray, codes: np.ndarray) -> None:
        codes[:] = 0

    def evaluate(self, scores: Scores) -> tuple[float, float]:
        share = self.nu * int(scores.counts[0])  # contributing rows
        threshold = self.quantile(scores)

        def count(first: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> tuple[int, int, int]:
            return first, int(np.count_nonzero(some < threshold)), int(np.count_nonzero(some == threshold))

        counts = list(scores.sweep(count))
        left = share - sum(below for _, below, _ in counts)  # of it for the rows at the threshold, the first ones first
        spare = {}
        for first, _, at in counts:
            spare[first] = left
            left -= at

        def weigh(first: int, some: np.ndarray, rows: dict[str, np.ndarray]) -> float:
            at = np.flatnonzero(some == threshold)
            c = rows["c"]
            c[:] = (some < threshold) * (-1.0 / share)
            c[at] = np.clip(spare[first] - np.arange(len(at)), 0.0, 1.0) * (-1.0 / share)
            return math.fsum(c * some)

        value = 1.0 + math.fsum(scores.sweep(weigh))
        if value > 0.0:
            return value, 1.0
        for _ in scores.sweep(lambda first, some, rows: rows["c"].fill(0.0)):
            pass
        return 0.0, 0.0

    def quantile(self, scores: Scores) -> float:
        """The score of the first row that does not count in full; ∞ if all do."""
        whole = int(self.nu * int(scores.counts[0]))
        if whole >= int(scores.counts[0]):
            return math.inf
        return float(next(scores.stream(0, descending=False, skip=whole))[0])
