"""The oracle of `bundle-dca` for labelled sequences: two cuts a pass, one from a block-coordinate Frank-Wolfe step per sequence.

Row state: that of streamcut.oracles.sequence, and `shares` (K,): the weight of each class for the row in the mixture of
labellings of its sequence, less 1 for its own (streamcut.compiled.viterbi.ascend).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from streamcut.compiled import records, vectors, viterbi
from streamcut.execution.feed import BLOCK_ROWS
from streamcut.execution.passes import Blocks
from streamcut.execution.row_state import Rows
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, group_starts
from streamcut.foundation.rounding import CutError, gamma
from streamcut.io.manifest import Statistics
from streamcut.losses.sequence import SequenceRisk
from streamcut.models.certificate import Cut
from streamcut.models.kept import Kept
from streamcut.oracles.sequence import SequenceOracle, SequenceScorePass, SequenceSums

VECTORS = 7  # dense vectors of a worker: two cuts, the running w, a buffer for a step, and the cuts of a waiting lane
_BATCH_NNZ = 1 << 21  # of sequences in random order: with a quarter, conll2000 has a gap of 8.0 % after 9 passes, not 7.0 %


def batch_rows(statistics: Statistics) -> int:
    """Rows whose sequences are visited in random order; depends on the whole data, not on shards."""
    return min(max(2, _BATCH_NNZ * statistics.n_rows // max(statistics.nnz, 1)), BLOCK_ROWS)


@dataclass
class Mixtures(Kept):
    """The mixtures of sequences: `starts` (S), their first rows, `edges` (S, K, K), `losses` (S); w = −C̄a of the cut (a, b)."""

    starts: np.ndarray
    edges: np.ndarray
    losses: np.ndarray
    w: np.ndarray
    kept = ("starts", "edges", "losses", "w")


class SequenceDualOracle(SequenceOracle):
    """A sequence oracle that also does dual ascent. With L lanes steps are L times smaller, as if each saw L copies of itself:
    their sum never lowers the dual objective (Ma et al. 2015, CoCoA+, σ′ = L).
    """

    kept = (*SequenceOracle.kept, "_held")

    def __init__(self, runner: Runner, risk: SequenceRisk, *, C: float, bias: float, seed: int = 0) -> None:
        super().__init__(runner, risk, C=C, bias=bias, keep_margins=True)
        self._seed = seed
        K = risk.classes
        runner.row_state.add("shares", np.float64, (K,))
        self._batch = batch_rows(runner.feed.data.manifest.statistics)
        S = self._sequences or 0
        self._held = Mixtures(np.zeros(S, np.int64), np.zeros((S, K, K)), np.zeros(S), np.zeros(self.dimension))

    def start(self, w: np.ndarray | None = None) -> tuple[Cut, float]:
        cut = super().start(w)
        self._held.starts[:] = np.flatnonzero(self._runner.rows["begins"])
        return cut

    def score_and_ascend(self, w: np.ndarray, kappa: float) -> tuple[Cut, Cut]:
        """`score_and_cut`, and in the same pass a step for every sequence: also the cut of their mixtures after it."""
        self._scored(w)
        scale = self.C * len(self._runner.lanes)
        keys = np.random.default_rng((self.passes, self._seed)).permutation(len(self._held.losses))
        sums = self._read(
            SequenceAscentPass(*self._common(kappa), w=w, held=self._held, keys=keys, batch=self._batch, scale=scale)
        )
        M = self.total_weight
        a = sums.dual / M
        self._held.w = -self.c_bar * a
        loss = float(self._held.losses.sum())
        return self._cut(sums), Cut(a, loss / M, self._error(loss / M))

    def _error(self, offset: float) -> CutError:
        """Error of the cut of the mixtures.

        The counts of a mixture are off by a few roundings of 1 per change, at most one a pass, and they are added
        up over all rows in an ordinary sum. A row counts 2 at most, each of its classes less.
        """
        part = gamma(16.0 * (self.passes + 1) + self._scale.rows)
        return CutError(part * 2.0 * self._risk.classes * self._scale.length, part * (offset + 1.0))


@dataclass(slots=True)
class AscentSums(SequenceSums):
    """Also the sum of the other cut, `dual` (D,), and for a lane the weights changed by its steps, and buffers."""

    dual: np.ndarray | None = None
    w: np.ndarray | None = None
    moves: np.ndarray | None = None
    seen: np.ndarray | None = None
    touched: np.ndarray | None = None


@dataclass(frozen=True, slots=True)
class SequenceAscentPass(SequenceScorePass):
    """A `SequenceScorePass` that also makes a step for each sequence. It changes their mixtures in place: it is not pure.

    Batches, sequences that begin in so many rows of a block, come in stored order, those of a batch by their `keys` (S,).
    """

    _: KW_ONLY
    held: Mixtures
    keys: np.ndarray
    batch: int
    scale: float
    interruptible: ClassVar[bool] = False

    @property
    def pure(self) -> bool:
        return False

    @property
    def blocks(self) -> Blocks:
        """Blocks hold whole batches of sequences."""
        return Blocks(groups=True, together=self.batch)

    def begin(self, first_row: int) -> AscentSums:
        D, K = self.dimension, self.risk.classes
        features = D // K - K  # with the bias
        moves, seen, touched = np.empty((features, K)), np.zeros(features + 1, np.int64), np.empty(features, np.int32)
        return AscentSums(np.zeros((1, D)), dual=np.zeros(D), w=self.held.w.copy(), moves=moves, seen=seen, touched=touched)

    def visit_chunk(self, sums: AscentSums, rows: Rows, chunk: Chunk) -> None:  # type: ignore[override]
        SequenceScorePass.visit_chunk(self, sums, rows, chunk)
        assert sums.w is not None
        assert sums.dual is not None
        assert sums.moves is not None
        assert sums.seen is not None
        assert sums.touched is not None
        starts, K = group_starts(chunk), self.risk.classes
        first = int(np.searchsorted(self.held.starts, chunk.first_row))
        here = slice(first, first + len(starts) - 1)
        weights, out = (records.ChainWeights(w[: -K * K].reshape(-1, K), w[-K * K :].reshape(-1, K)) for w in (sums.w, sums.dual))
        n = chunk.n_rows
        order = np.lexsort((self.keys[here], starts[:-1] // self.batch))
        buffers = np.empty((n, K)), np.empty((n, K), np.int16), np.empty(n, np.int32), np.empty(len(starts) - 1)
        viterbi.ascend(
            records.Rows(chunk.indptr, chunk.indices, chunk.data, rows["t"], None),
            self.bias,
            starts,
            order,
            self.scale,
            weights,
            records.Held(rows["shares"], self.held.edges[here], self.held.losses[here]),
            out,
            records.ChainBuffers(sums.moves, sums.seen, sums.touched, *buffers),
        )

    def finish(self, sums: AscentSums, rows: Rows, first_row: int) -> None:  # type: ignore[override]
        sums.w = sums.moves = sums.seen = sums.touched = None

    @staticmethod
    def merge(total: AscentSums, part: AscentSums) -> AscentSums:  # type: ignore[override]
        SequenceScorePass.merge(total, part)
        assert total.dual is not None
        vectors.add(total.dual, part.dual)
        return total
