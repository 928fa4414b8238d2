"""What the jobs of linear models of several classes share: bundles as long as K vectors, rows with K scores and shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.plan import MemoryPlan, Needs
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.runner import PassRunner
from streamcut.io.manifest import Manifest, Statistics
from streamcut.jobs.job import identity
from streamcut.jobs.linear import Trainer, bundle_size, cache_wanted, on_few_rows, penalty_needs, threads_wanted
from streamcut.jobs.origins import classes_origins, strategy_of
from streamcut.losses.classes import ClassesLoss
from streamcut.models.certificate import Certificate, Witness
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.oracles.dual.random_order import RandomOrder
from streamcut.solver_table import SolverRecord
from streamcut.solvers.progress import Iteration, Progress
from streamcut.solvers.warm_start import Origin

_LONG = 1 << 22  # numbers in the vectors of all classes: 16 such vectors take 512 MiB
_FEW_CUTS = 8  # for longer ones: sector takes 6 passes against the rest, as with 16
_CACHED = 1.0  # of the rows, when memory is plenty: text of many classes takes 2 passes then, 20 with 0.3


@dataclass(frozen=True)
class ClassesJob(ABC):
    """What is to be computed; see streamcut.jobs.job.Job. `order` is that of the rows of bundle-dca.

    `origins`: where training begins, of the one problem or of each class; None for zero.
    """

    options: TrainOptions
    risk: ClassesLoss
    solver: SolverRecord
    max_cuts: int
    lanes: Lanes
    workers: int
    origins: tuple[Origin, ...] | None = None
    distributable: ClassVar[bool] = True
    task: ClassVar[str] = "multiclass"
    order: ClassVar[RandomOrder]

    @classmethod
    def planned(cls, options: TrainOptions, manifest: Manifest) -> Self:
        statistics, solver, lanes = manifest.statistics, options.record, options.lanes
        labels = several_labels(statistics)
        dimension = (statistics.n_features + (options.bias != 0.0)) * len(labels)
        max_cuts = options.max_cuts or solver.max_cuts or bundle_size(dimension)
        if solver.dual:
            max_cuts = options.max_cuts or (_FEW_CUTS if dimension > _LONG else max_cuts)
            lanes = lanes or 1  # passes of one lane are accelerated
        chosen = plan_lanes(statistics, lanes)
        origins = None if options.warm_start is None else classes_origins(options, manifest, labels)
        workers = min(threads_wanted(options), len(chosen))
        return cls(options, cls.loss_of(options, labels), solver, max_cuts, chosen, workers, origins)

    @classmethod
    @abstractmethod
    def loss_of(cls, options: TrainOptions, labels: tuple[float, ...]) -> ClassesLoss:
        """The loss of rows whose classes have these labels."""

    @property
    def margins(self) -> bool:
        """Whether rows keep scores at the last w and at the best one."""
        return self.solver.margins

    @property
    def at_once(self) -> int:
        """Classes that are trained at a time."""
        return self.risk.classes

    @property
    def share_bytes(self) -> int:
        """Of a row's dual variable of a class in a cut."""
        return 2

    def needs(self, manifest: Manifest) -> Needs:
        """Row state: class and weight, two scores for each class, and the shares of each in the cuts of bundle-dca."""
        statistics, K, solver, share = manifest.statistics, self.at_once, self.solver, self.share_bytes
        own = []
        if block := self.rows_scored(manifest):
            own.append((f"scores of rows in progress, {K} classes", 8 * K * block))
        if solver.dual:
            own.append(("rows put together", self.order.room_bytes(manifest, K)))
        known = 4 + 8 * (statistics.weight_sum is not None)
        features = statistics.n_features + (self.options.bias != 0.0)
        dimension, whole = features * K, features * self.risk.classes
        models = (f"models of {self.risk.classes} classes, of which {K} are trained at a time", 2 * 8 * whole)
        return Needs(
            dimension=dimension,
            max_cuts=self.max_cuts,
            vectors=solver.vectors,
            row_bytes=(16 * K + known) * self.margins + share * K * self.max_cuts * solver.dual,
            more=(*penalty_needs(self.options, dimension), *[models] * (self.risk.classes > K)),
            whole=whole,
            row_cache=cache_wanted(self.options, manifest, self.lanes, part=_CACHED, row_bytes=self.row_bytes(K)),
            per_worker=tuple(own),
            block_rows=self.order.batch_rows(statistics) if solver.dual else 1,
        )

    @abstractmethod
    def rows_scored(self, manifest: Manifest) -> int:
        """Rows of a block whose scores are kept beside the row state."""

    @abstractmethod
    def row_bytes(self, classes: int) -> int:
        """Of a cached row beside its entries."""

    def cache(self, manifest: Manifest, plan: MemoryPlan) -> CacheSize | None:
        """The size of a lane's row cache."""
        return CacheSize.planned(manifest, plan.row_cache, len(self.lanes), self.row_bytes(self.at_once))

    def dual_options(self, manifest: Manifest, plan: MemoryPlan) -> dict[str, Any]:
        """What oracles of dual ascent take beside the others."""
        own = {"cuts": self.max_cuts, "size": self.cache(manifest, plan)}
        return {**own, "sweeps": self.options.sweeps, "seed": self.options.seed}

    def identity(self, fingerprint: str, plan: MemoryPlan) -> dict[str, Any]:
        found = {"max_cuts": self.max_cuts, "lanes": len(self.lanes), "row_cache": plan.row_cache}
        begin = None if self.origins is None else [origin.digest() for origin in self.origins]
        return identity(self.options, fingerprint, **found, warm_start=begin)

    def solve(self, runner: PassRunner, progress: Progress, plan: MemoryPlan) -> Model:
        return self.trainer(runner, plan).train(self.options.C, progress)

    @abstractmethod
    def trainer(self, runner: PassRunner, plan: MemoryPlan) -> Trainer:
        """For one C, or λ, after another."""

    def warm_up(self, manifest: Manifest) -> None:
        y = np.resize(self.risk.labels, 8)
        on_few_rows(manifest, y, self.workers, replace(self, max_cuts=4, origins=None).solve)


