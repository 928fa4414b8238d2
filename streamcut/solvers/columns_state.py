"""The state of column training between two passes. With the row state it is complete, and hence also the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from streamcut.bundle.intercept import Interval
from streamcut.compiled import columns_vectors as vectors
from streamcut.foundation.rounding import CutError
from streamcut.models.certificate import Cut, StopReason
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.models.kept import Kept
from streamcut.oracles.columns import ColumnsOracle
from streamcut.oracles.columns_passes import constants
from streamcut.solvers.progress import Iteration, Values

_WINDOW, _LEAST = 4, 8  # passes by which a kind is judged; its least number
# Of the gap, by the first plain pass with a smooth loss (0.03 and less with text, 0.09 and less dna, 0.06 to 0.7 a9a, which
# acceleration suits), and by any two
_FIRST, _LEFT = 0.1, 0.4


@dataclass(slots=True)
class Guard:
    """The other kind takes over when four passes leave more than (1 − 4/k) of the gap, after k passes of a kind: slower than 1/k.

    k is at least 8. Accelerated passes at their best leave (1 − 4/k)². Plain passes of a smooth loss may leave no more than
    _FIRST, then _LEFT in two.

    first   σ of the first accelerated pass; 1: there are none
    plain   whether the next pass is plain
    gaps    after each pass of this kind, the first one after the pass before it
    smooth  whether the loss is
    runs    how often a kind was slow
    kinks   whether the loss has some: runs then become longer, accelerated ones more
    steady  the kind never changes
    """

    first: float
    plain: bool
    gaps: list[float] = field(default_factory=list)
    smooth: bool = False
    runs: int = 0
    kinks: bool = False
    steady: bool = False

    @property
    def solves(self) -> bool:
        """Whether the next pass solves for cached rows at once."""
        return self.plain and (self.runs > 0 or (self.first < 1.0 and not self.smooth))

    def hands_over(self, gap: float) -> bool:
        """After a pass that left this gap: whether the next one is of the other kind."""
        if self.steady:
            return False
        self.gaps.append(gap)
        k = len(self.gaps)
        longer = 0 if not self.kinks else self.runs // 2 if self.plain else self.runs
        least, window, left = _LEAST * (1 + longer), _WINDOW, 1.0 - _WINDOW / k
        if self.plain and self.smooth and self.first < 1.0:
            least, window, left = (3, 2, _LEFT) if k > 2 or self.runs else (2, 1, _FIRST)
        if k < least or gap <= left * self.gaps[-1 - window]:
            return False
        self.runs += 1
        if self.first == 1.0:
            return False
        self.gaps, self.plain = [gap], not self.plain
        return True


_VECTORS = ("y", "best", "U", "G", "partner")
_NUMBERS = ("b", "offsets", "partner_offsets")


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """The result of a column: w (D,), F there and the part added for rounding, the bound and its proof.

    began, trace  its first iteration; F and the bound in that and those after it
    """

    w: np.ndarray
    primal: float
    raised: float
    bound: float
    proof: Cut
    c_bar: float
    reason: StopReason
    began: int = 0
    trace: tuple[tuple[float, float], ...] = ()


@dataclass(slots=True)
class Line:
    """State of an active column: F at its best point, the part added for rounding; bound; the error of G; its next pass.

    taken   subtracted from the bound for rounding
    guard   selects the kind of the next pass: a plain one starts from the weights of the shares, with σ = 1
    sigma  σ of the next pass
    held    (w, F, raised) of a better point, if rounding has raised F since
    solved  scored by the next pass in place of y: the w that solves for cached rows
    from_model  whether `solved` are the weights of a model: they become the best point as they are
    within  the proved interval of the optimal intercept, if it is free
    partner_error  of the partner of the newest cut
    pull    pull of the shares on it after the last pass; it then moved by `times` that
    began   its first iteration; trace: F and the bound in that and those after it
    """

    guard: Guard
    sigma: float
    F: float = np.inf
    raised: float = 0.0
    bound: float = 0.0
    taken: float = 0.0
    error: CutError = CutError(0.0, 0.0)  # noqa: RUF009 - it is immutable
    k: float = 1.0
    held: tuple[np.ndarray, float, float] | None = None
    solved: np.ndarray | None = None
    within: Interval | None = None
    from_model: bool = False
    partner_error: CutError = CutError(0.0, 0.0)  # noqa: RUF009 - it is immutable
    pull: float = 0.0
    times: float = 1.0
    began: int = 0
    trace: list[tuple[float, float]] = field(default_factory=list)

    @property
    def best(self) -> float:
        return self.F if self.held is None else min(self.F, self.held[1])

    @property
    def gap(self) -> float:
        return self.best - self.bound

    @property
    def values(self) -> Values:
        """The quantities that change from pass to pass."""
        raised = self.raised if self.held is None or self.held[1] > self.F else self.held[2]
        unproved = self.gap - 2.0 * (self.taken + raised)
        return Values(self.F, self.bound, self.taken + self.raised, unproved)


@dataclass(slots=True, eq=False)
class State(Kept):
    """Vectors (D, A) of the active columns: `y` where the next pass starts, `best` points, `U` and `G`; b of U
    (1 or 3, P), offsets (P); a Line a problem. With a free intercept, `partner` (D, A), else (0, A), and partner_offsets (P): the
    latest U that pulled on it the other way. `answers` of the columns that have left, by number. With an l1, which leaves the
    points `scored` by the last pass fewer weights than `best`, these until the next pass.

    The P problems are columns, or groups of `width` columns: a vector of one is its columns, flat.
    """

    y: np.ndarray
    best: np.ndarray
    U: np.ndarray
    G: np.ndarray
    b: np.ndarray
    offsets: np.ndarray
    partner: np.ndarray
    partner_offsets: np.ndarray
    lines: list[Line]
    answers: dict[int, Answer] = field(default_factory=dict)
    width: int = 1
    scored: np.ndarray | None = None
    kept = (*_VECTORS, *_NUMBERS, "lines", "answers")

    @classmethod
    def at_zero(cls, oracle: ColumnsOracle, problems: int) -> State:
        """The state of so many problems before any pass; they have no lines yet."""
        width = oracle.risk.width
        y, best, U, G = (np.zeros((oracle.dimension, problems * width)) for _ in range(4))
        partner = np.zeros((oracle.dimension * oracle.free, problems * width)), np.zeros(problems)
        return cls(y, best, U, G, constants(oracle.risk.loss, problems), np.zeros(problems), *partner, [], width=width)

    def of(self, vectors: np.ndarray, a: int) -> np.ndarray:
        """The columns of problem a, (D, width), a view."""
        return vectors[:, a * self.width : (a + 1) * self.width]

    def each(self, numbers: np.ndarray) -> np.ndarray:
        """(A,) numbers of columns from those of problems."""
        return np.repeat(numbers, self.width)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """(n, P) sums over the columns (n, A) of problems."""
        return values.reshape(len(values), -1, self.width).sum(axis=2)

    def _replace(self, new: Callable[[str, np.ndarray], np.ndarray]) -> None:
        """Put new(name, array) in the place of each array, one after the other."""
        for name in (*_VECTORS, *_NUMBERS):
            setattr(self, name, new(name, getattr(self, name)))

    def join(self, new: State) -> None:
        """Add columns at the end, whose lines are to follow. Arrays are extended one after the other."""
        self._replace(lambda name, array: np.concatenate([array, getattr(new, name)], axis=-1))

    def keep(self, chosen: np.ndarray) -> None:
        """Keep only these columns. Arrays are compacted one after the other."""
        stay = (chosen[:, None] * self.width + np.arange(self.width)).reshape(-1)

        def chosen_of(name: str, array: np.ndarray) -> np.ndarray:
            if name in _NUMBERS:
                return array[..., chosen]
            vectors.choose(array, stay, out := np.empty((len(array), len(stay))))
            return out

        self._replace(chosen_of)
        self.lines = [self.lines[a] for a in chosen.tolist()]

    @classmethod
    def restored(cls, stored: StoredCheckpoint, oracle: ColumnsOracle) -> State:
        """The saved state, bit for bit. Raises CorruptError for anything else."""
        with stored.restoring():
            record = stored.record["state"]["solver"]
            s = cls.at_zero(oracle, len(record["lines"]))
            s.restore(record, stored)
            s.answers = {int(column): answer for column, answer in s.answers.items()}
            return s

    def proof(self, a: int, M: float) -> Cut:
        """G of column a as a cut of its mean loss, M its row weight; and the interval of its free intercept, if it has one."""
        slope, b, line = self.of(self.G, a).reshape(-1) / -M, float(self.offsets[a]) / M, self.lines[a]
        if line.within is None:
            return Cut(slope, b, line.error)
        if not line.within.bounded:
            return Cut.none(len(slope) - 1)
        return Cut(slope[:-1].copy(), *line.within.settled(b, line.error, float(slope[-1])))


def history_of(answers: Sequence[Answer], history: list[Iteration]) -> list[Iteration]:
    """The iterations of these columns, with sums over them alone."""
    first = min(answer.began for answer in answers)
    last = max(answer.began + len(answer.trace) for answer in answers)
    iterations = []
    for number in range(first, last):
        at = [answer.trace[min(max(number - answer.began, 0), len(answer.trace) - 1)] for answer in answers if answer.trace]
        primal, bound = (sum(values) for values in zip(*at, strict=True))
        iterations.append(replace(history[number], primal=primal, lower_bound=bound, gap=primal - bound))
    return iterations
