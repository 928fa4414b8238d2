"""`train`: from a data set and options to a model with its certificate."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.feed import Feed
from streamcut.execution.lanes import plan_lanes
from streamcut.execution.oracle import LinearOracle
from streamcut.execution.plan import MemoryPlan, available_cpus, memory_limit, plan_memory, resident_bytes
from streamcut.execution.runner import Runner
from streamcut.io.dataset import Dataset
from streamcut.io.manifest import Statistics
from streamcut.io.memory import MemoryDataset
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import LinearModel
from streamcut.risks.hinge import Hinge
from streamcut.solvers import cpa, ocas
from streamcut.solvers.progress import Observer, Solution, StoppingRule

_BUNDLE_NUMBERS = 32 << 20  # the default bundle holds at most so many float64 (256 MiB)


def train(
    data: str | os.PathLike | Dataset,
    *,
    on_iteration: Observer | None = None,
    on_plan: Callable[[MemoryPlan], None] | None = None,
    **options: Any,
) -> LinearModel:
    """Train a linear SVM for two classes: min ½‖w‖² + C Σ u_i max(0, 1 − y_i⟨w, x_i⟩).

    data             path of a store, an opened one, or a MemoryDataset
    task             "auto" or "binary"
    C                loss of a row, as in LIBLINEAR and scikit-learn
    solver, cut      "auto" (= "ocas"), "ocas" with "predicted" or "exact" cuts, "cpa"
    bias             value of a constant, regularised feature; 0 = none
    tol              stop when gap ≤ tol·C·Σu_i (units of mean loss); 0 or None = off
    tol_relative     and when gap ≤ tol_relative·F(w); 0 or None = off
    target, max_passes, max_time   stop at this objective, after so many passes, after so many seconds
    positive_label   this label against all others; default: the larger of two
    positive_weight  factor on the weights of rows with the positive label
    max_cuts         size of the bundle; default: as many as 256 MiB hold, 20 to 1000
    lanes            rows are summed in so many fixed ranges; default: from the size of the data
    workers, scheduler   threads (default: one a processor), or "sync" for none
    memory           "4GB", "50%" or "auto": ceiling on the resident memory of this process
    on_iteration     called with each solvers.progress.Iteration; on_plan: called with the memory plan before any work

    Raises UsageError for bad options, BadInputError for data without two classes, MemoryBudgetError when `memory` cannot be
    kept, CorruptError for damaged data.
    """
    unknown = sorted(set(options) - set(TrainOptions.__dataclass_fields__))
    if unknown:
        raise UsageError(f"train has no option {', '.join(unknown)}")
    chosen = TrainOptions(**options)
    dataset = _opened(data)
    statistics = dataset.manifest.statistics
    risk, labels, rest = _hinge(statistics, chosen)
    dimension = statistics.n_features + (chosen.bias != 0.0)
    max_cuts = chosen.max_cuts or min(max(_BUNDLE_NUMBERS // max(dimension, 1), 20), 1000)
    lanes = plan_lanes(statistics, chosen.lanes)
    workers = 1 if chosen.scheduler == "sync" else min(chosen.workers or available_cpus(), len(lanes))
    solver = "ocas" if chosen.solver == "auto" else chosen.solver
    margins = solver == "ocas"
    plan = plan_memory(
        dataset.manifest,
        budget=memory_limit(chosen.memory),
        base=resident_bytes(),
        dimension=dimension,
        max_cuts=max_cuts,
        workers=workers,
        row_bytes=16 * margins + 8 * risk.weighted(statistics.weight_sum is not None),
        in_memory=isinstance(dataset, MemoryDataset),
    )
    if on_plan is not None:
        on_plan(plan)
    rule = StoppingRule(chosen.tol, chosen.tol_relative, chosen.target, chosen.max_passes, chosen.max_time)
    with Runner(Feed(dataset, plan.pinned), lanes, workers) as runner:
        oracle = LinearOracle(runner, risk, C=chosen.C, bias=chosen.bias, keep_margins=margins)
        if solver == "cpa":
            solution = cpa.solve(oracle, rule, max_cuts=max_cuts, observe=on_iteration)
        else:
            solution = ocas.solve(oracle, rule, max_cuts=max_cuts, cut=chosen.cut, observe=on_iteration)
        c_bar = oracle.c_bar
    return _model(solution, chosen, solver, labels, rest, c_bar, dataset)


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
    solution: Solution, options: TrainOptions, solver: str, labels: tuple[float, float], rest: bool, c_bar: float, data: Dataset
) -> LinearModel:
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
        solver=solver,
        history=[asdict(iteration) for iteration in solution.history],
        parameters=options.as_dict(),
        fingerprint=data.manifest.fingerprint,
        witness=solution.witness,
    )
