"""`train`: from a data set and options to a model with its certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.dual_oracle import DualOracle
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import Lanes, plan_lanes
from streamcut.execution.oracle import LinearOracle
from streamcut.execution.plan import MemoryPlan, plan_memory
from streamcut.execution.row_cache import CacheSize
from streamcut.execution.row_state import RowState, scratch_folder
from streamcut.execution.runner import Interrupted, PassRunner, Runner
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Manifest, Statistics
from streamcut.io.memory import MemoryDataset
from streamcut.io.stores.structure import first_problem
from streamcut.machine import available_cpus, memory_limit, resident_bytes
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.checkpoint import Checkpoints
from streamcut.models.linear import LinearModel
from streamcut.risks.hinge import Hinge
from streamcut.solvers import bundle_dca, cpa, ocas
from streamcut.solvers.progress import Observer, Progress, Solution, StoppingRule
from streamcut.units import parse_size

if TYPE_CHECKING:
    from streamcut.execution.dask_runner import DaskRunner

_DCA_LANE_NNZ = 1 << 25
_DCA_VECTORS = 6  # dense vectors of a worker of bundle-dca: its w′, two cuts, a lane ahead, and two for sweeps over cached rows
_CACHED = 0.3  # of the rows, when memory is plenty
_WARM_UP_CACHE = 1 << 20
_BUNDLE_NUMBERS = 16 << 20  # the default bundle holds at most so many float64 (128 MiB)


def train(
    data: str | os.PathLike | Dataset,
    *,
    on_iteration: Observer | None = None,
    on_plan: Callable[[MemoryPlan], None] | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    **options: Any,
) -> LinearModel:
    """Train a linear SVM for two classes: min ½‖w‖² + C Σ u_i max(0, 1 − y_i⟨w, x_i⟩).

    data             path of a store, an opened one, or a MemoryDataset
    task             "auto" or "binary"
    C                loss of a row, as in LIBLINEAR and scikit-learn
    solver, cut      "auto" (= "ocas"), "ocas" with "predicted" or "exact" cuts, "cpa", "bundle-dca"
    bias             value of a constant, regularised feature; 0 = none
    tol              stop when gap ≤ tol·C·Σu_i (units of mean loss); 0 or None = off
    tol_relative     and when gap ≤ tol_relative·F(w); 0 or None = off
    target, max_passes, max_time   stop at this objective, after so many passes, after so many seconds
    positive_label   this label against all others; default: the larger of two
    positive_weight  factor on the weights of rows with the positive label
    max_cuts         size of the bundle; default: as many as 128 MiB hold, 20 to 1000
    lanes            rows are summed in so many fixed ranges; default: from the size of the data
    workers, scheduler   threads (default: one a processor), or "sync" for none; "local-cluster", the address of a Dask scheduler
                     or a distributed.Client: processes of a Dask cluster
    deadline         seconds that a Dask cluster may be without workers
    memory           "4GB", "50%" or "auto": ceiling on the resident memory of this process
    scratch          folder for the row state when it does not fit or on Dask, where all machines share it (default: TMPDIR,
                     else /var/tmp)
    row_cache        bundle-dca: "2GB", a part of the data ("30%"), or "auto": memory for the rows that matter most; "0" = none
    sweeps           bundle-dca: at most so many over cached rows after each pass
    checkpoint       a folder for checkpoints, or a CheckpointOptions, which also resumes
    stop             asked after every block of rows: once it is true, the best model so far is returned
    on_iteration     called with each solvers.progress.Iteration; on_plan: called with the memory plan before any work

    Raises UsageError for bad options or the checkpoint of another run, BadInputError for data without two classes,
    MemoryBudgetError when `memory` cannot be kept, CorruptError for damaged data, DiskFullError when `scratch` is too small,
    ClusterLostError when a Dask cluster is gone, KeyboardInterrupt when `stop` says so before there is a model.
    Ctrl-C raises KeyboardInterrupt as ever, without a checkpoint.
    """
    unknown = sorted(set(options) - set(TrainOptions.__dataclass_fields__))
    if unknown:
        raise UsageError(f"train has no option {', '.join(unknown)}")
    scheduler: Any = options.get("scheduler")
    if hasattr(scheduler, "scheduler_info"):  # a distributed.Client
        options["scheduler"] = scheduler.scheduler.address
    chosen = TrainOptions(**options)
    dataset = _opened(data)
    statistics = dataset.manifest.statistics
    risk, labels, rest = _hinge(statistics, chosen)
    run = _Run.planned(chosen, statistics, risk)
    run.warm_up(dataset.manifest)
    dimension = statistics.n_features + (chosen.bias != 0.0)
    vectors = _DCA_VECTORS if run.solver == "bundle-dca" else 1
    row_bytes = run.row_bytes(statistics)
    budget, scratch = memory_limit(chosen.memory), scratch_folder(chosen.scratch)
    rule = StoppingRule(chosen.tol, chosen.tol_relative, chosen.target, chosen.max_passes, chosen.max_time)
    progress = Progress(rule, on_iteration, stop=stop or (lambda: False))
    if isinstance(checkpoint, str):
        checkpoint = CheckpointOptions(checkpoint)
    with ExitStack() as stack:
        runner: Runner | DaskRunner
        if chosen.distributed:
            try:
                from streamcut.execution import dask_runner
            except ModuleNotFoundError as error:
                raise UsageError(f"--scheduler {chosen.scheduler}: {error}; run pip install 'streamcut[dask]'") from None

            cluster = stack.enter_context(dask_runner.connect(scheduler, workers=run.workers, deadline=chosen.deadline))
            cluster.prepare(dataset, scratch, run.warm_up)
            needs = dask_runner.Needs(dataset.manifest, run.lanes, dimension, run.max_cuts, row_bytes, vectors)
            plan = cluster.plan(needs, budget=budget)
            runner = dask_runner.DaskRunner(cluster, dataset, run.lanes, scratch=scratch, stop=progress.stop)
        else:
            plan = plan_memory(
                dataset.manifest,
                budget=budget,
                base=resident_bytes(),
                dimension=dimension,
                max_cuts=run.max_cuts,
                workers=run.workers,
                row_bytes=row_bytes,
                in_memory=isinstance(dataset, MemoryDataset),
                vectors=vectors,
                row_cache=run.cache_wanted(dataset.manifest),
            )
            row_state = RowState(statistics.n_rows, scratch if plan.spilled else None)
            runner = Runner(Feed(dataset, plan.pinned), run.lanes, run.workers, row_state=row_state, stop=progress.stop)
        stack.enter_context(runner)
        run = replace(run, row_cache=plan.row_cache)
        if on_plan is not None:
            on_plan(plan)
        if checkpoint is not None:
            progress.checkpoints = stack.enter_context(Checkpoints(checkpoint, run.identity(dataset.manifest.fingerprint)))
        try:
            solution, c_bar = run.solve(runner, progress)
        except Interrupted:
            raise KeyboardInterrupt("training was stopped before it had a model") from None
        peak = resident_bytes("VmHWM") + (cluster.peak() if chosen.distributed else 0)
    resources = {"budget": plan.budget, "planned": plan.total, "peak": peak}
    return _model(solution, run, labels, rest, c_bar, dataset, resources)


@dataclass(frozen=True)
class _Run:
    """What is to be computed, and with how many threads."""

    options: TrainOptions
    risk: Hinge
    solver: str
    max_cuts: int
    lanes: Lanes
    workers: int
    row_cache: int = 0

    @classmethod
    def planned(cls, options: TrainOptions, statistics: Statistics, risk: Hinge) -> _Run:
        dimension = statistics.n_features + (options.bias != 0.0)
        solver = "ocas" if options.solver == "auto" else options.solver
        max_cuts = options.max_cuts or min(max(_BUNDLE_NUMBERS // max(dimension, 1), 20), 1000)
        threads = 1 if options.scheduler == "sync" else options.workers or available_cpus()
        lanes = options.lanes
        if solver == "bundle-dca":  # lanes don't see each other's steps: no more of them than threads, and none for little data
            max_cuts = options.max_cuts or bundle_dca.MAX_CUTS
            lanes = lanes or min(threads, max(1, statistics.nnz // _DCA_LANE_NNZ))
        planned = plan_lanes(statistics, lanes)
        return cls(options, risk, solver, max_cuts, planned, min(threads, len(planned)))

    def row_bytes(self, statistics: Statistics) -> int:
        """Bytes of row state for each row: two margins, a weight unless all are 1, and the shares in the cuts of bundle-dca."""
        shares = 2 * self.max_cuts * (self.solver == "bundle-dca")
        return 16 * (self.solver != "cpa") + 8 * self.risk.weighted(statistics.weight_sum is not None) + shares

    def cache_wanted(self, manifest: Manifest) -> tuple[int, int]:
        """(least, most) bytes of the row cache."""
        text = self.options.row_cache
        if self.solver != "bundle-dca" or self.options.sweeps == 0 or text == "0":
            return 0, 0
        everything = CacheSize.bytes_of_all(manifest)
        if text == "auto":
            return 0, int(_CACHED * everything)
        size = min(parse_size(text, option="row_cache", total=everything), everything)
        if CacheSize.planned(manifest, size, len(self.lanes)) is None:
            raise UsageError(f"row_cache: {text} is too little for a row in each of {len(self.lanes)} lanes; use 0 for none")
        return size, size

    def parameters(self) -> dict[str, Any]:
        """The options, with what was chosen for them where that decides which bits come out."""
        fixed = {"lanes": len(self.lanes), "row_cache": f"{self.row_cache}B"} if self.solver == "bundle-dca" else {}
        return {**self.options.as_dict(), **fixed}

    def identity(self, fingerprint: str) -> dict[str, Any]:
        """All that decides which bits come out; limits, threads and memory don't."""
        chosen = self.options
        names = ("C", "cut", "bias", "tol", "tol_relative", "positive_weight")
        fixed = {"data": fingerprint, "solver": self.solver, "max_cuts": self.max_cuts, "lanes": len(self.lanes)}
        if self.solver == "bundle-dca":
            fixed |= {"row_cache": self.row_cache, "sweeps": chosen.sweeps}
        return {**fixed, "positive_label": self.risk.positive, **{name: getattr(chosen, name) for name in names}}

    def solve(self, runner: PassRunner, progress: Progress) -> tuple[Solution, float]:
        """(solution, C̄)."""
        chosen = self.options
        if self.solver == "bundle-dca":
            size = CacheSize.planned(runner.feed.data.manifest, self.row_cache, len(runner.lanes))
            dual = DualOracle(
                runner, self.risk, C=chosen.C, bias=chosen.bias, max_cuts=self.max_cuts, size=size, sweeps=chosen.sweeps
            )
            return bundle_dca.solve(dual, progress, max_cuts=self.max_cuts), dual.c_bar
        oracle = LinearOracle(runner, self.risk, C=chosen.C, bias=chosen.bias, keep_margins=self.solver == "ocas")
        if self.solver == "cpa":
            solution = cpa.solve(oracle, progress, max_cuts=self.max_cuts)
        else:
            solution = ocas.solve(oracle, progress, max_cuts=self.max_cuts, cut=chosen.cut)
        return solution, oracle.c_bar

    def warm_up(self, manifest: Manifest) -> None:
        """Run the same on a few rows, so that compiled kernels and threads are there when memory is measured."""
        weighted = manifest.statistics.weight_sum is not None
        for dtype, ones in {(shard.arrays["data"].dtype, shard.ones) for shard in manifest.shards}:
            X = np.array([[1, 0, 2], [0, 2, 1], [2, 1, 0], [1, 1, 1]] * 2, dtype)
            y = np.where(np.arange(8) % 3, self.risk.positive, self.risk.positive - 1.0)
            few = MemoryDataset(X > 0 if ones else X, y, weight=np.ones(8) if weighted else None)
            rows = few.read(0)
            first_problem(rows.indptr, rows.indices, rows.data, {"y": rows.y}, 3)
            lanes = plan_lanes(few.manifest.statistics, 2)
            with Runner(Feed(few, frozenset([0])), lanes, min(self.workers, 2)) as runner:
                tiny = replace(self, max_cuts=4, row_cache=_WARM_UP_CACHE)
                tiny.solve(runner, Progress(StoppingRule(None, None, max_passes=9)))


