"""From sums over rows to cuts of the mean loss, of several blocks of rows at once."""

from __future__ import annotations

import numpy as np

from streamcut.losses.loss import Loss
from streamcut.rounding import Grids, RowScale


def cuts_of_sums(
    a: np.ndarray, b: np.ndarray, M: float, scale: RowScale, grids: Grids, loss: Loss
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Vectors (K, D), constants (K,) and errors (K, 2) of K cuts, whose sums on `grids` are to be divided by M.

    a (K, folds, D) is used up; b (K, 4) as streamcut.compiled.dual has them. `scale`: of the rows of one cut.
    """
    if a.shape[1] > 1:
        a[:, 0] += a[:, 1]
    a[:, 0] /= M
    shares = sizes = offsets = b[:, :2].sum(axis=1) / M
    if loss.sized():
        more = 2.0 * grids._replace(fine_weight=0.0).weight_error(scale.rows)  # they are on coarse grids
        shares, sizes = (b[:, 2:].T + more) / M
    errors = scale.cut_error(grids, scale.length * shares, sizes, M, loss.rounding)
    return a[:, 0], offsets, np.stack(errors, axis=1)
