"""SBP: the kernelized Stochastic Batch Perceptron (Cotter, Shalev-Shwartz & Srebro 2012, Algorithm 1).

Problem   max over ‖w‖ ≤ 1 and slack ξ ≥ 0 with Σ ξ_i ≤ mν of min_i (y_i (⟨w, φ(x_i)⟩ + b) + ξ_i): the widest margin when each
          row may get slack, ν on average; b = 0, or free (the paper's unregularised bias). Its solutions over ν are those
          of the regularised SVM over C.
Given     responses of all rows, ν or C, bias or not, a random generator.
Returns   the mean of all iterates divided by its margin γ: mean hinge loss ν/γ at a norm of 1/γ at most.
Stops     with streamcut.papers.rounds.

    w = 0
    for t = 1, 2, …
        γ = water level of the responses c_i = y_i ⟨w, φ(x_i)⟩ for the volume mν (with bias: of two basins)
        i = one of the rows under water (c_i < γ), all equally likely (with bias: of a class by a coin)
        w ← w + η y_i φ(x_i),  η = 1 / √(t max k(x, x))
        w ← w / max(1, ‖w‖)

ν from C is ours: at the optimum for C the scale 1/γ is the best one for C, 1/γ = C Σ_{under water} c_i, which is a
condition on ν. It is solved for the mean responses after 1, 2, … steps, an eighth more each time. (The paper takes ν from
the optimum, "known to us".)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamcut.papers.rounds import KernelMethod, Responses

_SEARCHES, _PRECISION = 60, 1e-9  # for the volume that suits C
_OCEAN = 1e9  # times the largest response, per row: exceeds any volume, for any C


class Level(NamedTuple):
    """Under water are rows with c_i < `positive` or, of the other class, `negative`: `covered` of each class,
    with responses summing to `total`.

    Without bias both levels are γ and `covered` counts all rows.
    """

    positive: float
    negative: float
    covered: int
    total: float

    @property
    def gamma(self) -> float:
        return 0.5 * (self.positive + self.negative)

    @property
    def bias(self) -> float:
        return 0.5 * (self.negative - self.positive)


class WaterLevel:
    """Finds levels of responses (m,) from step to step: rows far above the last level are excluded from the search.

    Pouring a volume V into a basin with floor c raises its surface to the γ with Σ_i max(0, γ − c_i) = V. With a bias there are
    two basins, one per class, whose heights the bias shifts against each other; at the best bias water covers equally many rows
    in both, and the sum of both levels counts (Appendix B, Algorithms 2 and 3). If only that sum is determined, the middle of
    the allowed range is taken; a class that is covered whole takes all further water.
    """

    def __init__(self, signs: np.ndarray, *, bias: bool) -> None:
        self.basins = [np.flatnonzero(signs == sign) for sign in (1, -1)] if bias else [np.arange(len(signs))]
        self.two = bias

    def find(self, c: np.ndarray, volume: float, near: Level | None = None, slack: float = 0.0) -> Level:
        """The level of `volume`; rows further from those of `near` than `slack` are sorted only if needed."""
        level = None
        if near is not None:
            window = [(level - slack, level + slack) for level in (near.positive, near.negative)]
            level = Basins([c[rows] for rows in self.basins], window).level(volume)
        return level or self.whole(c).of(volume)

    def whole(self, c: np.ndarray) -> Basins:
        """The basins of these responses, for one volume after another."""
        return Basins([c[rows] for rows in self.basins], [(-np.inf, np.inf)] * 2)


class Basins:
    """The basins with these `heights`, of each the rows in its window (low, high) sorted."""

    def __init__(self, heights: list[np.ndarray], windows: list[tuple[float, float]]) -> None:
        below = [basin[basin < low] for basin, (low, _) in zip(heights, windows, strict=False)]
        self._floors = [
            np.sort(basin[(basin >= low) & (basin <= high)]) for basin, (low, high) in zip(heights, windows, strict=False)
        ]
        self._sizes = [len(basin) for basin in heights]
        self._first = max(map(len, below))  # of the ranks to try
        self._starts = [self._first - len(under) for under in below]
        parts = list(zip(below, self._floors, self._starts, strict=True))
        self._n = max(min(len(floor) - start for _, floor, start in parts), 0)
        covered = sum(under.sum() + floor[:start].sum() for under, floor, start in parts)
        sums = np.sum([floor[start : start + self._n] for _, floor, start in parts], axis=0)
        self._totals = covered + np.cumsum(sums)
        self._poured = np.arange(self._first + 1, self._first + self._n + 1) * sums - self._totals

    def level(self, volume: float) -> Level | None:
        """The level, if the windows determine it: rows below them are covered, not all in them are."""
        count = int(np.searchsorted(self._poured, volume))
        if self._n == 0 or count == 0 < self._first:
            return None
        count = max(count, 1)
        ends, covered, total = [start + count for start in self._starts], self._first + count, float(self._totals[count - 1])
        parts = list(zip(self._floors, ends, strict=True))
        if any(end == len(floor) and covered < size for (floor, end), size in zip(parts, self._sizes, strict=True)):
            return None
        surface = (volume + total) / covered
        if len(parts) == 1:
            return Level(surface, surface, covered, total)
        tops = [float(floor[end - 1]) for floor, end in parts]
        rise = surface - tops[0] - tops[1]
        up, down = (min([rise, *(floor[end : end + 1] - top)]) for (floor, end), top in zip(parts, tops, strict=True))
        return Level(tops[0] + 0.5 * (rise + up - down), tops[1] + 0.5 * (rise - up + down), covered, total)

    def of(self, volume: float) -> Level:
        """The level, where all rows are sorted."""
        level = self.level(volume)
        assert level is not None
        return level


class StochasticBatchPerceptron(KernelMethod):
    """Exactly one of `nu` and `C` is given; see the module. `rows_seen` counts drawn rows."""

    kept = (*KernelMethod.kept, "steps", "_level", "_square", "_slack", "_next", "_volume")

    def __init__(
        self, responses: Responses, *, random: np.random.Generator, nu: float | None = None, C: float | None = None,
        bias: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(responses, random=random)
        self.steps = 0
        self._C = C
        self._levels = WaterLevel(responses.signs, bias=bias)
        self._largest = float(responses.diagonal.max())
        self._square = 0.0  # ‖w‖²
        self._level: list[float] = []  # a Level, once there is one
        self._slack = np.inf
        self._next = 1  # the step after which ν is updated
        self._ocean = _OCEAN * responses.n_rows * np.sqrt(self._largest)
        self._volume = responses.n_rows * (np.sqrt(self._largest) if nu is None else nu)

    def iterate(self) -> None:
        """One step."""
        self.steps += 1
        c = self.responses.c
        level = self._levels.find(c, self._volume, Level._make(self._level) if self._level else None, self._slack)
        self._level = list(level)
        row = self._drawn(c, level)
        self.rows_seen += 1
        rate = 1.0 / np.sqrt(self.steps * self._largest)
        self._square += 2.0 * (rate * c[row]) + rate * rate * self.responses.diagonal[row]
        scale = 1.0
        if self._square > 1.0:
            scale, self._square = 1.0 / np.sqrt(self._square), 1.0
        self._slack = rate * self._largest
        self.responses.step(row, rate, scale)
        if self._C is not None and self.steps >= self._next:
            self._volume = self.average()[1]
            self._next = self.steps + max(1, self.steps // 8)

    def average(self) -> tuple[Level, float]:
        """The level of the mean responses, and its volume."""
        c = self.responses.c_sum / self.steps
        basins = self._levels.whole(c)
        return (basins.of(self._volume), self._volume) if self._C is None else self._best_for(basins, self._C)

    def _best_for(self, basins: Basins, C: float) -> tuple[Level, float]:
        """The level whose 1/γ is the best scale of the responses for C, and its volume.

        ½s² + C Σ max(0, 1 − s c_i) is convex in s = 1/γ, so the sign of its slope tells whether more water is needed; while the
        rows under water stay the same, a Newton step is exact.
        """
        volume, low, high, level = self._volume, 0.0, self._ocean, basins.of(self._volume)
        for _ in range(_SEARCHES):
            if level.total * level.gamma * C < 1.0:
                low = volume
            else:
                high = volume
            rows = level.covered * (2 if self._levels.two else 1)
            wanted = rows / (C * level.total) - level.total if level.total > 0.0 else np.inf
            if not low < wanted < high:
                wanted = min(2.0 * volume, 0.5 * (low + high))
            if abs(wanted - volume) <= _PRECISION * volume:
                break
            volume = wanted
            level = basins.of(volume)
        return level, volume

    def predictor(self) -> tuple[np.ndarray, float]:
        """(α, intercept) of the mean iterate, divided by its margin if it has one."""
        level, _ = self.average()
        scale = 1.0 / level.gamma if level.gamma > 0.0 else 1.0
        return self.responses.alpha_sum * (scale / self.steps), scale * level.bias

    def figures(self) -> dict[str, float]:
        """Figures of the history: the margin γ of the mean iterate, its ν, norm and mean hinge loss as `predictor` scales it."""
        level, volume = self.average()
        nu = volume / self.responses.n_rows
        square = float(self.responses.alpha_sum @ self.responses.c_sum) / self.steps**2
        if level.gamma <= 0.0:
            return {"margin": level.gamma, "nu": nu}
        return {
            "margin": level.gamma,
            "nu": nu,
            "norm": math.sqrt(max(square, 0.0)) / level.gamma,
            "mean_hinge": nu / level.gamma,
        }

    def _drawn(self, c: np.ndarray, level: Level) -> int:
        """One of the rows under water; with a bias a coin decides its class. Rows exactly at the surface are chosen at random."""
        rows, surface = self._levels.basins[0], level.positive
        if self._levels.two and not self.random.integers(2):
            rows, surface = self._levels.basins[1], level.negative
        heights = c[rows]
        (under,) = np.nonzero(heights < surface)
        if len(under) < level.covered:
            (ties,) = np.nonzero(heights == max(surface, heights.min()))
            missing = min(level.covered - len(under), len(ties))
            under = np.concatenate([under, self.random.choice(ties, missing, replace=False)])
        return int(rows[under[self.random.integers(len(under), size=1)]][0])
