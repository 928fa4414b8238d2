"""What the support vectors of a kernel model prove: the norm of its weights, and the dual point that it claims."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import gamma
from streamcut.models.certificate import SHORTER, DualPoint
from streamcut.models.kernel import KernelModel
from streamcut.oracles.kernel_columns import squared_norms


class KernelDoubt:
    """How far rounding of kernel values may have moved the results computed for a model: scores of the rows seen, ‖w‖²."""

    def __init__(self, model: KernelModel) -> None:
        self._model, rows = model, model.near.moved(model.support_rows)
        self._squares, self._entries = squared_norms(rows), int(np.diff(rows.indptr).max(initial=0))
        self._constant = model.problem.constant**2
        self._scores = 0.0

    def meet(self, chunk: Chunk, weight: np.ndarray) -> None:
        """Take rows, whose losses are weighted by u."""
        rows = self._model.near.moved(chunk)
        entries = max(self._entries, int(np.diff(rows.indptr).max(initial=0)))
        self._scores += float(weight @ self._of(self._model.coefficients, squared_norms(rows), entries))

    def square(self, coefficients: np.ndarray) -> float:
        """The error of Σ ‖w_k‖² with these coefficients of the support vectors."""
        return float(np.abs(coefficients).reshape(len(self._squares), -1).sum(axis=1) @ self._of(coefficients, self._squares))

    @property
    def resolution(self) -> float:
        """The error of F over the rows seen: no loss changes more than twice as much as the scores of its row."""
        return 2.0 * self._model.C * self._scores + 0.5 * self.square(self._model.coefficients)

    def _of(self, coefficients: np.ndarray, squares: np.ndarray, entries: int = 0) -> np.ndarray:
        near, entries = self._model.near, max(entries, self._entries)
        return near.rounding(squares, self._squares, coefficients, entries, self._constant)


def kernel_squares(model: KernelModel, coefficients: np.ndarray) -> np.ndarray:
    """‖w_k‖² of every score with these coefficients of the support vectors, from them alone, float64 (K,).

    The constant term of sampled cuts is a feature like any other; the intercept of other solvers is free.
    """
    vectors = model.support_rows
    shape = model.n_support, model.scores_per_row
    other = replace(model, coefficients=coefficients, intercept=np.zeros(shape[1]) if coefficients.ndim == 2 else 0.0)
    c = coefficients.reshape(shape)
    squares = (c * other.score_chunk(vectors).reshape(shape)).sum(axis=0)
    return squares + (model.problem.constant * c.sum(axis=0)) ** 2


class ClaimedPoint:
    """The point of the dual that a kernel model claims (DualPoint): feasible, if the rows say so.

    That is when every support vector with its class is among the rows, whose C_i add up to its Σ α or more, and, if the
    intercept was free, Σ y_i α_i = 0 exactly. Equal rows of one class count as one.
    """

    def __init__(self, model: KernelModel) -> None:
        self._model = model
        point = model.point
        own = model.coefficients if point is None else point.coefficients
        if own.ndim == 2:  # the claims for wrong classes count; the row's own class then has their sum
            wrong, classes = np.minimum(own, 0.0), np.argmax(own, axis=1)
            rows = np.arange(len(own))
            wrong[rows, classes] = 0.0
            own, alpha = wrong.copy(), -wrong.sum(axis=1)
            own[rows, classes] = alpha
        else:
            classes, alpha = (own > 0.0).astype(np.int64), np.abs(own)
        self._point = DualPoint(own, np.zeros(0))
        self._free_intercept = model.problem.free
        X, self._left = model.support, dict[tuple[int, bytes, bytes], float]()
        entries = _entries(X.indptr, X.indices, X.data)
        for (indices, values), number, each in zip(entries, classes.tolist(), alpha.tolist(), strict=True):
            if each > 0.0:
                key = number, indices, values
                self._left[key] = self._left.get(key, 0.0) + SHORTER * each

    def meet(self, chunk: Chunk, classes: np.ndarray, upper: np.ndarray) -> None:
        """Take rows, their classes, and the C_i of each."""
        entries = _entries(chunk.indptr, chunk.indices, chunk.data)
        for (indices, values), number, room in zip(entries, classes.tolist(), upper.tolist(), strict=True):
            key = number, indices, values
            if key in self._left:
                self._left[key] -= room

    def value(self) -> float:
        """The dual there; if the point is not feasible 0, which is also a bound."""
        coefficients = self._point.coefficients
        balanced = not self._free_intercept or math.fsum(coefficients) == 0.0
        if not balanced or any(left > 0.0 for left in self._left.values()):
            return 0.0
        return claimed_value(self._model, self._point)


def claimed_value(model: KernelModel, point: DualPoint) -> float:
    """The dual at a point of the support vectors of `model`, less what rounding may have done."""
    square = float(kernel_squares(model, point.coefficients).sum() + point.dense @ point.dense)
    more = gamma(len(point.dense) + 16) * float(point.dense @ point.dense)
    return point.value(square, KernelDoubt(model).square(point.coefficients) + more)


def _entries(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray | None) -> Iterator[tuple[bytes, bytes]]:
    """The features and values of each row, in a form that is equal for equal rows."""
    columns = np.ascontiguousarray(indices, np.int64)
    values = np.ones(len(indices)) if data is None else np.ascontiguousarray(data, np.float64)
    for start, stop in pairwise(indptr.tolist()):
        yield columns[start:stop].tobytes(), values[start:stop].tobytes()
