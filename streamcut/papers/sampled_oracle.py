"""The oracle of solvers by sampled cuts: losses of all examples or of a few, and cuts built from a few."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from streamcut.compiled import sampled
from streamcut.compiled.vectors import accumulate
from streamcut.errors import CorruptError
from streamcut.execution.feed import Traffic
from streamcut.execution.passes import Pass
from streamcut.execution.runner import Runner
from streamcut.foundation.chunk import Chunk, concatenate, group_starts, ranges, take
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors
from streamcut.models.checkpoint import StoredCheckpoint
from streamcut.oracles.kernel_columns import fetch
from streamcut.oracles.row_passes import targets
from streamcut.papers.gram_bundle import GramBundle
from streamcut.papers.sampled_passes import CutScores, Examples, Expansion, LossesPass, LossSums, Segment
from streamcut.papers.sampled_proof import Proof, proof, proof_pass, shares_of
from streamcut.papers.sampled_tasks import SampledTask

CANDIDATES = 4  # times the sample: wrong examples kept from a pass, from which samples are drawn
_Kinds = dict[str, type[np.generic]]
_BY_ROW: _Kinds = {"numbers": np.int64, "columns": np.int32, "factors": np.float64, "first": np.int64, "weight": np.float64}
_ARRAYS: _Kinds = {"cuts": np.int64, "ends": np.int64, "constant": np.float64, "dense": np.float64, **_BY_ROW}
_ROUNDS_AT_ONCE = 16  # uniform samples do not depend on w: this many are read together


@dataclass(frozen=True, slots=True)
class SampledCut:
    """The cut R(w) ≥ ⟨a, w⟩ + b, valid for its sample; its value at w; and ⟨a, a_t⟩ with the live cuts, by slot."""

    expansion: Expansion
    b: float
    value: float
    products: dict[int, float]


class SampledOracle:
    """F(w) = ½‖w‖² + C Σ u_i ℓ_i(w) in the space of a kernel, w = −Σ β_t a_t a mixture of cuts of at most `samples` examples.

    Examples are drawn uniformly, regardless of their weights u, which enter the cuts and R = Σ u_i ℓ_i / M, M the sum of the
    weights of all rows.

    weighted     u are not all 1: they are read and summed first
    bias         the kernel gets + bias²: a constant feature, regularised like the others
    keeps_scores all rows keep their scores by each of `max_cuts` cuts (4 bytes a score): what `measure` needs
    evaluations  kernel values computed; `passes` and `traffic` count reads of the data
    """

    def __init__(
        self, runner: Runner, task: SampledTask, kernel: Kernel, *,
        C: float, bias: float, samples: int, max_cuts: int, seed: int, keeps_scores: bool, weighted: bool = False,
    ) -> None:  # fmt: skip
        statistics = runner.feed.data.manifest.statistics
        self.rows = statistics.n_rows
        self.examples = (statistics.groups or 0) if task.groups else self.rows
        self.samples = min(samples, self.examples)
        self.max_cuts = max_cuts
        self.evaluations = 0
        self.passes = 0
        self.traffic = Traffic()
        self._runner, self._task, self._kernel = runner, task, kernel
        self._statistics, self._dimension = statistics, statistics.n_features
        self._bias, self._seed = bias, seed
        self._expansions: dict[int, Expansion] = {}
        self._starts: np.ndarray | None = None
        self._read_ahead: dict[int, Examples] = {}
        self._block = -1  # number of the first uniform sample that was read with the last one
        self.keeps_scores = keeps_scores
        if keeps_scores:
            runner.row_state.add("cached", np.float32, (max_cuts, task.columns))
        self.total_weight = self._summed() if weighted else float(self.rows)
        self.C, self.c_bar = C, C * self.total_weight
        self.begin()

    def begin(self) -> None:
        """Begin an iteration: a checkpoint has the counts of this moment, even if the iteration is broken off."""
        counts = {"passes": self.passes, "evaluations": self.evaluations, "traffic": asdict(self.traffic)}
        self._counted: dict[str, Any] = {**counts, "block": self._block}

    def saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The counts at the start of the iteration and the live cuts, for a checkpoint. Rows are read, and scored, again."""
        if not self._expansions:
            return self._counted, {}
        cuts = list(self._expansions.values())
        fields: dict[str, Any] = {name: np.concatenate([getattr(cut, name) for cut in cuts]) for name in _BY_ROW}
        fields |= {name: np.stack([getattr(cut, name) for cut in cuts]) for name in ("constant", "dense")}
        fields |= {"cuts": list(self._expansions), "ends": np.cumsum([len(cut.numbers) for cut in cuts])}
        arrays = {name: np.ascontiguousarray(fields[name], kind) for name, kind in _ARRAYS.items()}
        return self._counted, arrays

    def restore(self, numbers: dict[str, Any], stored: StoredCheckpoint) -> None:
        """Resume from what `saved` returned, at the start of an iteration. One pass per cut for its scores."""
        arrays = {name: stored[name] for name in _ARRAYS}
        ends, (distinct, index) = arrays["ends"], np.unique(arrays["numbers"], return_inverse=True)
        rows = fetch(self._runner.feed, distinct, Traffic())
        for t, slot in enumerate(arrays["cuts"].tolist()):
            here = slice(0 if t == 0 else ends[t - 1], ends[t])
            support, by_row = take(rows, index[here]), {name: arrays[name][here] for name in _BY_ROW}
            cut = Expansion(rows=support, constant=arrays["constant"][t], dense=arrays["dense"][t], **by_row)
            self._expansions[slot] = cut
            if self.keeps_scores:
                self._read(CutScores(slot, cut, Vectors(self._kernel, support, self._dimension)))
        if numbers["block"] >= 0:
            self._draw_ahead(numbers["block"])
        self.passes, self.evaluations, self.traffic = numbers["passes"], numbers["evaluations"], Traffic(**numbers["traffic"])

    def release(self) -> None:
        """Does nothing: cuts are in memory."""

    def keep(self, slot: int, expansion: Expansion, bundle: GramBundle) -> None:
        """Store `expansion` as the cut in `slot` of the bundle; cuts no longer in the bundle are dropped."""
        self._expansions[slot] = expansion
        self._expansions = {t: self._expansions[t] for t in bundle.slots.tolist()}

    def square(self, expansion: Expansion) -> float:
        """‖a‖²."""
        rows = expansion.rows
        self.evaluations += rows.n_rows**2
        scores = expansion.scores(Vectors(self._kernel, rows, self._dimension), rows)
        return float(_along(scores, expansion).sum() + expansion.dense @ expansion.dense)

    def line(self, bundle: GramBundle, steps: np.ndarray) -> Segment:
        """The points w_b + k (w − w_b), k in `steps`."""
        ends = np.stack((bundle.best, bundle.mixture))
        used = (ends > 0.0).any(axis=0)
        dense = np.stack([self._dense(bundle, mixture) for mixture in ends])
        return Segment(bundle.slots[used], np.ascontiguousarray(ends[:, used]), dense, steps)

    def measure(self, line: Segment, place: int, round_number: int, new: int | None) -> LossSums:
        """One pass: the loss of all rows at the points of a line, and the wrong examples at point number `place`.

        `new`: the slot of a cut that no pass has scored yet.
        """
        added = None
        if new is not None:
            expansion = self._expansions[new]
            added = new, expansion, Vectors(self._kernel, expansion.rows, self._dimension)
            self.evaluations += self.rows * expansion.rows.n_rows
        seed = self._seed * 1_000_003 + round_number
        return self._read(LossesPass(self._task, line, place, added, CANDIDATES * self.samples, seed))

    def wrong(self, sums: LossSums) -> Examples:
        """The examples that a pass found wrong and kept, in row order. They are read again, which counts as a pass."""
        order = np.argsort(sums.first)
        examples = self._fetched(sums.first[order], sums.lengths[order])
        self.passes += 1
        return examples

    def cut_from(
        self, sums: LossSums, wrong: Examples, line: Segment, place: int, bundle: GramBundle, draw: int, round_number: int
    ) -> SampledCut:
        """A cut of examples drawn from the `wrong` ones of a pass; Σ Δ is that of all rows (Algorithm 3, line 19).

        The draw is by their keys, and the sample in row order: neither depends on the order in which the pass met them.
        """
        chosen = np.argsort(sums.keys)
        if len(chosen) > self.samples:
            chosen = chosen[np.random.default_rng([self._seed, round_number, draw]).permutation(len(chosen))[: self.samples]]
        sample = wrong.take(np.sort(np.searchsorted(wrong.numbers[wrong.starts[:-1]], sums.first[chosen])))
        cached = np.asarray(self._runner.rows["cached"][sample.numbers])
        self._runner.row_state.release(0, self.rows)
        path, _, _ = self._task.judge(sample.starts, sample.target, *line.at(float(line.steps[place]), line.ends(cached)))
        live, factor = cached[:, bundle.slots].astype(np.float64), sums.wrong / max(len(chosen), 1)
        return self._cut(sample, path, live, bundle, float(sums.delta.sum()) / self.total_weight, factor)

    def glance(self, bundle: GramBundle, number: int) -> tuple[SampledCut, float]:
        """A cut of uniform sample `number` of all examples, and their mean loss at w (Algorithm 2, lines 12 to 16)."""
        if number not in self._read_ahead:
            self._draw_ahead(number // _ROUNDS_AT_ONCE * _ROUNDS_AT_ONCE)
        sample = self._read_ahead.pop(number)
        live = [self._expansions[t] for t in bundle.slots.tolist()]
        self.evaluations += sample.rows.n_rows * sum(expansion.rows.n_rows for expansion in live)
        vectors = Vectors(self._kernel, sample.rows, self._dimension)
        scores = [expansion.scores_of(vectors, sample.rows.n_rows) for expansion in live]
        cached = np.stack(scores, axis=1) if live else np.empty((sample.rows.n_rows, 0, self._task.columns))
        z = np.empty((sample.rows.n_rows, self._task.columns))
        sampled.mix(cached, np.arange(len(live)), bundle.mixture, z)
        path, loss, delta = self._task.judge(sample.starts, sample.target, z, self._dense(bundle, bundle.mixture))
        factor = self.examples / len(sample)
        share = factor / self.total_weight
        cut = self._cut(sample, path, cached, bundle, float((sample.weight * delta).sum()) * share, factor)
        return cut, float((sample.weight * loss).sum()) * share

    def answer(self, bundle: GramBundle, mixture: np.ndarray) -> tuple[Expansion, np.ndarray]:
        """w of a mixture (T,) of the cuts: its rows, each once and in the order of the data, and their coefficients float64
        (n, columns). Rows of the master problem's solution are among them, with coefficient 0 where w does not use them."""
        live = [
            (self._expansions[t], part)
            for t, part, beta in zip(bundle.slots.tolist(), mixture.tolist(), bundle.mixture.tolist(), strict=True)
            if part > 0.0 or beta > 0.0
        ]
        if not live:
            raise ValueError("w is 0 and has no rows")
        numbers = np.concatenate([expansion.numbers for expansion, _ in live])
        distinct, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        rows = take(concatenate([expansion.rows for expansion, _ in live]), first)
        coefficients = np.zeros((len(distinct), self._task.columns))
        columns = np.concatenate([expansion.columns for expansion, _ in live])
        factors = np.concatenate([-beta * expansion.factors for expansion, beta in live])
        np.add.at(coefficients, (place[:, None], columns), factors)
        constant = self._bias**2 * coefficients.sum(axis=0)
        fields = {
            name: np.concatenate([getattr(expansion, name) for expansion, _ in live])[first] for name in ("first", "weight")
        }
        return Expansion(distinct, rows, columns, factors, constant, self._dense(bundle, mixture), **fields), coefficients

    def prove(self, bundle: GramBundle, support: Expansion, coefficients: np.ndarray) -> Proof:
        """F over all rows of an `answer`, and a lower bound from the master problem's solution. One pass, or Interrupted."""
        shares = shares_of(self._live(bundle, bundle.mixture), self.C)
        dual = np.zeros_like(coefficients)
        for cut, alpha in shares:
            index = np.searchsorted(support.numbers, cut.numbers)
            np.add.at(dual, (index[:, None], cut.columns), -np.sign(cut.factors) * alpha[:, None])
        work = proof_pass(self._task, self._kernel, support, coefficients, dual, shares, self._bias, self._statistics)
        return proof(self._read(work), work, self.C)

    def _cut(
        self, sample: Examples, path: np.ndarray, scores: np.ndarray, bundle: GramBundle, b: float, factor: float
    ) -> SampledCut:
        """The cut of `sample` with the answers `path`, whose examples represent `each` of all; `scores` (n, cuts, columns) are by
        the live cuts."""
        weight = np.repeat(sample.weight, np.diff(sample.starts)) * (factor / self.total_weight)
        differ = np.flatnonzero((path != sample.target) & (weight > 0.0))
        columns, factors = self._task.contribution(sample.target[differ], path[differ])
        factors = factors * weight[differ, None]
        rows = take(sample.rows, differ)
        constant = np.zeros(self._task.columns)
        np.add.at(constant, columns, factors)
        constant *= self._bias**2
        dense = self._task.dense_part(sample.starts, sample.target, path) * (factor / self.total_weight)
        lengths = np.diff(sample.starts)
        first, u = (np.repeat(values, lengths)[differ] for values in (sample.numbers[sample.starts[:-1]], sample.weight))
        expansion = Expansion(sample.numbers[differ], rows, columns, factors, constant, dense, first, u)
        products = {
            slot: float(_along(scores[differ, t], expansion).sum() + dense @ self._expansions[slot].dense)
            for t, slot in enumerate(bundle.slots.tolist())
        }
        along_w = -sum(beta * product for beta, product in zip(bundle.mixture.tolist(), products.values(), strict=True))
        return SampledCut(expansion, b, b + along_w, products)

    def _live(self, bundle: GramBundle, mixture: np.ndarray) -> list[tuple[Expansion, float]]:
        """The cuts of a mixture, with their weights."""
        return [
            (self._expansions[t], part) for t, part in zip(bundle.slots.tolist(), mixture.tolist(), strict=True) if part > 0.0
        ]

    def _dense(self, bundle: GramBundle, mixture: np.ndarray) -> np.ndarray:
        """The dense part of w."""
        dense = np.zeros(self._task.dense)
        for expansion, part in self._live(bundle, mixture):
            dense -= part * expansion.dense
        return dense

    def _find_starts(self) -> np.ndarray:
        """The first rows of examples, and the number of rows; groups need a pass."""
        if self._starts is None:
            self._starts = np.arange(self.examples + 1)
            if self._task.groups:
                starts = [block.first_row + group_starts(block)[:-1] for block in self._blocks(groups=True)]
                self._starts = np.append(np.concatenate(starts), self.rows)
                if len(self._starts) != self.examples + 1:
                    queries = len(self._starts) - 1
                    raise CorruptError(
                        f"{queries:,} queries, but the manifest has {self.examples:,}; see `streamcut info --check`"
                    )
        return self._starts

    def _draw_ahead(self, block: int) -> None:
        """Read the uniform samples from number `block` on."""
        starts = self._find_starts()
        rounds = {}
        for number in range(block, block + _ROUNDS_AT_ONCE):
            rng = np.random.default_rng([self._seed, number])
            rounds[number] = np.sort(rng.choice(self.examples, self.samples, replace=False, shuffle=False))
        wanted = np.unique(np.concatenate(list(rounds.values())))
        everything = self._fetched(starts[wanted], starts[wanted + 1] - starts[wanted])
        self.passes += 1
        self._read_ahead = {number: everything.take(np.searchsorted(wanted, chosen)) for number, chosen in rounds.items()}
        self._block = block

    def _fetched(self, first: np.ndarray, lengths: np.ndarray) -> Examples:
        """The examples with these first rows (increasing) and numbers of rows."""
        numbers, starts = ranges(first, lengths)
        rows = fetch(self._runner.feed, numbers, self.traffic)
        return Examples(
            numbers, starts, rows, targets(self._task, rows, numbers), self._task.weights(starts, rows.y, rows.weight)
        )

    def _summed(self) -> float:
        """Σ u of all examples."""
        sums = np.zeros(2)
        for block in self._blocks():
            accumulate(self._task.weights(np.arange(block.n_rows + 1), block.y, block.weight), sums)
        return float(sums.sum())

    def _blocks(self, *, groups: bool = False) -> Iterator[Chunk]:
        """All rows, one block after the other."""
        feed = self._runner.feed
        yield from feed.blocks(0, self.rows, feed.buffers(), self.traffic, groups=groups)
        self.passes += 1

    def _read(self, work: Pass):
        partial, report = self._runner.run(work)
        self.passes += 1
        self.traffic += report.traffic
        return partial


def _along(scores: np.ndarray, expansion: Expansion) -> np.ndarray:
    """factors · scores of each row (n, columns) in the columns of the expansion."""
    return np.einsum("ke,ke->k", np.take_along_axis(scores, expansion.columns.astype(np.int64), axis=1), expansion.factors)
