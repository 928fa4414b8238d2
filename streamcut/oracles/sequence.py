"""The oracle of labelled sequences: cuts, losses and steps of a first-order chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.bundle.line_search import minimise_by_tangents
from streamcut.errors import BadInputError
from streamcut.execution.runner import Runner
from streamcut.losses.sequence import SequenceRisk
from streamcut.oracles.decomposable import Cut, DecomposableOracle
from streamcut.oracles.sequence_passes import LinePass, ScorePass


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
        self._read(ScorePass(*self._common(0.0), w=w, cut=False))

    def score_and_cut(self, w: np.ndarray, kappa: float) -> Cut:
        """One pass: the scores of w, and the cut at w_b + κ(w − w_b), whose scores follow row by row."""
        self._scored(w)
        return self._cut(self._read(ScorePass(*self._common(kappa), w=w)))

    def cut_between(self, mu: float) -> Cut:
        """One pass: the cut at w_b + μ(w − w_b) from known scores."""
        return self._cut(self._read(ScorePass(*self._common(mu))))

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

    def _at_w(self, w: np.ndarray, first: bool = False) -> ScorePass:
        risk, grids, dimension, bias, _, _ = self._common(0.0)
        return ScorePass(risk, grids, dimension, bias, 1.0, self._transitions(w), w=w, at_w=True, first=first)

    def _common(self, kappa: float) -> tuple:
        return self._risk, self._grids, self.dimension, self._bias, kappa, self._between(kappa)

    def _between(self, k: float) -> np.ndarray:
        """Transitions of w_b + k(w − w_b), rounded as w_b itself will be."""
        return self._best + k * (self._target - self._best)

    def _transitions(self, w: np.ndarray) -> np.ndarray:
        K = self._risk.classes
        return w[-K * K :].reshape(K, K).copy()
