"""The oracle of one class (streamcut.bundle.one_class), and the plane's offset at the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.intercept import Plane
from streamcut.bundle.one_class import FreeOffset
from streamcut.compiled import row_losses, score_ranges, vectors
from streamcut.compiled.score_ranges import DIGIT
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.rounding import EPSILON, CutError, above, gamma
from streamcut.losses.loss import Loss
from streamcut.models.certificate import Cut
from streamcut.oracles.decomposable import longest
from streamcut.oracles.linear import LinearOracle
from streamcut.oracles.row_passes import RowPass, ScorePass

_SIGN = np.uint64(1) << np.uint64(63)


@dataclass(frozen=True, slots=True)
class _LastScores(ScorePass):
    """Scores of the solution: computed even when the run was asked to stop."""

    interruptible: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class _DigitsPass(RowPass):
    """Counts of the digits at bit `shift` of the keys of row state `name`, for each of `prefixes` (p, digits)."""

    name: str
    prefixes: np.ndarray
    shift: int

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros((len(self.prefixes), 1 << DIGIT), np.int64)

    def visit_rows(self, counts: np.ndarray, rows: Rows) -> None:
        score_ranges.count_digits(rows[self.name], self.prefixes, self.shift, counts)

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        total += part
        return total


@dataclass(frozen=True, slots=True)
class _BelowPass(RowPass):
    """Σ max(0, level − z), as (total, rounding lost)."""

    level: float

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros(2)

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        vectors.accumulate(np.array([math.fsum(np.maximum(self.level - rows["z"], 0.0)), 0.0]), sums)


@dataclass(frozen=True, slots=True)
class _ShiftPass(RowPass):
    """z_b += by in the row state, and the loss there."""

    by: float
    loss: Loss

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros(3)

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        z_b = rows["z_b"]
        z_b += self.by
        row_losses.step(self.loss, z_b, z_b.copy(), 0.0, None, rows.get("u"), sums)


class OneClassOracle(LinearOracle):
    """A LinearOracle of F(w, b) of streamcut.bundle.one_class, which sets its own C: cuts have ν in their pull on b."""

    kept: tuple[str, ...] = (*LinearOracle.kept, "ones")

    def __init__(self, *arguments: Any, nu: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._nu = nu
        self._lean = self._bias * nu  # by which cuts of the mean hinge pull less on b

    def begin(self) -> tuple[Cut, Cut]:
        """The first pass, at w = 0: the cut there, with all shares 1, which determines C, and the cut with shares 0."""
        ones, _ = self.start()
        self._start(ones)
        none = np.zeros(self.dimension)
        none[-1] = self._lean
        return ones, Cut(none, 0.0, CutError(0.0, 0.0))

    def _start(self, ones: Plane) -> None:
        square = vectors.dot(ones.a[:-1], ones.a[:-1])
        price = 0.5 / square if square > 0.0 else 1.0
        self.C = price / (self._nu * self.total_weight)
        self.penalty = FreeOffset.of(ones, self._nu, self._bias, price, self._scale.length)
        self.unit = self.penalty.c_bar / self.c_bar

    def _divided(self, a: np.ndarray, b: np.ndarray) -> Cut:
        cut = super()._divided(a, b)
        cut.a[-1] += self._lean
        return cut

    @property
    def ones(self) -> Plane | None:
        """The cut with all shares 1, known after the first pass."""
        return self.penalty.ones if isinstance(self.penalty, FreeOffset) else None

    @ones.setter
    def ones(self, cut: Plane) -> None:
        self._start(cut)

    def best_intercept(self, w_b: np.ndarray) -> float:
        place = min(int(self._nu * self._scale.rows), self._scale.rows - 1)
        return 1.0 - ordered(self._runner, "z_b", place)

    def shift(self, by: float, w_b: np.ndarray) -> float:
        """Move the scores of all rows and the last of w_b, in place, by `by`; returns Σ ℓ_i there. The data is not read."""
        before = self._spread(w_b), self._longest(w_b)
        loss = self._look(_ShiftPass(by, self._loss))
        w_b[-1] += by / self._bias
        for drift, old, new in zip((self._drift, self._reach), before, (self._spread(w_b), self._longest(w_b)), strict=True):
            drift.error = drift.error + gamma(8.0) * (old + new + drift.error)
            drift.best = new
        self._near = self._reach.error
        return self._loss_above(self._summed(loss), self._drift.error)

    def plane(self, w: np.ndarray) -> tuple[float, float, float]:
        """(ρ, an upper bound on m·R, the part of it for rounding) of the solution's weights w, whose last is 0; ρ is midway
        between the last of the νm lowest scores, rounded down, and the next. One pass, after all others."""
        self._runner.run(_LastScores(self._risk, self._grids, w, self._bias))
        n, whole = self._scale.rows, int(self._nu * self._scale.rows)
        level = ordered(self._runner, "z", min(whole, n - 1))
        last = level if whole in (0, n) else ordered(self._runner, "z", whole - 1)
        below = float(self._look(_BelowPass(level)).sum()) / (self._nu * n)
        size = longest(self._scale, w)
        part = gamma(64.0) + (n * EPSILON) ** 2 * 4.0
        risk = max(0.0, 1.0 - level + below)
        error = self._scale.score_gamma() * size + part * (1.0 + abs(level) + below + size)
        most = n * above(risk, error) * (1.0 + 4.0 * EPSILON)
        return 0.5 * last + 0.5 * level, most, most - n * risk


def ordered(runner: Runner, name: str, place: int) -> float:
    """The number at `place` of row state `name` in sorted order: 11 bits of its key at a time, highest first."""
    key = np.zeros(1, np.uint64)
    for shift in range(55, -1, -DIGIT):
        up_to = np.cumsum(runner.run(_DigitsPass(name, key.copy(), shift))[0][0])
        digit = int(np.searchsorted(up_to, place, side="right"))
        place -= int(up_to[digit - 1]) if digit else 0
        key = (key << np.uint64(DIGIT)) | np.uint64(digit)
    return float(np.where(key & _SIGN, key & ~_SIGN, ~key).view(np.float64)[0])
