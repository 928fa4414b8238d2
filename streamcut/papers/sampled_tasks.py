"""Tasks whose cuts can be sampled: the loss of an example at given scores, and what its rows contribute to a cut.

A row has `columns` scores. An example is a row or, where `groups` is true, the rows of one qid. Its worst labelling at scores z
is ŷ_i = argmax Δ(y_i, ŷ) + ⟨w, Ψ(x_i, ŷ) − Ψ(x_i, y_i)⟩; labels are numbered classes, `target` those of y and `path` those of ŷ.
Ψ(x, ŷ) − Ψ(x, y) is a sum of φ(x_t) in some columns over the rows with path ≠ target, and of `dense` numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import multiclass
from streamcut.losses.classes import ClassesRisk
from streamcut.losses.sequence import SequenceRisk


class SampledTask:
    """columns: scores per row; dense: entries of Ψ without a kernel; terms: columns that a row contributes to.

    By default examples are single rows, and all of Ψ is in the kernel.
    """

    groups: ClassVar[bool] = False
    terms: ClassVar[int]

    @property
    def columns(self) -> int:
        raise NotImplementedError

    @property
    def dense(self) -> int:
        return 0

    def targets(self, y: np.ndarray) -> np.ndarray:
        """The class of each label, int32 (n,); −1 for an unknown label."""
        raise NotImplementedError

    def judge(
        self, starts: np.ndarray, target: np.ndarray, z: np.ndarray, dense: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ŷ int32 (n,), loss float64 (S,), Δ float64 (S,)) at scores z (n, columns) and `dense` weights."""
        raise NotImplementedError

    def weights(self, starts: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """u of each example, float64 (S,), from the labels and the weights of its rows."""
        return np.ones(len(y)) if weight is None else weight

    def contribution(self, target: np.ndarray, path: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(columns int32, factors float64), both (n, terms): coefficients of φ(x_t) by column, for rows with path ≠ target.

        By default φ(x) is added to column `path` and subtracted from column `target`.
        """
        return np.stack((path, target), axis=1), np.tile([1.0, -1.0], (len(target), 1))

    def dense_part(self, starts: np.ndarray, target: np.ndarray, path: np.ndarray) -> np.ndarray:
        """float64 (dense,): the dense part of Σ Ψ(x, ŷ) − Ψ(x, y)."""
        return np.zeros(self.dense)


@dataclass(frozen=True, slots=True)
class SampledHinge(SampledTask):
    """Two classes, 1 for the label `positive` and 0 for every other: Ψ(x, y) = ½yφ(x), Δ = 1[ŷ ≠ y], the hinge loss.

    Weights of rows of `positive` are multiplied by `positive_weight`.
    """

    positive: float
    positive_weight: float = 1.0
    terms: ClassVar[int] = 1

    @property
    def columns(self) -> int:
        return 1

    def targets(self, y: np.ndarray) -> np.ndarray:
        return (y == self.positive).astype(np.int32)

    def weights(self, starts, y, weight):
        return SampledTask.weights(self, starts, y, weight) * np.where(y == self.positive, self.positive_weight, 1.0)

    def judge(self, starts, target, z, dense):
        loss = np.maximum(1.0 - (2.0 * target - 1.0) * z[:, 0], 0.0)
        wrong = loss > 0.0
        return np.where(wrong, 1 - target, target).astype(np.int32), loss, wrong.astype(np.float64)

    def contribution(self, target, path):
        return np.zeros((len(target), 1), np.int32), (path - target).astype(np.float64)[:, None]


@dataclass(frozen=True, slots=True)
class SampledMulticlass(ClassesRisk, SampledTask):
    """K classes: Ψ(x, y) is φ(x) in column y, Δ = 1[ŷ ≠ y], the loss of Crammer & Singer."""

    terms: ClassVar[int] = 2

    @property
    def columns(self) -> int:
        return self.classes

    def judge(self, starts, target, z, dense):
        path, loss = np.empty_like(target), np.empty(len(target))
        multiclass.rivals(self.loss, target, z, path)
        multiclass.losses(self.loss, target, z, loss)
        return path, loss, (path != target).astype(np.float64)


@dataclass(frozen=True, slots=True)
class SampledSequence(SequenceRisk, SampledTask):
    """Chains of first order: kernels for the emissions, K² dense transitions, Δ the number of wrong rows."""

    groups: ClassVar[bool] = True
    terms: ClassVar[int] = 2

    @property
    def columns(self) -> int:
        return self.classes

    @property
    def dense(self) -> int:
        return self.classes**2

    def weights(self, starts, y, weight):
        return np.ones(len(starts) - 1)

    def judge(self, starts, target, z, dense):
        path, loss = self.worst(starts, target, z, z, 0.0, dense.reshape(self.classes, -1))
        return path, loss, np.add.reduceat((path != target).astype(np.float64), starts[:-1])

    def dense_part(self, starts, target, path):
        counts = np.zeros((self.classes, self.classes))
        self.count_transitions(starts, target, path, counts)
        return counts.ravel()
