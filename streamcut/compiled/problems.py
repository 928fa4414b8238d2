"""The records that the kernels of columns take, what these ask of a row in each problem, and losses along lines.

A problem is a column by itself, or a group of columns with a joint loss. Kernels call `Alone` and `Together` as methods of
columns.group (streamcut.compiled.loss). A problem `a` of Alone is column a.

Along the line from a best point to the point scored last the row state has `z` and `z_b` (n, K), the arguments of the losses;
column a is at slots[a]. Sums are compensated pairs, (A, 2) as (total, rounding lost), carried from call to call: the result does
not depend on how rows are split.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.columns import changed_pairs, is_left_out, rest_of_pairs, step_pairs, target_of_pair
from streamcut.compiled.columns_cache import offer_pairs, sweep_pairs, write_pairs
from streamcut.compiled.groups import changed_groups, offer_groups, rest_of_groups, step_groups, sweep_groups, write_groups
from streamcut.compiled.records import weight_of
from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import kernel


class _Problems(NamedTuple):
    """`width` columns are a problem."""

    width: int = 1

    def single(self):
        """Whether there is one column, in the only place."""
        return False

    @staticmethod
    def vectors(W):
        """The vectors (D, A) of columns as kernels take them, a view."""
        return W


class Alone(_Problems):
    """Columns are problems by themselves."""

    __slots__ = ()
    rest_of_row, step_of_row, changes_of_row = rest_of_pairs, step_pairs, changed_pairs
    offer_row, sweep_row, write_row = offer_pairs, sweep_pairs, write_pairs

    def problem_of(self, a):
        return a

    def z_at_zero(self, loss, y, columns, a):
        """z of column a where its score is 0."""
        return 0.0 - loss.offset(target_of_pair(columns.positive, y, a))

    def slope_of(self, loss, y, columns, a, z_b, z, k):
        """The right derivative of the loss of problem a along z_b + k(z − z_b)."""
        target, before = target_of_pair(columns.positive, y, a), z_b[columns.slots[a]]
        delta = z[columns.slots[a]] - before
        here = before + k * delta
        f = loss.dual(here, target)
        if delta < 0.0:
            for kink in range(loss.kinks()):
                if here == loss.kink(kink):
                    f += 1.0
        return -f * delta

    def step_along(self, loss, y, columns, a, z_b, z, k):
        """z_b += k (z − z_b) of problem a. Returns (the loss there, the size of the share there if shares are unbounded)."""
        at, target = columns.slots[a], target_of_pair(columns.positive, y, a)
        here = z_b[at] + k * (z[at] - z_b[at])
        z_b[at] = here
        value = loss.value(here, target)
        return value, abs(loss.dual(here, target)) if loss.unbounded() and value != 0.0 else 0.0


class Single(Alone):
    """One column: compiled without lists and slots of columns, for vectors (D,)."""

    __slots__ = ()

    def single(self):
        return True

    @staticmethod
    def vectors(W):
        return W.reshape(-1)


class Together(_Problems):
    """Groups of `width` columns are problems; the methods are those of Alone."""

    __slots__ = ()
    rest_of_row, step_of_row, changes_of_row = rest_of_groups, step_groups, changed_groups
    offer_row, sweep_row, write_row = offer_groups, sweep_groups, write_groups

    def problem_of(self, a):
        return a // self.width

    def z_at_zero(self, loss, y, columns, a):
        return 0.0

    def slope_of(self, loss, y, columns, a, z_b, z, k):
        at = columns.slots[a * self.width]
        return loss.slope(z_b[at : at + self.width], z[at : at + self.width], k, y)

    def step_along(self, loss, y, columns, a, z_b, z, k):
        first = columns.slots[a * self.width]
        for at in range(first, first + self.width):
            z_b[at] += k * (z[at] - z_b[at])
        return loss.value(z_b[first : first + self.width], y), 0.0


class ActiveColumns(NamedTuple):
    """The A columns in training, as kernels take them: their slots in the row state, float64 numbers of their classes (None:
    targets are numbers), the folds they leave out (None: none), C of their steps, λ (None: 0 for all); and the value of the bias
    feature, whose weight is not penalised by λ if it is `spared`. `group` is Alone or Together of
    streamcut.compiled.problems: together, all but slots and λ are those of a group, and `positive` is not used."""

    slots: np.ndarray
    positive: np.ndarray | None
    left_out: np.ndarray | None
    cost: np.ndarray
    l1: np.ndarray | None
    bias: float
    spared: bool = False
    group: Any = Alone()


class PairState(NamedTuple):
    """What rows remember of columns: shares as codes (n, 2, K), z (n, K); keys (n,), lowest for rows that may move most; and the
    fold of each row (None: there are none).

    known  z is there already, and rows that no step, sum or cache reads may lack their entries
    """

    codes: np.ndarray
    z: np.ndarray
    keys: np.ndarray
    fold: np.ndarray | None
    known: bool = False


class Order(NamedTuple):
    """Order of visits in a batch: `near` of `rows` are scored at a time, ascending, and take steps in the order of `turns`."""

    rows: np.ndarray
    turns: np.ndarray
    near: int
    visits: int


def listing(columns: int) -> type[np.signedinteger]:
    """The type of the numbers of listed columns."""
    return np.int16 if columns <= 1 << 15 else np.int32


class Room(NamedTuple):
    """Scratch space: for `near` rows, the pairs that take steps, with their shares; for one row, numbers of the columns. Rows of
    a cache, one after the other, need the latter alone: `near` 0."""

    counts: np.ndarray
    touched: np.ndarray
    listed: np.ndarray
    shares: np.ndarray
    scores: np.ndarray
    moved: np.ndarray
    steps: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, near: int, columns: int) -> Room:
        pairs, kind = (near, columns), listing(columns)
        scores, steps, before = (np.empty(columns) for _ in range(3))
        lists = np.empty(near, np.int64), np.zeros(near, np.bool_), np.empty(pairs, kind), np.empty(pairs)
        return cls(*lists, scores, np.empty(columns, kind), steps, before)

    @staticmethod
    def bytes_of(near: int, columns: int) -> int:
        return near * (9 + 12 * columns) + 32 * columns


class Added(NamedTuple):
    """What kernels add to: running weights and changes of U (D, A), of b (1 or 3, A), and the increase of the dual (A)."""

    w: np.ndarray
    U: np.ndarray
    b: np.ndarray
    gain: np.ndarray


class Swept(NamedTuple):
    """The sweeps after a pass, of every problem: whether it goes on, the slack of its pairs at bounds; of one sweep the increase
    of the dual, the entries visited, the largest violation; the increase by all sweeps, that with the pass, the work of both; and
    the increase by a sweep after which none pays."""

    on: np.ndarray
    slack: np.ndarray
    gain: np.ndarray
    work: np.ndarray
    largest: np.ndarray
    total: np.ndarray
    rise: np.ndarray
    spent: np.ndarray
    enough: np.ndarray

    @classmethod
    def after(cls, rise: np.ndarray, work: float, enough: np.ndarray) -> Swept:
        """None yet, after a pass that raised the dual by `rise`."""
        A = len(rise)
        gain, work_of_one, largest, total = np.zeros((4, A))
        return cls(
            np.ones(A, np.bool_), np.full(A, np.inf), gain, work_of_one, largest, total,
            np.maximum(rise, 0.0), np.full(A, work), enough,
        )  # fmt: skip


_ROWS = 64  # of which the numbers stay in the first cache level while columns take turns


@kernel
def at_zero(loss, y, columns, z_b):
    """z_b of columns whose best point is w = 0."""
    for i in range(len(y)):
        for a in range(len(columns.slots)):
            z_b[i, columns.slots[a]] = columns.group.z_at_zero(loss, y[i], columns, a)


@kernel
def forget(columns, codes):
    """Reset the shares in both versions of the codes of the columns."""
    for i in range(len(codes)):
        for a in range(len(columns.slots)):
            codes[i, 0, columns.slots[a]] = codes[i, 1, columns.slots[a]] = 0


@kernel
def slopes(loss, y, u, fold, columns, z_b, z, k, out):
    """out (P, 2) += Σ u ℓ′Δ at z_b + k Δ, Δ = z − z_b, for every problem: to the right of a kink, where Δ is not 0."""
    for first in range(0, len(y), _ROWS):
        for a in range(len(k)):
            total, lost = out[a, 0], out[a, 1]
            for i in range(first, min(first + _ROWS, len(y))):
                if not is_left_out(columns.left_out, fold, i, a):
                    found = columns.group.slope_of(loss, y[i], columns, a, z_b[i], z[i], k[a])
                    total, lost = compensated(total, lost, found * weight_of(u, i))
            out[a, 0], out[a, 1] = total, lost


@kernel
def step(loss, y, u, fold, columns, z_b, z, k, out, steepest):
    """z_b += k (z − z_b) in place; out (P, 2) += Σ u ℓ there. `steepest` (P) is raised to the largest |share| there, for losses
    with unbounded shares."""
    for first in range(0, len(y), _ROWS):
        for a in range(len(k)):
            total, lost, most = out[a, 0], out[a, 1], steepest[a]
            for i in range(first, min(first + _ROWS, len(y))):
                weight = weight_of(u, i)
                value, slope = columns.group.step_along(loss, y[i], columns, a, z_b[i], z[i], k[a])
                if not is_left_out(columns.left_out, fold, i, a) and weight != 0.0:
                    total, lost = compensated(total, lost, value * weight)
                    most = max(most, slope)
            out[a, 0], out[a, 1], steepest[a] = total, lost, most
