"""What the support vectors of a kernel model prove: the norm of its weights, and the dual point that it claims."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.models.certificate import SHORTER, DualPoint
from streamcut.models.kernel import KernelModel, row_keys
from streamcut.oracles.kernel_columns import squared_norms


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


class KernelClaim:
    """What the rows show of a kernel model: how far rounding may have moved its F, and the point of the dual that it claims.

    The point (DualPoint) is feasible when every support vector with its class is among the rows, whose C_i add up to its Σ α or
    more, and, if the intercept was free, Σ y_i α_i = 0 exactly. Equal rows of one class count as one.
    """

    def __init__(self, model: KernelModel) -> None:
        self._model, rows = model, model.near.moved(model.support_rows)
        self._squares, self._entries = squared_norms(rows), int(np.diff(rows.indptr).max(initial=0))
        self._scores = 0.0
        signed = model.coefficients if model.point is None else model.point.coefficients
        if signed.ndim == 2:  # the claims for wrong classes count; the row's own class then has their sum
            wrong, classes = np.minimum(signed, 0.0), np.argmax(signed, axis=1)
            wrong[np.arange(len(signed)), classes] = 0.0
            signed, alpha = wrong.copy(), -wrong.sum(axis=1)
            signed[np.arange(len(signed)), classes] = alpha
        else:
            classes, alpha = (signed > 0.0).astype(np.int64), np.abs(signed)
        self._coefficients, self._left = signed, dict[tuple[int, tuple[bytes, bytes]], float]()
        for number, key, dual in zip(classes.tolist(), row_keys(model.support_rows), alpha.tolist(), strict=True):
            if dual > 0.0:
                self._left[number, key] = self._left.get((number, key), 0.0) + SHORTER * dual

    def meet(self, chunk: Chunk, classes: np.ndarray, weight: np.ndarray) -> None:
        """Take rows, their classes and their u."""
        rows, model = self._model.near.moved(chunk), self._model
        entries = int(np.diff(rows.indptr).max(initial=0))
        self._scores += float(weight @ self._errors(model.coefficients, squared_norms(rows), entries))
        for number, key, room in zip(classes.tolist(), row_keys(chunk), (model.C * weight).tolist(), strict=True):
            if (number, key) in self._left:
                self._left[number, key] -= room

    @property
    def resolution(self) -> float:
        """The error of F over the rows seen: no loss changes more than twice as much as the scores of its row."""
        return 2.0 * self._model.C * self._scores + 0.5 * self._square_error(self._model.coefficients)

    @property
    def bound(self) -> float:
        """The dual at the point, less what rounding may have done; if it is not feasible 0, which is also a bound."""
        coefficients = self._coefficients
        balanced = not self._model.problem.free or math.fsum(coefficients) == 0.0
        if not balanced or any(left > 0.0 for left in self._left.values()):
            return 0.0
        square = float(kernel_squares(self._model, coefficients).sum())
        return DualPoint(coefficients, np.zeros(0)).value(square, self._square_error(coefficients))

    def _square_error(self, coefficients: np.ndarray) -> float:
        """The error of Σ ‖w_k‖² with these coefficients of the support vectors."""
        sums = np.abs(coefficients).reshape(len(self._squares), -1).sum(axis=1)
        return float(sums @ self._errors(coefficients, self._squares, 0))

    def _errors(self, coefficients: np.ndarray, squares: np.ndarray, entries: int) -> np.ndarray:
        """The errors of scores with these coefficients, of rows with these squared norms and at most so many entries."""
        most, constant = max(entries, self._entries), self._model.problem.constant**2
        return self._model.near.rounding(squares, self._squares, coefficients, most, constant)
