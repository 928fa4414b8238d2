"""Several classes at once, the Crammer-Singer or the softmax loss, linear: by cutting planes or bundle-dca."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

from streamcut.config import TrainOptions
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.row_state import SPILLED_BYTES
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest
from streamcut.jobs.linear import Trainer, certificate, solver_of
from streamcut.jobs.several_classes import ClassesJob, Proved, multiclass_model
from streamcut.losses.classes import ClassesLoss
from streamcut.losses.crammer_singer import CrammerSinger
from streamcut.losses.softmax import Softmax
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.crammer_singer import MulticlassOracle
from streamcut.oracles.dual.crammer_singer import ORDER, MulticlassDualOracle
from streamcut.oracles.dual.crammer_singer_cache import row_bytes
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.oracles.dual.softmax import SoftmaxDualOracle
from streamcut.oracles.softmax import SoftmaxOracle
from streamcut.solvers import warm_start
from streamcut.solvers.progress import Solution

_HELD = 5  # vectors: w, w′, where steps begin and both cuts; between passes three, and two in files that are looked at
_HELD_SWEPT = 7  # and what two sweeps over cached rows have moved, or both cuts change by then
_BESIDE = 3  # numbers of a feature, whatever the classes: its size, in the first pass another one, and the sum of both
_FILES = 2  # that are looked at at a time; a window beside what is read may be in memory


@dataclass(frozen=True)
class MulticlassJob(ClassesJob):
    """A ClassesJob of the Crammer-Singer loss. `oracles` are those without dual ascent, and with it.

    far    vectors that no pass needs are in scratch files (streamcut.bundle.shelf)
    swept  there is a row cache nevertheless
    """

    far: bool = False
    swept: bool = False
    order: ClassVar[RandomOrder] = ORDER
    oracles: ClassVar[tuple[Any, Any]] = MulticlassOracle, MulticlassDualOracle

    @classmethod
    def loss_of(cls, options: TrainOptions, labels: tuple[float, ...]) -> ClassesLoss:
        return CrammerSinger(labels)

    def rows_scored(self, manifest: Manifest) -> int:
        return max(shard.rows for shard in manifest.shards) if not self.solver.margins else 0

    def row_bytes(self, classes: int) -> int:
        return row_bytes(classes)

    def with_files(self, manifest: Manifest) -> Iterator[Self]:
        """The same with vectors in scratch files and one lane of dual ascent, then without a row cache, too.

        Only what the options allow.
        """
        options, dual = self.options, self.solver.dual
        lanes = plan_lanes(manifest.statistics, options.lanes or 1) if dual else self.lanes
        if not self.margins or options.l1 or self.origins is not None or (dual and len(lanes) > 1):
            return
        there, cached = replace(self, far=True, lanes=lanes, workers=1), dual and options.sweeps > 0 and options.row_cache != "0"
        if cached:
            yield replace(there, swept=True)
        if not cached or options.row_cache == "auto":
            yield there

    def needs(self, manifest: Manifest) -> Needs:
        known = super().needs(manifest)
        if not self.far:
            return known
        features = known.dimension // self.risk.classes
        own = (f"{_BESIDE} numbers of each feature, windows of {_FILES} files", 8 * _BESIDE * features + _FILES * SPILLED_BYTES)
        held, cache = (_HELD_SWEPT, known.row_cache) if self.swept else (_HELD, (0, 0))
        return replace(known, held=held, row_cache=cache, more=(*known.more, own))

    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer:
        options, origin = self.options, None if self.origins is None else self.origins[0]
        common: dict[str, Any] = {"C": options.C, "bias": options.bias}
        begin: Any = None
        oracle: Any  # what bundle-dca takes for its DualOracle has the same methods
        if self.solver.dual:
            oracle = self.oracles[1](runner, self.risk, **common, **self.dual_options(runner.feed.data.manifest, plan))
            begin = origin and partial(warm_start.dual, origin, oracle, self.max_cuts)
        else:
            oracle = self.oracles[0](runner, self.risk, **common, keep_margins=self.solver.margins)
            begin = origin and partial(warm_start.started, origin, oracle, self.max_cuts, margins=self.solver.margins)
        solve = solver_of(options, oracle, max_cuts=self.max_cuts)
        model = partial(self._model, oracle=oracle, manifest=runner.feed.data.manifest, row_cache=plan.row_cache)
        return Trainer(oracle, solve, model, begin, options.l1)

    def _model(
        self, solution: Solution, C: float, *, oracle: MulticlassOracle, manifest: Manifest, row_cache: int
    ) -> MulticlassModel:
        options, W = self.options, solution.w.reshape(-1, self.risk.classes).copy()  # the next of a path takes solution.w over
        oracle.shelf.release()
        witness = replace(solution.witness, a=oracle.shelf.take(solution.witness.a))
        found = Proved(W, (certificate(solution, oracle, options),), (witness,), solution.history)
        fixed: dict[str, Any] = {"lanes": len(self.lanes), **({"row_cache": f"{row_cache}B"} if self.solver.dual else {})}
        return multiclass_model(found, options, self.risk.labels, manifest, C=C, l1=oracle.penalty.l1, **fixed)


@dataclass(frozen=True)
class SoftmaxJob(MulticlassJob):
    """A ClassesJob of the softmax loss."""

    oracles: ClassVar[tuple[Any, Any]] = SoftmaxOracle, SoftmaxDualOracle

    @classmethod
    def loss_of(cls, options: TrainOptions, labels: tuple[float, ...]) -> ClassesLoss:
        return Softmax(labels)