def _opened(data: str | os.PathLike | Dataset) -> Dataset:
    if isinstance(data, str | os.PathLike):
        from streamcut.io.opening import open_dataset

        return open_dataset(os.fspath(data))
    return data


def _hinge(statistics: Statistics, options: TrainOptions) -> tuple[Hinge, tuple[float, float], bool]:
    """The risk, (negative, positive) labels, and whether the negative one stands for several ("rest")."""
    found = statistics.labels
    if found is not None and len(found) == 1:
        raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(found)):g}; training needs two classes")
    positive = options.positive_label
    if positive is None:
        if found is None or len(found) > 2:
            many = f"{len(found)}" if found is not None else "more than 4096"
            raise BadInputError(f"the data has {many} different labels, not 2; choose one against the rest with --positive-label")
        positive = max(found)
    elif found is not None and positive not in found:
        some = ", ".join(f"{label:g}" for label in list(found)[:10])
        raise BadInputError(f"no row has the positive label {positive:g}; the labels are {some}")
    if found is not None and len(found) == 2:
        negative, rest = next(label for label in found if label != positive), False
    else:
        negative, rest = (-1.0 if positive != -1.0 else 0.0), True
    return Hinge(positive, options.positive_weight), (negative, positive), rest


def _model(
    solution: Solution,
    run: _Run,
    labels: tuple[float, float],
    rest: bool,
    c_bar: float,
    data: Dataset,
    resources: dict[str, int],
) -> LinearModel:
    options = run.options
    d = data.manifest.statistics.n_features
    weight_of_bias = float(solution.w[d]) if options.bias else 0.0
    return LinearModel(
        weights=np.ascontiguousarray(solution.w[:d]),
        intercept=weight_of_bias * options.bias,
        bias=float(options.bias),
        labels=labels,
        C=float(options.C),
        certificate=Certificate(
            primal=solution.primal,
            lower_bound=solution.lower_bound,
            c_bar=c_bar,
            tol=options.tol,
            tol_relative=options.tol_relative,
            converged=solution.reason is StopReason.CONVERGED,
            stop_reason=solution.reason,
        ),
        positive_weight=float(options.positive_weight),
        rest=rest,
        solver=run.solver,
        history=[asdict(iteration) for iteration in solution.history],
        parameters=run.parameters(),
        fingerprint=data.manifest.fingerprint,
        witness=solution.witness,
        resources=resources,
    )
