"""`train`: from a data set and options to a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from streamcut.compiler.first_use import COMPILING, first_use
from streamcut.config import CheckpointOptions, TrainOptions
from streamcut.data.by_data import for_data
from streamcut.data.datasets import NamedRows, measurable, stored, with_origin
from streamcut.data.inputs import opened, require_same_numbers
from streamcut.errors import MemoryBudgetError, UsageError, spelled
from streamcut.execution.feed import Feed
from streamcut.execution.plan import BASE, Machine, MemoryPlan, Needs, plan_memory, with_resident
from streamcut.execution.row_state import RowState
from streamcut.execution.runner import Interrupted, Runner
from streamcut.execution.views import OccurringDataset, ScaledDataset, occurring, scaled
from streamcut.foundation.files import scratch_folder
from streamcut.foundation.interrupts import first_interrupt_asks
from streamcut.foundation.redaction import path_of
from streamcut.foundation.shown import expect_known, warn
from streamcut.foundation.systems import memory_limit, peak_bytes, resident_bytes, restart_peak
from streamcut.foundation.units import format_bytes
from streamcut.io.dataset import Dataset, shard_bytes
from streamcut.io.memory import MemoryDataset
from streamcut.io.recipe.recipe import require_same
from streamcut.io.sources.lazy import framed
from streamcut.jobs.job import Job, check_weights, lowerable, smallest_change, with_all_features
from streamcut.jobs.linear import threads_wanted
from streamcut.models.checkpoint import Checkpoints
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.progress import Display, columns, line, shown_by
from streamcut.solvers.progress import Observer, Progress, Record, StoppingRule
from streamcut.strategy import choose, job_class

if TYPE_CHECKING:
    from streamcut.execution.cluster import Cluster

log = logging.getLogger(__name__)
run_log = logging.getLogger("streamcut.run")  # the progress of a training, which the command line shows in its own way

_CURVED = 54 * 10**6  # kernels of Newton's method and BLAS
_KERNEL = 9 * 10**6  # kernels of kernel methods
_LANDMARKS = 36 * 10**6  # LAPACK, and what choosing them leaves behind
_HDF5 = 16 * 10**6  # its library
_DASK = 32 * 10**6  # the same


def train(
    data: object,
    *,
    label: str | None = None,
    convert: Mapping[str, object] | None = None,
    on_iteration: Observer | None = None,
    callback: Callable[[Any], object] | None = None,
    on_plan: Callable[[MemoryPlan], None] | None = None,
    checkpoint: CheckpointOptions | str | None = None,
    stop: Callable[[], bool] | None = None,
    progress: bool | Display = False,
    **options: Any,
) -> Model:
    """See streamcut.api."""
    since = time.monotonic()
    chosen, scheduler = checked(options)
    halted = list[bool]()
    with ExitStack() as held:
        place, made_of = held.enter_context(stored(data, label, convert, chosen.scratch, chosen.memory))
        if chosen.validation is not None:
            validation, recipe = framed(chosen.validation), opened(place).recipe
            rows = opened(held.enter_context(measurable(validation, recipe, chosen.scratch, chosen.memory)))
            chosen = replace(chosen, validation=NamedRows(rows, validation))
        asked = stop or held.enter_context(first_interrupt_asks())
        display = held.enter_context(shown_by(progress))
        session = Session(
            place, chosen, scheduler=scheduler, on_plan=on_plan, stop=lambda: bool(halted) or asked(), display=display
        )
        run = held.enter_context(session)
        record = run.progress(on_iteration, callback and (lambda now: halted.extend([True] * (callback(now) is True))))
        record.started = since
        if (saving := CheckpointOptions.of(checkpoint)) is not None:
            record.checkpoints = run.checkpoints(saving)
        model = run.finished(lambda: run.job.solve(run.runner, record, run.plan))
    if stop is None and asked():
        warn("training was interrupted; the model is the best so far")
    return with_origin(model, made_of)


def checked(options: dict[str, Any]) -> tuple[TrainOptions, Any]:
    """`options` of `train` as TrainOptions, and the scheduler, which may be a distributed.Client. Raises UsageError."""
    expect_known("train", options, TrainOptions.__dataclass_fields__)
    scheduler = options.get("scheduler", "threads")
    if hasattr(scheduler, "scheduler_info"):  # a distributed.Client
        options = {**options, "scheduler": scheduler.scheduler.address}
    return TrainOptions(**options), scheduler


class Session:
    """All that a training needs: data, job, memory plan, runner. Use as a context.

    `more` are (what, bytes) that the caller keeps in addition to the job.
    """

    def __init__(
        self,
        data: object,
        options: TrainOptions,
        *,
        scheduler: Any,
        on_plan: Callable[[MemoryPlan], None] | None = None,
        stop: Callable[[], bool] | None = None,
        display: Display | None = None,
        more: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self.dataset = opened(data)
        self._paths = path_of(self.dataset)
        self.options = options = for_data(options, self.dataset)
        self.stop = stop or (lambda: False)
        self._compare_recipes()
        self.readings = (feed := Feed(self.dataset)).readings  # of all trainings of this session
        if options.maps:
            from streamcut.jobs import kernel_data  # loads kernels, which other trainings do not need

            self.dataset = kernel_data.with_features(feed, options)
        self.dataset = scaled(self.dataset, options.scale)
        if _with_fewer_features(options, self.dataset):
            self.dataset = occurring(self.dataset)
        self._scheduler, self._on_plan, self._display = scheduler, on_plan, display
        self.more = more
        check_weights(self.dataset.manifest.statistics, options)
        self._choose(options)
        self._stack = ExitStack()
        self._cluster: Cluster | None = None

    def _choose(self, options: TrainOptions) -> None:
        """Choose the solver. One chosen by "auto" is dropped where memory is too small for it."""
        manifest = self.dataset.manifest
        self.options = chosen = choose(options, manifest.statistics)
        self.job = job_class(chosen).planned(chosen, manifest)
        if chosen is not options:
            smallest = replace(self.job, workers=1) if chosen.workers is None else self.job
            try:
                self._planned(smallest)
            except MemoryBudgetError:
                self.options, self.job = options, job_class(options).planned(options, manifest)

    def planned(self) -> tuple[Job, MemoryPlan]:
        """The job and memory plan on threads that entering the context uses. Raises MemoryBudgetError."""
        job, plan = smallest_change(self.job, self._planned, threads=self.options.workers is None)
        return job, with_resident(plan, self.dataset.manifest, self._machine(job))

    def __enter__(self) -> Session:
        try:
            self._prepare()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: Any) -> None:
        self._stack.__exit__(*problem)

    def progress(self, *more: Observer | None) -> Progress:
        """A new record of a training, with the stopping rules of the options."""
        chosen = self.options
        rule = StoppingRule(chosen.tol, chosen.tol_relative, chosen.target, chosen.max_passes, chosen.max_time)
        observers = [observer for observer in (*more, self._display) if observer is not None]

        def observe(record: Record) -> None:
            if run_log.isEnabledFor(logging.INFO):
                run_log.info("%s", line(columns(record, None)))
            for observer in observers:
                observer(record)

        return Progress(rule, observe, stop=self.stop)

    def checkpoints(self, options: CheckpointOptions, **identity: object) -> Checkpoints:
        """The checkpoints of this run, open until it ends; `identity` is added to that of its job."""
        identity = self.job.identity(self.dataset.manifest.fingerprint, self.plan) | identity
        return self._stack.enter_context(Checkpoints(options, identity))

    def finished(self, solve: Callable[[], Model]) -> Model:
        """The model that `solve` returns, with the memory used and the path of its data, in the given features."""
        return self.all_finished(lambda: [solve()])[0]

    def all_finished(self, solve: Callable[[], Sequence[Model]]) -> list[Model]:
        """The same for several models."""
        try:
            models = solve()
        except Interrupted:
            raise KeyboardInterrupt("training was stopped before it had a model") from None
        return [self._finished(model) for model in models]

    def _finished(self, model: Model) -> Model:
        run_log.info("%s", model.in_words())
        model = self.in_given_features(model)
        peak = (here := peak_bytes()) + (0 if self._cluster is None else sum(self._cluster.peaks.values()))
        counted = here if self._cluster is None or not self._cluster.local else peak  # remote workers have limits of their own
        warn_of_peak(self.plan.budget, counted, self._peak_before if counted == here else 0)
        resources = {
            "budget": self.plan.budget,
            "planned": self.plan.total,
            "peak": peak,
            "readings": self.readings.value,
            "plan": [*self.plan.lines, ("pinned shards", self.plan.pinned_bytes)],
        }
        parameters = model.parameters | ({} if self._paths is None else {"data": self._paths})
        return replace(model, resources=resources, parameters=parameters)

    def in_given_features(self, model: Model) -> Model:
        """The job's model in the features of the given data, with their recipe."""
        data = self.dataset
        if isinstance(data, OccurringDataset):
            model, data = with_all_features(model, data), data.inner
        if isinstance(data, ScaledDataset):
            linear = cast(LinearModel, model)  # only linear problems are scaled
            model = replace(linear, weights=np.ascontiguousarray((linear.weights.T / data.divisors).T))
        if self.options.maps:
            from streamcut.jobs import kernel_data

            model = kernel_data.mapped(model, data)
        return replace(model, recipe=self.dataset.recipe)

    def _compare_recipes(self) -> None:
        """Raise BadInputError when the warm-start model or the validation data has features of another recipe, or other numbers
        for the same labels."""
        options, ours = self.options, self.dataset.recipe
        start = None if options.warm_start is None else as_model(options.warm_start)
        rows = None if options.validation is None else opened(options.validation)
        for name, other in (("warm_start", start), ("validation", rows)):
            if other is not None:
                what = f"{name}: {options.as_dict()[name]}"
                require_same(ours, other.recipe, what, "the data")
                require_same_numbers(ours, other.recipe, what, "the data")

    def _prepare(self) -> None:
        chosen, manifest = self.options, self.dataset.manifest
        restart_peak()
        self._peak_before = peak_bytes()  # not caused by this training
        if chosen.distributed:
            runner: Callable[..., Runner] = self._on_cluster()
        else:
            self.job, self.plan = self.planned()
            runner = partial(Runner, Feed(self.dataset, self.plan.pinned))
        row_state = RowState(manifest.statistics.n_rows, scratch_folder(chosen.scratch) if self.plan.spilled else None)
        ahead = self.plan.streamed.ahead
        self.runner = runner(self.job.lanes, self.job.workers, ahead=ahead, row_state=row_state, stop=self.stop)
        self.runner.feed.readings = self.readings
        self._stack.enter_context(self.runner)
        sizes = f"{manifest.statistics.n_rows:,}", f"{manifest.statistics.n_features:,}"
        if isinstance(self.dataset, OccurringDataset):
            sizes = sizes[0], f"{self.dataset.inner.manifest.statistics.n_features:,} (of which {sizes[1]} occur)"
        run_log.info("training by %s on %s rows with %s features", chosen.chosen_solver, *sizes)
        run_log.info("memory planned: %s of %s", format_bytes(self.plan.total), format_bytes(self.plan.budget))
        if self._display is not None:
            self._display.watch(self.runner)
        if self._on_plan is not None:
            self._on_plan(self.plan)

    def _on_cluster(self) -> Callable[..., Runner]:
        """Connect to the cluster; what makes its runner. Raises ClusterLostError, UsageError, MemoryBudgetError."""
        chosen = self.options
        if not self.job.distributable:
            raise UsageError(f"scheduler: {chosen.chosen_solver} runs on threads only, not on Dask")
        try:
            from streamcut.execution.cluster import ClusterRunner
            from streamcut.execution.cluster_connection import connect
        except ModuleNotFoundError as error:
            raise UsageError(f"--scheduler: {chosen.scheduler}: {error}; run pip install 'streamcut[dask]'") from None
        self._cluster = cluster = self._stack.enter_context(connect(self._scheduler, workers=threads_wanted(chosen)))
        self.job, self.plan = self.planned()
        worker_bytes = self._for_a_worker(self.job)
        room = worker_bytes + self.plan.pinned_bytes // threads_wanted(chosen) if worker_bytes else 0
        cluster.prepare(self.dataset, self._needs(self.job), self.job.lanes, room=room)
        return partial(ClusterRunner, cluster, self.dataset)

    def _planned(self, job: Job) -> MemoryPlan:
        """The memory plan of `job`; of a local cluster all processes. Raises MemoryBudgetError."""
        needs, manifest, machine = self._needs(job), self.dataset.manifest, self._machine(job)
        if (worker_bytes := self._for_a_worker(job)) > 0:  # what a thread takes, each process takes, too, and the client
            thread = 8 * needs.dimension * needs.vectors + sum(size for _, size in needs.per_worker)
            per_worker = (*needs.per_worker, ("a worker process", worker_bytes - thread))
            needs = replace(needs, per_worker=per_worker, more=(*needs.more, ("the client's part of passes", thread)))

        def plan(needs: Needs) -> MemoryPlan:
            return plan_memory(needs, manifest, machine)

        return needs.planned(plan)

    def _for_a_worker(self, job: Job) -> int:
        """Bytes that each process of a local cluster takes at least; 0 where there is none."""
        if self.options.scheduler != "local-cluster":
            return 0
        from streamcut.execution.cluster import worker_bytes

        return worker_bytes(self._needs(job), self.dataset.manifest, job.lanes)

    def _needs(self, job: Job) -> Needs:
        """What `job` takes, with views of the data, and what the caller keeps."""
        chosen, data, manifest = self.options, self.dataset, self.dataset.manifest
        needs, more = job.needs(manifest), self.more
        if isinstance(data, OccurringDataset):
            weights = needs.whole or needs.dimension
            columns = weights and max(1, weights // manifest.statistics.n_features)
            more, data = more + data.memory(job.workers, columns), data.inner
        if isinstance(data, ScaledDataset):
            more += data.memory(job.workers)
        if chosen.maps:
            from streamcut.jobs import kernel_data

            more += kernel_data.map_bytes(self.dataset, job.workers)
        coming = (("shards on their way", held),) if (held := self.dataset.held_bytes) else ()
        return replace(needs, more=(*needs.more, *more, *coming))

    def _machine(self, job: Job) -> Machine:
        """What is declared of this process; what it has besides decides neither the row cache nor, so, the weights."""
        base = BASE + _CURVED * self.options.record.curved + _HDF5 * (self.dataset.manifest.backend == "hdf5")
        base += _KERNEL * (self.options.kernel != "linear") + _LANDMARKS * (self.options.nystroem is not None)
        base += _DASK * self.options.distributed
        workers = threads_wanted(self.options) if self.options.scheduler == "local-cluster" else job.workers
        in_memory, lower = isinstance(self.dataset, MemoryDataset), lowerable(self.options, job, workers)
        rows = sum(shard_bytes(self.dataset.manifest, shard) for shard in self.dataset.manifest.shards) if in_memory else 0
        besides = max(0, resident_bytes() - COMPILING * first_use.compiled - base - rows)
        return Machine(memory_limit(self.options.memory), base, workers, in_memory, lower, besides)


def _with_fewer_features(options: TrainOptions, data: Dataset) -> bool:
    """Whether training can leave out features that no row has, so that weights, or vectors of a budget, become shorter."""
    if options.warm_start is not None or options.maps:
        return False
    if options.record.family == "budgeted":
        return options.validation is None and not isinstance(data, MemoryDataset)
    return options.record.family == "linear" and options.kind != "sequence"


def warn_of_peak(budget: int, peak: int, before: int) -> None:
    """Warn when the peak memory is above the budget, and above what a notice said, and has grown since `before`."""
    if peak > max(budget + COMPILING * first_use.compiled, before):
        used, allowed = format_bytes(peak), format_bytes(budget)
        log.warning(spelled("peak memory was %s, more than %s (--memory); where that is a hard limit, give less"), used, allowed)
