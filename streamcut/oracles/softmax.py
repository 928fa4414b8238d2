"""What a solver sees of data with K classes under the softmax loss."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from streamcut.foundation.rounding import EPSILON, gamma
from streamcut.oracles import softmax_passes
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.decomposable import Cut

_WHOLE = 1.0 + 2.0**-40  # Σ u of M, whatever grid that was summed on


class SoftmaxOracle(MulticlassOracle):
    """F(W) = R(W) + C Σ u_i (log Σ_y exp⟨w_y, x_i⟩ − ⟨w_{y_i}, x_i⟩); else as a MulticlassOracle."""

    kinds: ClassVar[Any] = softmax_passes

    @property
    def _smooth(self) -> bool:
        return True

    def slopes(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvatures of Σ u_i ℓ_i at each w_b + k(w − w_b)."""
        slopes, curvatures = zip(*(self._look("SlopesPass", float(each)) for each in k), strict=True)
        return np.sum(slopes, axis=1), np.sum(curvatures, axis=1)

    def _divided(self, a: np.ndarray, b: np.ndarray) -> Cut:
        """As that of a DecomposableOracle; b says nothing of ‖a‖, but Σ u / M = 1 does.

        A row's own coefficient is a sum over the other classes, with as many roundings; its constant has numbers about 1 in it.
        """
        M, risk = self.total_weight, self._risk
        a[0] /= M
        offset = float(b.sum()) / M
        size = self._scale.length * _WHOLE * (1.0 + risk.classes * EPSILON)
        error = self._scale.cut_error(self._grids, size, abs(offset) + _WHOLE, M, risk.rounding)
        return Cut(a[0], offset, error._replace(slope=error.slope + gamma(risk.classes) * size))
