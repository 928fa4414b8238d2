"""The oracle of labelled sequences: cuts, losses and steps of a first-order chain; its passes take blocks of whole sequences,
whose rows are scored one by one and labelled together."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from streamcut.bundle.line_search import minimise_by_tangents
from streamcut.compiled import multiclass
from streamcut.errors import BadInputError, CorruptError
from streamcut.execution.passes import Blocks, Pass
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.rounding import Grids
from streamcut.losses.sequence import SequenceRisk
from streamcut.models.certificate import Cut
from streamcut.oracles import row_passes
from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.oracles.row_passes import CutSums, Totals, targets

_ROWS = 1024  # rows moved at a time


@dataclass(slots=True)
class SequenceSums(CutSums):
    """Also the number of sequences."""

    sequences: int = 0


def _merge(total: SequenceSums, part: SequenceSums) -> SequenceSums:
    row_passes.merge(total, part)
    total.sequences += part.sequences
    return total


@dataclass(frozen=True, slots=True)
class SequenceScorePass(Pass):
    """Scores at `w` and, with `cut`, the cut at z_b + κ(z − z_b), where transitions weigh `transitions`. `at_w`: the cut and the
    loss at w itself, without row state of a best point.

    `first` also fills `begins` and `t`, and counts sequences and rows. w None: the scores are there (OCAS's second pass).
    """

    risk: SequenceRisk
    grids: Grids
    dimension: int
    bias: float
    kappa: float
    transitions: np.ndarray
    _: KW_ONLY
    w: np.ndarray | None = None
    cut: bool = True
    at_w: bool = False
    first: bool = False
    interruptible: ClassVar[bool] = True

    @property
    def blocks(self) -> Blocks:
        return Blocks(groups=True)

    def begin(self, first_row: int) -> SequenceSums:
        features = self.dimension // self.risk.classes - self.risk.classes
        totals = Totals.nothing(features) if self.first else None
        return SequenceSums(np.zeros((1, self.dimension)) if self.cut else None, totals=totals)

    def visit_chunk(self, sums: SequenceSums, rows: Rows, chunk: Chunk) -> None:
        K, entries, starts = self.risk.classes, (chunk.indptr, chunk.indices, chunk.data), group_starts(chunk)
        target = rows["t"] if self.w is None else targets(self.risk, chunk)
        if sums.totals is not None:
            sums.totals.add(chunk, None, float(chunk.n_rows), self.bias, self.grids)
            sums.sequences += len(starts) - 1
            if "t" in rows:
                rows["t"][:] = target
                rows["begins"][starts[:-1]] = 1
        z = rows["z"] if "z" in rows else np.empty((chunk.n_rows, K))
        if self.w is not None:
            multiclass.scores(*entries, self.w[: -K * K].reshape(-1, K), self.bias, z)
            finite = np.isfinite(z).all(axis=1)
            if not finite.all():
                row = chunk.first_row + int(np.argmin(finite)) + 1
                raise CorruptError(f"row {row}: a score is not finite; run `streamcut info --check --read-data`")
        if sums.a is None:
            return
        path, excess = self.risk.worst(starts, target, z if self.at_w else rows["z_b"], z, self.kappa, self.transitions)
        if self.at_w:
            self.risk.add(excess, sums.loss)
        emissions, transitions = sums.a[0, : -K * K].reshape(-1, K), sums.a[0, -K * K :].reshape(K, K)
        multiclass.scatter(*entries, target, path, self.bias, self.grids.vector, emissions)
        self.risk.count_transitions(starts, target, path, transitions)
        sums.b[0] += float(np.count_nonzero(path != target))

    merge = staticmethod(_merge)


@dataclass(frozen=True, slots=True)
class LinePass(row_passes.RowPass):
    """[[loss, rounding lost], [its derivative in k, …]] at z_b + k(z − z_b), which becomes z_b if `step`.

    `transitions` are those at k, `slopes` their derivative.
    """

    risk: SequenceRisk
    k: float
    transitions: np.ndarray
    slopes: np.ndarray
    step: bool = False
    blocks: ClassVar[Blocks] = Blocks(groups=True)

    row_arrays: ClassVar[tuple[str, ...]] = ("z", "z_b", "t", "begins")

    def begin(self, first_row: int) -> np.ndarray:
        return np.zeros((2, 2))

    def visit_rows(self, sums: np.ndarray, rows: Rows) -> None:
        starts = np.append(np.flatnonzero(rows["begins"]), len(rows["t"]))
        z_b, z, k = rows["z_b"], rows["z"], self.k
        if self.step:
            for first in range(0, len(z), _ROWS):  # temporaries for all rows would be as large as the scores
                here = slice(first, first + _ROWS)
                z_b[here] += k * (z[here] - z_b[here])
            k = 0.0
        excess, slope = self.risk.along_line(starts, rows["t"], z_b, z, k, self.transitions, self.slopes)
        self.risk.add(excess, sums[0])
        self.risk.add(slope, sums[1])

    def merge(self, total: np.ndarray, part: np.ndarray) -> np.ndarray:
        for line, other in zip(total, part, strict=True):
            self.risk.add(other, line)
        return total


class SequenceOracle(DecomposableOracle):
    """F(w) = ½‖w‖² + C Σ over sequences of ℓ (streamcut.losses.sequence); M, the unit of reported gaps, is the number of rows.

    w is flat: emissions (D, K), D = d or d + 1 with a bias, the K numbers of a feature adjacent; then transitions (K, K).
    It is the `SmoothLoss` of streamcut.bundle.line_search: with the scores of w_b and w in the row state, the loss at any point
    between them takes one Viterbi run per sequence, and reads no data.

    keep_margins  rows keep 16 K + 5 bytes: what a line search needs
    """

    kept: tuple[str, ...] = (*DecomposableOracle.kept, "guess", "_best", "_target")

    def __init__(self, runner: Runner, risk: SequenceRisk, *, C: float, bias: float, keep_margins: bool) -> None:
        statistics = runner.feed.data.manifest.statistics
        K = risk.classes
        dimension = (statistics.n_features + (bias != 0.0)) * K + K * K
        super().__init__(runner, risk, dimension=dimension, C=C, bias=bias, width=K)
        self.guess = 1.0
        self._sequences = statistics.groups
        longest = statistics.n_rows - (statistics.groups or 1) + 1
        self._scale = replace(
            self._scale,
            row_entries=self._scale.row_entries + 4 * longest,  # two paths, along which numbers are summed
            length=self._scale.length + 4.0,  # a wrong label changes two transitions of either path
        )
        self._best, self._target = np.zeros((K, K)), np.zeros((K, K))  # transitions of w_b and of the w scored last
        if keep_margins:
            runner.row_state.add("begins", np.int8)
            runner.row_state.add("t", np.int32)
            for name in ("z", "z_b"):
                runner.row_state.add(name, np.float64, (K,))

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]:
        """One pass at w (None: 0): its cut and Σ ℓ. Raises BadInputError when a sequence lies in two shards."""
        w = np.zeros(self.dimension) if w is None else w
        sums = self._read(self._at_w(w, first=True))
        if sums.sequences != self._sequences:
            raise BadInputError(
                f"{self._sequences:,} sequences (qid) were read as {sums.sequences:,} pieces: some are split between shards; "
                "convert the data again"
            )
        self._learn(sums.totals)
        return self._cut(sums), self._loss_at(w, sums.loss)

    def cut_at(self, w: np.ndarray) -> tuple[Cut, float]:
        sums = self._read(self._at_w(w))
        return self._cut(sums), self._loss_at(w, sums.loss)

    def score(self, w: np.ndarray) -> None:
        """One pass: the scores of w, for the line search."""
        self._scored(w)
        self._read(SequenceScorePass(*self._common(0.0), w=w, cut=False))

    def score_and_cut(self, w: np.ndarray, kappa: float) -> Cut:
        """One pass: the scores of w, and the cut at w_b + κ(w − w_b), whose scores follow row by row."""
        self._scored(w)
        return self._cut(self._read(SequenceScorePass(*self._common(kappa), w=w)))

    def cut_between(self, mu: float) -> Cut:
        """One pass: the cut at w_b + μ(w − w_b) from known scores."""
        return self._cut(self._read(SequenceScorePass(*self._common(mu))))

    def at(self, k: float) -> tuple[float, float]:
        """(Σ ℓ, its slope in k) at w_b + k(w − w_b). The data is not read."""
        slopes = self._target - self._best
        sums = self._runner.run(LinePass(self._risk, k, self._between(k), slopes))[0]
        return float(sums[0].sum()), float(sums[1].sum())

    def line_search(self, A0: float, B0: float, more: Any = None) -> float:
        """A k ≥ 0 that nearly minimises F(w_b + k(w − w_b)). The data is not read."""
        return minimise_by_tangents(A0, B0, self.C, self)

    def step(self, k: float, w_b: np.ndarray) -> float:
        self._best = self._between(k)
        self.guess = k
        nothing = np.zeros_like(self._best)
        loss = float(self._runner.run(LinePass(self._risk, k, self._best, nothing, step=True))[0][0].sum())
        self._drift.step(k, self._spread(w_b), self._scale)
        return self._loss_above(loss, self._drift.error)

    def _spread(self, w: np.ndarray) -> float:
        K = self._risk.classes
        return super()._spread(w) + 2.0 * self._scale.rows * float(np.abs(w[-K * K :]).max())

    def _scored(self, w: np.ndarray) -> None:
        super()._scored(w)
        self._target = self._transitions(w)

    def _at_w(self, w: np.ndarray, first: bool = False) -> SequenceScorePass:
        risk, grids, dimension, bias, _, _ = self._common(0.0)
        return SequenceScorePass(risk, grids, dimension, bias, 1.0, self._transitions(w), w=w, at_w=True, first=first)

    def _common(self, kappa: float) -> tuple:
        return self._risk, self._grids, self.dimension, self._bias, kappa, self._between(kappa)

    def _between(self, k: float) -> np.ndarray:
        """Transitions of w_b + k(w − w_b), rounded as w_b itself will be."""
        return self._best + k * (self._target - self._best)

    def _transitions(self, w: np.ndarray) -> np.ndarray:
        K = self._risk.classes
        return w[-K * K :].reshape(K, K).copy()
