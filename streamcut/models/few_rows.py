"""Scores of a handful of rows without compiled code, as a service needs them, one request at a time.

A compiled kernel pays off its start-up, and a matrix its conversion, only over many rows. A single row takes a dozen NumPy calls
on its values. They add products in the kernel's order, so a row has the same score, to the last bit, alone and among others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from streamcut.foundation.chunk import is_sparse

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST = 16  # rows; the kernel is faster for more
Row = tuple[np.ndarray | slice, np.ndarray]  # features, and their values


def few_rows(X: object, n_features: int) -> list[Row] | None:
    """The rows of `X`, if they are few and plain; None: take the general path.

    Plain is an array of numbers, (d,) or (n, d), or a CSR matrix in canonical form, with `n_features` columns.
    """
    if isinstance(X, np.ndarray):
        return _dense(X, n_features)
    return _sparse(X, n_features) if is_sparse(X) and X.format == "csr" else None


def row_scores(rows: list[Row], weights: np.ndarray, constant: np.ndarray | float) -> np.ndarray:
    """⟨w, x⟩ + constant for each row, summed from left to right.

    weights   float64 (d,), or (d, K) for K scores per row with `constant` (K,)
    returns   float64 (n,) or (n, K)
    """
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses scores that are not finite
        return np.array([_score(features, values, weights, constant) for features, values in rows])


def _score(features: np.ndarray | slice, values: np.ndarray, weights: np.ndarray, constant: np.ndarray | float) -> np.ndarray:
    terms = np.empty((len(values) + 1, *weights.shape[1:]))
    terms[0] = constant
    np.multiply(values if weights.ndim == 1 else values[:, None], weights[features], out=terms[1:])
    return np.add.accumulate(terms)[-1]


def _dense(X: np.ndarray, n_features: int) -> list[Row] | None:
    if X.dtype.kind not in "biuf" or X.dtype.itemsize > 8 or X.ndim not in (1, 2) or X.shape[-1] != n_features:
        return None
    rows = X[None, :] if X.ndim == 1 else X
    if not 0 < len(rows) <= MOST or n_features > 4096:  # a wide row is mostly zeros, which the general path skips
        return None
    return [(slice(None), row) for row in rows]


def _sparse(X: csr_array, n_features: int) -> list[Row] | None:
    indices, data = X.indices, X.data
    if not 0 < X.shape[0] <= MOST or X.shape[1] != n_features or data.dtype.kind not in "biuf" or data.dtype.itemsize > 8:
        return None
    starts = X.indptr.tolist()
    if starts[0] != 0 or starts[-1] > min(len(indices), len(data)) or any(a > b for a, b in pairwise(starts)):
        return None
    rows = []
    for start, stop in pairwise(starts):
        features = indices[start:stop]
        if stop > start and not (features[0] >= 0 and features[-1] < n_features and (features[1:] > features[:-1]).all()):
            return None
        rows.append((features, data[start:stop]))
    return rows
