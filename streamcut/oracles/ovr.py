"""What one-vs-rest training sees of the data: cuts, losses and steps of many classes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from streamcut.bundle.kinks import KinkedLosses, Kinks, minimise_in_step
from streamcut.bundle.line_searches import minimise_along_lines
from streamcut.bundle.newton_searches import minimise_by_newton_along
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.execution.runner import PassRunner
from streamcut.losses.classes import OneVsRest
from streamcut.models.checkpoint import Fill
from streamcut.oracles import ovr_passes
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.decomposable import Cut
from streamcut.oracles.row_lengths import longest, row_scale
from streamcut.rounding import Drift, loss_above

_TILE = 1024  # features whose numbers of all classes stay in cache


class OvrOracle(MulticlassOracle):
    """F_k(w) = R(w) + C Σ u_i ℓ(±⟨w, x_i⟩) for each class k, w of length `features`, d or d + 1 with a bias feature.

    `active` (A) are the classes that are trained; it is also their losses along lines. `c_bar` is that of each class;
    `raises` (A) are what each of the last losses was `raised` by.
    """

    def __init__(self, runner: PassRunner, risk: OneVsRest, *, C: float, bias: float, penalty: L2 = SQUARES) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True, penalty=penalty)
        self.features = self.dimension // risk.classes
        self.active = np.arange(risk.classes)
        self.raises: list[float] = []
        statistics = runner.feed.data.manifest.statistics
        self._scale, self._width = row_scale(statistics, bias), 1
        self._loss = risk.loss
        self._targets = risk.scale(float(statistics.n_rows) if statistics.weight_sum is None else statistics.weight_sum)
        self._drifts = [Drift() for _ in range(risk.classes)]
        self._reaches = [Drift() for _ in range(risk.classes)]  # the same of a single row

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers, arrays = super().saved()
        own = {"drifts": self._drifts, "reaches": self._reaches}
        return {**numbers, **{name: [asdict(drift) for drift in drifts] for name, drifts in own.items()}}, arrays

    def restore(self, numbers: dict[str, Any], fill: Fill) -> None:
        super().restore(numbers, fill)
        self._drifts, self._reaches = ([Drift(**drift) for drift in numbers[name]] for name in ("drifts", "reaches"))

    def start_all(self, w: Sequence[np.ndarray] | None = None) -> list[Cut]:
        """The first pass, at each class's w (0 unless given): the cut there; sets `total_weight`."""
        W = np.zeros((self.features, len(self.active))) if w is None else side_by_side(w)
        found = self._cuts(W, np.full(len(self.active), float(w is not None)), first=True)
        if w is not None:
            self._scored_all(w)
        return found

    def steepest_at_zero(self) -> float:
        """As that of DecomposableOracle, of the steepest class."""
        return max(float(np.abs(cut.a).max(initial=0.0)) for cut in self.start_all())

    def score_and_cut_all(self, w: Sequence[np.ndarray], kappa: np.ndarray) -> list[Cut]:
        """One pass: the margins of each active class's w, and its cut at w_b + κ(w − w_b)."""
        self._scored_all(w)
        return self._cuts(side_by_side(w), kappa)

    def step_all(self, k: np.ndarray, w_b: Sequence[np.ndarray]) -> list[float]:
        """Make w_b + k(w − w_b), `w_b` as they are after it, the best points; returns Σ u_i ℓ_i of each. The data is not read."""
        for a, step, best in zip(self.active.tolist(), k.tolist(), w_b, strict=True):
            self._drifts[a].step(step, self._spread(best), self._scale)
            self._reaches[a].step(step, longest(self._scale, best), self._scale)
        errors = [(self._drifts[a].error, self._reaches[a].error) for a in self.active.tolist()]
        return self._losses_above(self._look(ovr_passes.StepPass, k), errors)

    def doubts(self, k: np.ndarray) -> list[float]:
        """What rounding may add to Σ u_i ℓ_i of each class by such steps, about, before they are taken. The data is not read."""
        most = self._loss.rounding.slope
        return [most * self._drifts[a].ahead(step, self._scale) for a, step in zip(self.active.tolist(), k.tolist(), strict=True)]

    def losses_scored(self, w: Sequence[np.ndarray]) -> list[float]:
        """At least Σ u_i ℓ_i of each class at its w, which is what was scored last. The data is not read."""
        fresh = Drift().fresh
        errors = [(fresh(self._spread(own), self._scale), fresh(longest(self._scale, own), self._scale)) for own in w]
        return self._losses_above(self._look(ovr_passes.LossPass), errors)

    def _losses_above(self, computed: tuple[np.ndarray, np.ndarray], errors: list[tuple[float, float]]) -> list[float]:
        """At least the losses of which (sums, largest shares) were computed; `errors` of scores in all, and of one at most."""
        sums, steepest = computed
        found, self.raises = [], []
        for loss, share, (error, near) in zip(sums.sum(axis=1).tolist(), steepest.tolist(), errors, strict=True):
            rounding = self._loss.rounding._replace(slope=self._loss.steepest(share, near, self._targets))
            above = loss_above(loss, self._scale.rows, self.total_weight, error, rounding)
            found.append(above)
            self.raises.append(above - loss)
        self.raised = max(self.raises)
        return found

    def line_searches(self, A0: np.ndarray, B0: np.ndarray, kinks: Sequence[Kinks] | None = None) -> np.ndarray:
        """The k ≥ 0 (A,) that minimise F of each class along its line, as `line_search` does for one. The data is not read."""
        smooth = self._loss.smooth
        if kinks is None:
            return (minimise_by_newton_along if smooth else minimise_along_lines)(A0, B0, self.C, self)
        if smooth:
            return minimise_in_step(A0.tolist(), B0.tolist(), self.C, lambda k: list(zip(*self.slopes(k), strict=True)), kinks)
        return minimise_along_lines(A0, B0, self.C, KinkedLosses(self, kinks, self.C))

    def slopes(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        slopes, curvatures = self._look(ovr_passes.SlopesPass, k)
        return slopes.sum(axis=1), curvatures.sum(axis=1)

    def slopes_at_zero(self) -> np.ndarray:
        return self._look(ovr_passes.SlopesAtZeroPass).sum(axis=1)

    def histograms(self, low: np.ndarray, width: np.ndarray) -> np.ndarray:
        return self._look(ovr_passes.HistogramsPass, low, width)

    def _look(self, kind: Any, *given: Any) -> Any:
        return self._runner.run(kind(self._loss, self.active, *given))[0]

    def _cuts(self, W: np.ndarray, kappa: np.ndarray, *, first: bool = False) -> list[Cut]:
        sums = self._read(ovr_passes.OvrPass(self._risk, self._grids, W, self.active, kappa, self._bias, first))
        if first:
            self._learn(sums.totals)
        return self._divided_all(sums.a, sums.b)

    def _scored_all(self, w: Sequence[np.ndarray]) -> None:
        """The margins of the active classes' w are known now, or will be."""
        for k, own in zip(self.active.tolist(), w, strict=True):
            self._drifts[k].scored, self._reaches[k].scored = self._spread(own), longest(self._scale, own)

    def _divided_all(self, a: np.ndarray, b: np.ndarray) -> list[Cut]:
        """The cuts of the sums a (D, cuts) and b (1 or 3, cuts); what their rounding is measured by, where it is not b itself."""
        M, loss, scale = self.total_weight, self._risk.rounding, self._scale
        offsets = (b[0] / M).tolist()
        shares, sizes = offsets, offsets
        if len(b) > 1:
            more = 2.0 * self._grids.weight_error(scale.rows)
            shares, sizes = (((sums + more) / M).tolist() for sums in b[1:])
        errors = [
            scale.cut_error(self._grids, scale.length * share, size, M, loss) for share, size in zip(shares, sizes, strict=True)
        ]
        return [Cut(*cut) for cut in zip(by_class(a, M), offsets, errors, strict=True)]


def side_by_side(w: Sequence[np.ndarray]) -> np.ndarray:
    """(D, A) with w[a] in column a; a few rows at a time, which stay in cache."""
    W = np.empty((len(w[0]), len(w)))
    for start in range(0, len(W), _TILE):
        for a, column in enumerate(w):
            W[start : start + _TILE, a] = column[start : start + _TILE]
    return W


def by_class(W: np.ndarray, M: float) -> np.ndarray:
    """(A, D) with W[:, a] / M in row a."""
    out = np.empty(W.shape[::-1])
    for start in range(0, len(W), _TILE):
        np.divide(W[start : start + _TILE].T, M, out=out[:, start : start + _TILE])
    return out
