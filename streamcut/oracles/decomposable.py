"""What a solver sees of the data: cuts, losses and steps along lines. It never sees a row, a shard or a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from streamcut.compiled.linear import exact_rounder
from streamcut.execution.feed import Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.runner import PassRunner
from streamcut.losses.hinge import Hinge
from streamcut.oracles import row_passes
from streamcut.oracles.row_passes import CutSums, Grids


@dataclass(frozen=True, slots=True)
class Cut:
    """A cutting plane R(w) ≥ ⟨a, w⟩ + b of the mean risk; a (D,)."""

    a: np.ndarray
    b: float


class DecomposableOracle:
    """F(w) = ½‖w‖² + C Σ u_i ℓ_i(w) over the rows of a runner, w flat and as long as `dimension` says.

    It is also the `LossAlongLine` of streamcut.bundle.line_search, from w_b to the w that was scored last.
    `total_weight` is M = Σ u_i, known after `start`. `passes`, `traffic` count the looks at the data; row-state work is none.

    kinds     the module with the risk's passes, by the names of streamcut.oracles.row_passes
    heaviest  factor on the weights of rows, at most
    """

    def __init__(
        self, runner: PassRunner, risk: Any, kinds: Any, *, dimension: int, C: float, bias: float, heaviest: float = 1.0
    ) -> None:
        self.dimension = dimension
        self.C = C
        self.total_weight = 0.0
        self.passes = 0
        self.traffic = Traffic()
        self._runner = runner
        self._risk = risk
        self._kinds = kinds
        self._bias = bias
        statistics = runner.feed.data.manifest.statistics
        weight = heaviest * (statistics.n_rows if statistics.weight_sum is None else statistics.weight_sum)
        largest = max(statistics.max_abs_value, bias)
        self._grids = Grids(vector=exact_rounder(largest * weight), weight=exact_rounder(weight))

    @property
    def c_bar(self) -> float:
        """C̄ = C·M: the factor of the mean risk."""
        return self.C * self.total_weight

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """(numbers, arrays) that a checkpoint keeps; release the row state after each look at the arrays."""
        numbers = {"total_weight": self.total_weight, "passes": self.passes, "traffic": asdict(self.traffic)}
        return numbers, {f"rows.{name}": array for name, array in self._runner.rows.items()}

    def restore(self, numbers: dict[str, Any], fill: Callable[[str, np.ndarray, Callable[[], None]], None]) -> None:
        """Go on from what `saved` gave; `fill` reads an array by name, and calls what it is given now and then."""
        self.total_weight, self.passes, self.traffic = numbers["total_weight"], numbers["passes"], Traffic(**numbers["traffic"])
        for name, array in self._runner.rows.items():
            fill(f"rows.{name}", array, self.release)

    def release(self) -> None:
        """Let go of the row state's pages, if it lives in scratch files."""
        self._runner.row_state.release(0, self._runner.row_state.n_rows)

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]:
        """The first pass, at `w` (0 unless given): the cut there and Σ u_i ℓ_i; sets `total_weight`."""
        w = np.zeros(self.dimension) if w is None else w
        sums = self._read(self._kinds.ScorePass(self._risk, self._grids, w, self._bias, at_w=True, first=True))
        self.total_weight = sums.weight
        return self._cut(sums), float(sums.loss.sum())

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        """One pass: the cut at w and Σ u_i ℓ_i(w)."""
        sums = self._read(self._kinds.ScorePass(self._risk, self._grids, w, self._bias, at_w=True))
        return self._cut(sums), float(sums.loss.sum())

    def score(self, w: np.ndarray) -> None:
        """One pass: the margins of w, for the line search."""
        self._read(self._kinds.ScorePass(self._risk, self._grids, w, self._bias))

    def score_and_cut(self, w: np.ndarray, kappa: float) -> Cut:
        """One pass: the margins of w, and the cut at w_b + κ(w − w_b), whose margins follow row by row."""
        return self._cut(self._read(self._kinds.ScorePass(self._risk, self._grids, w, self._bias, kappa=kappa)))

    def cut_between(self, mu: float) -> Cut:
        """One pass: the cut at w_b + μ(w − w_b) by margins that are known."""
        return self._cut(self._read(self._kinds.CutPass(self._risk, self._grids, self.dimension, self._bias, mu)))

    def step(self, k: float) -> float:
        """Make w_b + k(w − w_b) the best point; returns Σ u_i ℓ_i there. The data is not read."""
        return float(self._runner.run(self._kinds.StepPass(k))[0].sum())

    def slope_at_zero(self) -> float:
        return float(self._runner.run(self._kinds.SlopePass())[0].sum())

    def histogram(self, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._runner.run(self._kinds.HistogramPass(edges))[0]

    def breakpoints(self, low: float, high: float, count: int) -> tuple[np.ndarray, np.ndarray]:
        found = self._runner.run(self._kinds.BreakpointsPass(low, high, count))[0]
        return np.concatenate([k for k, _ in found]), np.concatenate([jump for _, jump in found])

    def _read(self, work: Pass) -> Any:
        sums, report = self._runner.run(work)
        self.passes += 1
        self.traffic += report.traffic
        return sums

    def _cut(self, sums: CutSums) -> Cut:
        assert sums.a is not None
        sums.a /= self.total_weight
        return Cut(sums.a, sums.b / self.total_weight)


class LinearOracle(DecomposableOracle):
    """The oracle of the two-class hinge loss: w of length d, or d + 1 with a bias feature."""

    def __init__(self, runner: PassRunner, risk: Hinge, *, C: float, bias: float, keep_margins: bool) -> None:
        statistics = runner.feed.data.manifest.statistics
        dimension, heaviest = statistics.n_features + (bias != 0.0), max(1.0, risk.positive_weight)
        super().__init__(runner, risk, row_passes, dimension=dimension, C=C, bias=bias, heaviest=heaviest)
        for name in ("z", "z_b") * keep_margins + ("u",) * risk.weighted(statistics.weight_sum is not None):
            runner.row_state.add(name)
