"""A structured task written by the user in Python (Tsochantaridis et al. 2005, margin rescaling), its oracle and its solver."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import scipy.sparse as sp

from streamcut.errors import UsageError
from streamcut.execution.passes import Blocks, Pass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.rounding import CutError, above, gamma
from streamcut.models.certificate import Cut
from streamcut.oracles import row_passes
from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.oracles.row_passes import CutSums, Totals
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution

_ROUNDING = 1e-9
MU = 0.1  # as in OCAS
LEAST = 0.05  # of κ
Features = np.ndarray | tuple[np.ndarray, np.ndarray]  # dense, or (indices, values)


class StructuredTask(Protocol):
    """A user-defined task. An example is the rows of one qid or, without qid, a row:

    x  SciPy CSR array (rows × n_features)      y  float64 (rows,), its labels; an answer ŷ is any value that argmax returns

    Answers score ⟨w, Ψ(x, ŷ)⟩. Training minimises ½‖w‖² + C Σ max_ŷ (loss(y, ŷ) + ⟨w, Ψ(x, ŷ)⟩ − ⟨w, Ψ(x, y)⟩), which needs
    argmax to be exact: answers it misses are missing in the reported objective (the lower bound still holds).
    """

    def size(self, n_features: int) -> int:
        """D, the length of Ψ."""

    def joint_features(self, x: sp.csr_array, y: object) -> Features:
        """Ψ(x, y): float64 (D,), or (indices, values), where an index may be repeated. `y` may be an answer."""

    def loss(self, y: np.ndarray, answer: object) -> float:
        """The cost of `answer` if y is true: at least 0, and 0 for y itself."""

    def argmax(self, w: np.ndarray, x: sp.csr_array, y: np.ndarray | None = None) -> object:
        """The answer with the largest ⟨w, Ψ(x, ŷ)⟩ or, with a y, the largest loss(y, ŷ) + ⟨w, Ψ(x, ŷ)⟩."""


def examples(chunk: Chunk, n_features: int) -> Iterator[tuple[sp.csr_array, np.ndarray]]:
    """(x, y) of every group of rows with one qid, or of every row without qid."""
    data = np.ones(chunk.nnz) if chunk.data is None else chunk.data[chunk.indptr[0] : chunk.indptr[-1]].astype(np.float64)
    indices = chunk.indices[chunk.indptr[0] : chunk.indptr[-1]]
    rows = sp.csr_array((data, indices, chunk.indptr - chunk.indptr[0]), shape=(chunk.n_rows, n_features))
    starts = group_starts(chunk)
    for first, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        yield rows[first:stop], chunk.y[first:stop].copy()


def add_features(out: np.ndarray, factor: float, features: Features) -> None:
    """out += factor · Ψ, in place; Ψ is an array like `out`, or a pair (indices, values)."""
    if isinstance(features, tuple):
        np.add.at(out, features[0], factor * np.asarray(features[1], np.float64))
    else:
        out += factor * np.asarray(features, np.float64)


def product(w: np.ndarray, features: Features) -> float:
    """⟨w, Ψ⟩."""
    return float(w[features[0]] @ features[1]) if isinstance(features, tuple) else float(w @ features)


def length(features: Features) -> float:
    """Upper bound on ‖Ψ‖, up to rounding."""
    return float(np.linalg.norm(features[1] if isinstance(features, tuple) else features, 1))


@dataclass(frozen=True, slots=True)
class StructuredPass(Pass):
    """The cut and the loss at w. The weight of the `totals` counts examples, their only magnitude is Σ ‖Ψ‖ of the added terms."""

    task: StructuredTask
    n_features: int
    w: np.ndarray
    interruptible: ClassVar[bool] = True
    blocks: ClassVar[Blocks] = Blocks(groups=True)

    def begin(self, first_row: int) -> CutSums:
        return CutSums(np.zeros((1, len(self.w))), totals=Totals.nothing(1))

    def visit_chunk(self, sums: CutSums, rows: Rows, chunk: Chunk) -> None:
        assert sums.a is not None
        assert sums.totals is not None
        task, w = self.task, self.w
        for number, (x, y) in enumerate(examples(chunk, self.n_features)):
            worst = task.argmax(w, x, y)
            delta, theirs, ours = float(task.loss(y, worst)), task.joint_features(x, worst), task.joint_features(x, y)
            scores = product(w, theirs), product(w, ours)
            excess = delta + scores[0] - scores[1]
            if not excess >= -_ROUNDING * (1.0 + abs(scores[0]) + abs(scores[1])):
                raise UsageError(
                    f"{type(task).__name__}: argmax(w, x, y) of example {number} from row {chunk.first_row} on gives less than y "
                    f"itself ({excess:.3g} < 0); it must find the largest loss(y, ŷ) + ⟨w, Ψ(x, ŷ)⟩, and loss(y, y) must be 0"
                )
            sums.loss[0] += max(excess, 0.0)
            sums.totals.weight += 1.0
            sums.totals.magnitudes[0] += length(theirs) + length(ours)
            sums.b[0] += delta
            a = sums.a[0]
            add_features(a, 1.0, theirs)
            add_features(a, -1.0, ours)

    merge = staticmethod(row_passes.merge)


class StructuredOracle(DecomposableOracle):
    """F(w) = ½‖w‖² + C Σ over examples of max_ŷ loss(y, ŷ) + ⟨w, Ψ(x, ŷ) − Ψ(x, y)⟩: no row state."""

    def __init__(self, runner: Runner, task: StructuredTask, *, C: float) -> None:
        self._n_features = runner.feed.data.manifest.statistics.n_features
        super().__init__(runner, task, dimension=task.size(self._n_features), C=C, bias=0.0)

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]:
        return self.cut_at(np.zeros(self.dimension) if w is None else w)

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        """One pass. Its sums are ordinary ones: a term is rounded once per term, and D times in a product."""
        sums = self._read(StructuredPass(self._risk, self._n_features, w))
        M = self.total_weight = sums.totals.weight
        a, offset, loss = sums.a[0] / M, float(sums.b[0]) / M, float(sums.loss.sum())
        many = gamma(2.0 * M + self.dimension + 16.0)
        size = float(sums.totals.magnitudes[0]) * (1.0 + many)
        error = many * (size * float(np.linalg.norm(w)) + float(sums.b[0]) + loss)
        return Cut(a, offset, CutError(many * size / M, many * offset)), above(loss, error)


def stabilised(oracle: DecomposableOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """CPA with OCAS's best point, for oracles that return F and a cut at a point but have no line search.

    Problem   min F(w) = ½‖w‖² + C̄ R(w), R the mean risk of an oracle.
    Given     the oracle, a bundle size, a stopping rule.
    Returns   the best point, F there, and a lower bound on min F.
    Stops     when F(w_b) − bound is small enough.

    OCAS (Franc & Sonnenburg 2008) moves its best point to the minimum along the line to the solution of the master problem, and
    cuts a little beyond. That search needs the scores of all answers at both ends; with an argmax alone every point of the line
    costs a pass. So the place is guessed from the previous pass, by slopes known wherever a cut was taken:

        w_b = 0, first cut at 0; κ = 1
        repeat
            solve the master problem: its value is the bound, its solution w
            one pass: F and the cut at w_c = w_b + κ(w − w_b)
            k = where the slope of F along the line would be 0 if it were linear between w_b and w_c
            w_b ← w_c if F is the least so far
            κ ← k + μ(1 − k), or 1 if the bound has stood still: the cut at w itself always moves it

    Passes to 0.1 % of F, of CPA and here, for three small tasks at C = 1: 37 and 24, 25 and 21, 40 and 28; at C = 100: 121 and
    72, 47 and 30, 71 and 56. What else was tried: stabilised.md.

    One pass an iteration, no checkpoints. Raises Interrupted before a solution.
    """
    s, rule = begun(oracle, progress, max_cuts)
    a_b: np.ndarray | None = None  # slope of the cut at w_b

    def iterate() -> None:
        nonlocal a_b
        way = s.w - s.w_b
        w_c = s.w_b + s.k * way
        cut, loss = oracle.cut_at(w_c)
        F, bound, k = oracle.penalty.objective(w_c, oracle.C, loss), s.bound, 1.0
        if a_b is not None:
            here, there = (float(way @ (w + oracle.c_bar * a)) for w, a in ((s.w_b, a_b), (w_c, cut.a)))
            k = guessed_step(here, there, s.k)
        if s.take(w_c, loss, F, oracle.C * oracle.raised):
            a_b = np.array(cut.a)
        s.sharpen(oracle)
        s.improve(cut, rule)
        s.k = 1.0 if s.bound <= bound else max(LEAST, k + MU * (1.0 - k))

    return iterated(s, oracle, progress, rule, iterate)


def guessed_step(first: float, second: float, kappa: float) -> float:
    """The zero in [0, 1] of the straight line through slope `first` at 0 and `second` at `kappa`; 1 if there is none."""
    if second <= first:
        return 1.0 if second <= 0.0 else kappa  # for a convex function only through rounding
    return min(max(-kappa * first / (second - first), 0.0), 1.0)
