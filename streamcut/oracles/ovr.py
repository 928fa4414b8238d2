"""What one-vs-rest training sees of the data: cuts, losses and steps of many classes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from streamcut.execution.runner import PassRunner
from streamcut.losses.classes import ClassesLoss
from streamcut.oracles import ovr_passes
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.decomposable import Cut, row_scale
from streamcut.rounding import Drift

_TILE = 1024  # features whose numbers of all classes stay in cache


class OvrOracle(MulticlassOracle):
    """F_k(w) = ½‖w‖² + C Σ u_i max(0, 1 ∓ ⟨w, x_i⟩) for each class k, w of length `features`, d or d + 1 with a bias feature.

    `active` (A) are the classes that are trained; it is also their `LossesAlongLines`. `c_bar` is that of each class.
    """

    def __init__(self, runner: PassRunner, risk: ClassesLoss, *, C: float, bias: float) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True)
        self.features = self.dimension // risk.classes
        self.active = np.arange(risk.classes)
        self._scale, self._width = row_scale(runner.feed.data.manifest.statistics, bias), 1
        self._drifts = [Drift() for _ in range(risk.classes)]

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        numbers, arrays = super().saved()
        return {**numbers, "drifts": [asdict(drift) for drift in self._drifts]}, arrays

    def restore(self, numbers: dict[str, Any], fill: Callable[[str, np.ndarray, Callable[[], None]], None]) -> None:
        super().restore(numbers, fill)
        self._drifts = [Drift(**drift) for drift in numbers["drifts"]]

    def start_all(self) -> list[Cut]:
        """One pass at w = 0: the cut of each class there; sets `total_weight`."""
        zeros = np.zeros(len(self.active))
        return self._cuts(np.zeros((self.features, len(zeros))), zeros, first=True)

    def score_and_cut_all(self, w: Sequence[np.ndarray], kappa: np.ndarray) -> list[Cut]:
        """One pass: the margins of each active class's w, and its cut at w_b + κ(w − w_b)."""
        self._scored_all(w)
        return self._cuts(side_by_side(w), kappa)

    def step_all(self, k: np.ndarray, w_b: Sequence[np.ndarray]) -> list[float]:
        """Make w_b + k(w − w_b), `w_b` as they are after it, the best points; returns Σ u_i ℓ_i of each. The data is not read."""
        losses = self._runner.run(ovr_passes.StepPass(self.active, k))[0].sum(axis=1)
        found, raised = [], 0.0
        for a, step, best, loss in zip(self.active.tolist(), k.tolist(), w_b, losses.tolist(), strict=True):
            drift = self._drifts[a]
            drift.step(step, self._spread(best), self._scale)
            found.append(self._loss_above(loss, drift.error))
            raised = max(raised, self.raised)
        self.raised = raised
        return found

    def slopes_at_zero(self) -> np.ndarray:
        return self._runner.run(ovr_passes.SlopesPass(self.active))[0].sum(axis=1)

    def histograms(self, low: np.ndarray, width: np.ndarray) -> np.ndarray:
        return self._runner.run(ovr_passes.HistogramsPass(self.active, low, width))[0]

    def _cuts(self, W: np.ndarray, kappa: np.ndarray, *, first: bool = False) -> list[Cut]:
        sums = self._read(ovr_passes.OvrPass(self._risk, self._grids, W, self.active, kappa, self._bias, first))
        if first:
            self._learn(sums.totals)
        return self._divided_all(sums.a, sums.b)

    def _scored_all(self, w: Sequence[np.ndarray]) -> None:
        """The margins of the active classes' w are known now, or will be."""
        for k, own in zip(self.active.tolist(), w, strict=True):
            self._drifts[k].scored = self._spread(own)

    def _divided_all(self, a: np.ndarray, b: np.ndarray) -> list[Cut]:
        """The cuts of the sums a (D, cuts) and b (cuts)."""
        M, loss = self.total_weight, self._risk.rounding
        offsets = (b / M).tolist()
        errors = [self._scale.cut_error(self._grids, self._scale.length * one, one, M, loss) for one in offsets]
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
