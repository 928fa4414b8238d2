"""Losses of a whole labelling: F₁, the precision/recall break-even point, precision and recall at k, errors (Joachims 2005).

    R(w) = max(0, max over labellings y′ of Δ(y′) − (1/m) Σ over rows with y′_i ≠ y_i of y_i s_i)      y_i = ±1, 0 ≤ Δ ≤ 1

is convex and, where the true labelling is allowed, at least the Δ of the labelling that the scores give. With the rate of errors
for Δ it is the mean hinge loss, so C means the same for all of them. (The paper has 2 for 1/m, which makes its C smaller by 4m²
and its weights by 2m.) "prec@k" and "rec@k" allow only labellings with k positives, "prbep" those with as many as there are in
truth. Where k is another number the truth is not among them, and R no longer bounds Δ, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.errors import UsageError
from streamcut.passes import multivariate


@dataclass(frozen=True, slots=True)
class Multivariate:
    """A global risk with one group; the code of a row is 1 for the label `positive`, 0 for every other.

    loss  "f1", "prbep", "prec@k", "rec@k" or "error"; `k` rows for the two that need it
    """

    loss: str
    positive: float
    k: int = 0
    code_type: ClassVar[type] = np.int8
    coefficient_sum: ClassVar[float] = 1.0
    room_bytes: ClassVar[int] = 48  # places before and after sorting, scores, their sums, and what a sort needs

    def encode(self, labels: np.ndarray, starts: np.ndarray, codes: np.ndarray) -> None:
        codes[:] = labels == self.positive

    def sizes(self, codes: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Number of positives times negatives."""
        positives = np.count_nonzero(codes)
        return np.array([positives * (len(codes) - positives)])

    def weights(self, sizes: np.ndarray) -> np.ndarray:
        return np.ones(1)

    def evaluate(
        self, codes: np.ndarray, starts: np.ndarray, weights: np.ndarray, scores: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        positives, negatives = np.flatnonzero(codes == 1), np.flatnonzero(codes == 0)
        positives = positives[np.argsort(scores[positives], kind="stable")]
        negatives = negatives[np.argsort(-scores[negatives], kind="stable")]
        missed, alarms, delta = self._worst(scores[positives], scores[negatives])
        sums = np.zeros((2, 2))
        sums[:, 0] = delta
        out[:] = 0.0
        multivariate.flip(positives[:missed], scores, -1.0 / len(codes), out, sums[0])
        multivariate.flip(negatives[:alarms], scores, 1.0 / len(codes), out, sums[0])
        if sums[0].sum() < 0.0:  # no labelling with k positives is worse than the truth
            out[:] = 0.0
            sums[:] = 0.0
        return sums

    def _worst(self, positives: np.ndarray, negatives: np.ndarray) -> tuple[int, int, float]:
        """(missed, false alarms, Δ) of the labelling that is the maximum."""
        P, m = len(positives), len(positives) + len(negatives)
        if self.loss == "error":
            missed, alarms = multivariate.worst_for_errors(positives, negatives)
            return missed, alarms, (missed + alarms) / m
        if self.loss == "f1":
            missed, alarms = multivariate.worst_for_f1(positives, negatives)
            hits = P - missed
            return missed, alarms, 1.0 - 2.0 * hits / (P + hits + alarms)
        k = P if self.loss == "prbep" else self.k
        full = float(P if self.loss == "rec@k" else k)
        missed, alarms = multivariate.worst_at_k(positives, negatives, k, full)
        return missed, alarms, 1.0 - (P - missed) / full


def rows_of(k: str, n_rows: int) -> int:
    """`k` rows ("100") or a part of `n_rows` ("10%", rounded). Raises UsageError."""
    try:
        rows = round(float(k[:-1]) / 100 * n_rows) if k.endswith("%") else int(k)
    except ValueError:
        raise UsageError(f"k: {k!r} is neither a number of rows (100) nor a part of them (10%)") from None
    if not 1 <= rows <= n_rows:
        raise UsageError(f"k: {k} is {rows:,} of {n_rows:,} rows; it must be 1 at least and all at most")
    return rows