def several_labels(statistics: Statistics) -> tuple[float, ...]:
    """The labels, increasing. Raises BadInputError when there are fewer than two, or too many to be classes."""
    found = statistics.labels
    if found is None:
        raise BadInputError("the data has more than 4096 different labels: these are no classes; choose another --task")
    if len(found) == 1:
        raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(found)):g}; training needs two classes")
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Proved:
    """What training leaves: weights W (D, K), and of the one problem or of each class what is proved, by which cut."""

    W: np.ndarray
    certificates: tuple[Certificate, ...]
    witnesses: tuple[Witness, ...]
    history: list[Iteration]


def multiclass_model(
    found: Proved, options: TrainOptions, labels: tuple[float, ...], manifest: Manifest, *, C: float, l1: float, **fixed: Any
) -> MulticlassModel:
    """The model of this C and λ; `fixed` are parameters that the run has decided."""
    W = found.W
    d = manifest.statistics.n_features
    return MulticlassModel(
        weights=W[:d],
        intercepts=W[d] * options.bias if options.bias else np.zeros(len(labels)),
        bias=float(options.bias),
        labels=labels,
        C=float(C),
        strategy=strategy_of(options),
        certificates=found.certificates,
        witnesses=tuple(w.reduced(c.c_bar, l1) for w, c in zip(found.witnesses, found.certificates, strict=True)),
        l1=l1,
        task="multiclass",
        solver=options.chosen_solver,
        history=[asdict(iteration) for iteration in found.history],
        parameters={**options.as_dict(), "C": float(C), "l1": l1, **fixed},
        fingerprint=manifest.fingerprint,
    )
