"""Sequence labelling with a first-order chain, margin rescaled by the number of wrong labels (Altun et al. 2003, svm_hmm):

    ℓ(x, y) = max over labellings ŷ of #{t: ŷ_t ≠ y_t} + s(x, ŷ) − s(x, y),    s(x, y) = Σ_t z_t,y_t + Σ_t T[y_t−1, y_t]

for a sequence of rows with scores z_t (K,) and transition weights T (K, K). Without transitions that is the sum over its rows of
the Crammer-Singer loss, and C means the same in both tasks: the price of a wrong row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.compiled import vectors, viterbi
from streamcut.losses.classes import ClassesRisk


@dataclass(frozen=True, slots=True)
class SequenceRisk(ClassesRisk):
    """Class k has the label labels[k]; `starts` (S + 1) are the rows where the sequences of a block begin, and their number."""

    def worst(
        self, starts: np.ndarray, target: np.ndarray, z_b: np.ndarray, z: np.ndarray, kappa: float, transitions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ŷ int32 (n,), ℓ float64 (S,)) at scores z_b + κ(z − z_b)."""
        return self._paths(starts, target, z_b, z, kappa, transitions, 1.0)

    def best(self, starts: np.ndarray, z: np.ndarray, transitions: np.ndarray) -> np.ndarray:
        """The labelling with the highest score, int32 (n,)."""
        return self._paths(starts, np.zeros(len(z), np.int32), z, z, 0.0, transitions, 0.0)[0]

    def along_line(
        self, starts: np.ndarray, target: np.ndarray, z_b, z, k: float, transitions: np.ndarray, slopes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """(ℓ, dℓ/dk), float64 (S,), at z_b + k(z − z_b); `transitions` are those at k, `slopes` their derivative."""
        excess, slope = np.empty(len(starts) - 1), np.empty(len(starts) - 1)
        viterbi.along_line(starts, target, z_b, z, k, transitions, slopes, excess, slope)
        return excess, slope

    def count_transitions(self, starts: np.ndarray, target: np.ndarray, path: np.ndarray, out: np.ndarray) -> None:
        """out (K, K) += transitions of `path` − those of `target`, in place: whole numbers, exact in any order."""
        viterbi.count_transitions(starts, target, path, out)

    @staticmethod
    def add(values: np.ndarray, sums: np.ndarray) -> None:
        """sums (total, rounding lost) += Σ values, in place."""
        vectors.accumulate(values, sums)

    @staticmethod
    def _paths(starts, target, z_b, z, kappa, transitions, augment) -> tuple[np.ndarray, np.ndarray]:
        path, excess = np.empty(len(z), np.int32), np.empty(len(starts) - 1)
        back = np.empty(z.shape, np.int16)
        viterbi.best_paths(starts, target, z_b, z, kappa, transitions, augment, back, path, excess)
        return path, excess
