"""The records that the kernels of columns take (streamcut.compiled.columns)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from streamcut.compiled.problems import Alone


class Places(NamedTuple):
    """The A columns in training, as kernels take them: their places in the row state, float64 numbers of their classes (None:
    targets are numbers), the folds they leave out (None: none), C of their steps, λ (None: 0 for all); and the value of the bias
    feature, whose weight is not penalised by λ if it is `spared`. `group` is Alone or Together of
    streamcut.compiled.problems: together, all but places and λ are those of a group, and `positive` is not used."""

    places: np.ndarray
    positive: np.ndarray | None
    left_out: np.ndarray | None
    cost: np.ndarray
    l1: np.ndarray | None
    bias: float
    spared: bool = False
    group: Any = Alone()


class Pairs(NamedTuple):
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
    the increase by a sweep that is not worth another."""

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
