"""Records that kernels take instead of long lists of arguments: NamedTuples, which Numba unboxes and caches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamcut.jit import inlined


class Rows(NamedTuple):
    """CSR rows as in streamcut.chunk: `data` is None where every value is 1, `u`, their weights, where all are 1."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    y: np.ndarray
    u: np.ndarray | None


class Margins(NamedTuple):
    """What rows remember: z at the best point, z at the scored w, coded dual variables (n, cuts); and their priorities."""

    z_b: np.ndarray
    z: np.ndarray
    codes: np.ndarray
    keys: np.ndarray


class Start(NamedTuple):
    """Where an ascent starts: the w that is scored, κ, how dual variables of the cuts are mixed (cuts,), C, the bias feature."""

    w: np.ndarray
    kappa: float
    parts: np.ndarray
    C: float
    bias: float


class Slots(NamedTuple):
    """Columns of codes, which are slots of the bundle: of the predicted cut and of that of the ascent, and of the two from which
    sums go on (−1: from 0)."""

    predicted: int
    ascent: int
    last_predicted: int
    last_ascent: int


class Visits(NamedTuple):
    """Rows in groups of len(order) are visited in `order`, groups in batches of len(places) in the order of `places`.

    Row 0 of a block is row `begins` of a batch; a row that is free takes up to `steps` steps.
    """

    order: np.ndarray
    places: np.ndarray
    begins: int
    steps: int


class DualSums(NamedTuple):
    """What an ascent moves and adds to: the running w′ (D,), both cuts (2, folds, D), and of both the constants and what their
    rounding is measured by (2, 4), see dual._change_sum."""

    w: np.ndarray
    cuts: np.ndarray
    b: np.ndarray


class Scratch(NamedTuple):
    """Room for a group of rows: their dual variables, and which of them wait for a step (int64)."""

    shares: np.ndarray
    waiting: np.ndarray


class CachedRows(NamedTuple):
    """Copies of rows: CSR, row numbers, priorities, u_i with the sign of the label, ‖x_i‖², dual variables.

    target  of rows whose targets are numbers, otherwise None
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    number: np.ndarray
    key: np.ndarray
    weight: np.ndarray
    square: np.ndarray
    share: np.ndarray
    target: np.ndarray | None

    def part(self, rows: slice) -> CachedRows:
        """These rows; indices and data stay whole."""
        by_row: Any = [None if array is None else array[rows] for array in self[3:]]
        return CachedRows(self.indptr[rows.start : rows.stop + 1], self.indices, self.data, *by_row)


@inlined
def entry(data, t):
    """Value t of CSR rows."""
    return 1.0 if data is None else np.float64(data[t])


@inlined
def weight_of(u, i):
    """u_i."""
    return 1.0 if u is None else u[i]


@inlined
def target_of(target, i):
    """y_i where it is kept; losses that don't ask for it get 0."""
    return 0.0 if target is None else target[i]
