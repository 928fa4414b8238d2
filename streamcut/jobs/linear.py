"""What the jobs of linear models share: sizes, threads, labels, the certificate, and the starting point given by a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut.bundle.intercept import EVERYWHERE
from streamcut.bundle.l1_only import L1OfMany, L1Only
from streamcut.bundle.penalty import FREE_VECTORS, L2, VECTORS, FreeIntercept, penalty_of
from streamcut.config import TrainOptions
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.feed import Traffic
from streamcut.execution.passes import Lanes
from streamcut.execution.row_state import ROW_BYTES, CacheSize
from streamcut.foundation.shown import by_name
from streamcut.foundation.systems import available_cpus
from streamcut.foundation.units import parse_size, part_of
from streamcut.io.manifest import Manifest, Statistics
from streamcut.models.certificate import Certificate, Cut, StopReason
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.oracles.decomposable import DecomposableOracle
from streamcut.problem import ONE_VS_REST, Problem
from streamcut.solvers.progress import Iteration, Progress, Solution, StoppingRule
from streamcut.solvers.warm_start import Origin

if TYPE_CHECKING:
    from streamcut.oracles.global_risk import GlobalOracle
    from streamcut.solvers.state import BundleState

_BUNDLE_NUMBERS = 16 << 20  # the default bundle holds at most this many float64 (128 MiB)
_REACH = 16.0  # the least that a free intercept can move in a pass
_APART = 1e4  # columns that differ more in size are named when rounding ends a training


def bundle_size(dimension: int) -> int:
    """The size of the default bundle: the cuts that fit in 128 MiB, 20 to 1000; it depends on the data alone."""
    return min(max(_BUNDLE_NUMBERS // max(dimension, 1), 20), 1000)


def penalty_needs(options: TrainOptions, dimension: int) -> tuple[tuple[str, int], ...]:
    """Memory of the penalty in addition to ½‖w‖²: (what, bytes)."""
    free = [("free intercept", FREE_VECTORS * 8 * dimension)] * (options.free and not options.l1_only)
    return (*free, *[("elastic net", VECTORS * 8 * dimension)] * bool(options.l1 or options.l1_only))


def cache_wanted(
    options: TrainOptions, manifest: Manifest, lanes: Lanes, *, part: float, row_bytes: int = ROW_BYTES
) -> tuple[int, int]:
    """(least, most) bytes of bundle-dca's row caches; each row takes `row_bytes` in addition to its entries.

    The most is the fraction `part` of a cache of all rows, unless set by options. Raises UsageError if too small for a row.
    """
    text = options.row_cache or "0"
    if not options.record.dual or options.sweeps == 0 or text == "0":
        return 0, 0
    everything = CacheSize.bytes_of_all(manifest, row_bytes)
    if text == "auto":
        return 0, int(part * everything)
    size = min(parse_size(text, option="row_cache", total=everything), everything)
    if CacheSize.planned(manifest, size, len(lanes), row_bytes) is None:
        raise UsageError(f"row_cache: {text} is too little for a row in each of {len(lanes)} lanes; use 0 for none")
    return size, size


def constant_feature(options: TrainOptions, statistics: Statistics, unbounded: bool) -> float:
    """The value of the constant feature: `bias`, or for a free intercept what solvers need.

    A pass of dual ascent moves the intercept by at most C̄ times its square, unless shares are `unbounded`. For Newton's
    method it is a power of 2 as large as the rows: the rounding of cuts is proportional to rows.
    """
    if options.free and (options.record.curved or options.record.columns):
        return 2.0 ** max(0, round(0.5 * math.log2(max(statistics.max_squared_norm, 1.0))))
    if not (options.free and options.record.dual):
        return float(options.bias)
    weight = statistics.n_rows if statistics.weight_sum is None else statistics.weight_sum
    low, high = statistics.label_min, statistics.label_max
    numbers = options.chosen_task == "regression" and not unbounded and low is not None and high is not None
    reach = max(_REACH, high - low) if numbers else _REACH
    return max(1.0, math.sqrt(reach / (options.C * weight)))


def solver_of(options: TrainOptions, oracle: Any, **arguments: Any) -> Callable[[Progress], Solution]:
    """The chosen solver with a suitable oracle; it runs to the end of a Progress. It gets those of its options that it takes."""
    solve = options.record.algorithm(options.kind).solve
    taken = [name for name in signature(solve).parameters if name in options.record.options]
    return partial(solve, oracle, **{**{name: getattr(options, name) for name in taken}, **arguments})


def threads_wanted(options: TrainOptions) -> int:
    """The requested number of threads (or processes of a cluster)."""
    return 1 if options.scheduler == "sync" else options.workers or available_cpus()


def two_labels(statistics: Statistics, positive: float | None) -> tuple[float, float, bool]:
    """(negative, positive, whether the negative label stands for several); `positive` None takes the larger of two.

    Raises BadInputError for data without two classes.
    """
    labels = statistics.labels
    if labels is not None and len(labels) == 1:
        raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(labels)):g}; training needs two classes")
    if positive is None:
        if labels is None or len(labels) > 2:
            many = f"{len(labels)}" if labels is not None else "more than 4096"
            raise BadInputError(
                f"the data has {many} different labels, not 2; choose one-vs-rest with --positive-label, or "
                "--task=multiclass or ranking"
            )
        positive = max(labels)
    elif labels is not None and positive not in labels:
        some = ", ".join(f"{label:g}" for label in list(labels)[:10])
        raise BadInputError(f"no row has the positive label {positive:g}; the labels are {some}")
    if labels is not None and len(labels) == 2:
        return next(label for label in labels if label != positive), positive, False
    return (-1.0 if positive != -1.0 else 0.0), positive, True


def several_labels(statistics: Statistics) -> tuple[float, ...]:
    """The labels, increasing. Raises BadInputError when there are fewer than two, or too many to be classes."""
    labels = statistics.labels
    if labels is None:
        raise BadInputError("the data has more than 4096 different labels, too many for classes; choose another --task")
    if len(labels) == 1:
        raise BadInputError(f"all {statistics.n_rows:,} rows have label {next(iter(labels)):g}; training needs two classes")
    return tuple(sorted(labels))


def problem_of_two(options: TrainOptions, statistics: Statistics) -> Problem:
    """The problem of one class against another, or against all others. Raises as `two_labels`."""
    negative, positive, rest = two_labels(statistics, options.positive_label)
    return options.problem(labels=(negative, positive), rest=rest)


def problem_on(options: TrainOptions, statistics: Statistics) -> Problem:
    """The problem of the options on rows with these labels, if they are labels of classes.

    Raises as `two_labels` and `several_labels`, and UsageError for one-vs-rest of two classes by a linear model.
    """
    if options.chosen_task == "binary":
        return problem_of_two(options, statistics)
    if options.chosen_task != "multiclass":
        return options.problem()
    labels = several_labels(statistics)
    if len(labels) == 2 and options.kind == ONE_VS_REST and options.record.family == "linear":
        raise UsageError("strategy: with two classes, one-vs-rest is task binary; use that")
    return options.problem(labels=labels)


class Trainer:
    """Trains for one C, or λ, after another with the same `oracle`: best point, cuts and row state are carried over.

    `solve` runs the solver to the end of a Progress;
    `model` makes a model from that result and C. `begin` returns the initial state of the first run; default: zero.
    """

    def __init__(
        self,
        oracle: DecomposableOracle,
        solve: Callable[[Progress], Solution],
        model: Callable[[Solution, float], Model],
        begin: Callable[[StoppingRule], BundleState] | None = None,
        l1: float | str = 0.0,
        alone: bool = False,
    ) -> None:
        self.oracle = oracle
        self._solve = solve
        self._model = model
        self._begin = begin
        self._last: Solution | None = None
        self._l1 = l1
        self._alone = alone  # λ‖w‖₁ alone, or added to ½‖w‖²
        self._steepest: float | None = None

    def train(self, C: float, progress: Progress, *, l1: float | str | None = None, keep: bool = False) -> Model:
        """The model for C and the λ `l1` of an elastic net, a number or a fraction of λ_max; None: the initial λ.

        `keep`: leave a checkpoint at the end even when it converged, so that the next run can start from it.
        """
        oracle = self.oracle
        penalty, facts = self._penalty(C, self._l1 if l1 is None else l1)
        if self._last is not None:
            oracle.passes, oracle.traffic = 0, Traffic()
            self._last.state.move_to(C, penalty, oracle, progress.measure_for(oracle))
            progress.start = self._last.state
        else:
            oracle.C, oracle.penalty = C, penalty
            if self._begin is not None and (progress.checkpoints is None or progress.checkpoints.stored is None):
                progress.start = self._begin(progress.rule)
        self._last = self._solve(progress)
        if keep and self._last.reason is StopReason.CONVERGED:
            progress.save(self._last.state, oracle)
        model = self._model(self._last, C)
        return replace(model, parameters={**model.parameters, **facts})

    def _penalty(self, C: float, l1: float | str) -> tuple[L2, dict[str, Any]]:
        """The penalty, and facts found: λ_max where `l1` is a fraction of it, by a pass the first time."""
        if isinstance(self.oracle.penalty, FreeIntercept):
            return replace(self.oracle.penalty, l1=float(l1)), {}
        part = part_of(l1)
        if part is None:
            return self._penalty_of(float(l1)), {}
        oracle = self.oracle
        if self._steepest is None:
            self._steepest = oracle.steepest_at_zero()
        most = C * oracle.total_weight * self._steepest
        return self._penalty_of(part * most), {"l1_max": most}

    def _penalty_of(self, l1: float) -> L2:
        penalty = self.oracle.penalty
        if isinstance(penalty, L1OfMany):
            return replace(penalty, l1=l1, most=math.inf, within=EVERYWHERE)
        return L1Only(l1) if self._alone else penalty_of(l1)


def linear_model(
    options: TrainOptions, problem: Problem, manifest: Manifest, W: np.ndarray, history: Sequence[Iteration], *,
    constant: float, fixed: Mapping[str, Any] | None = None, **fields: Any,
) -> LinearModel:  # fmt: skip
    """The model with weights W, (D,) or (D, K), the last those of the bias feature, which has the value `constant`; `fixed` are
    parameters decided by the run, `fields` others of the model."""
    d = manifest.statistics.n_features
    intercept: Any = W[d] * constant if problem.bias else np.zeros(W.shape[1:])
    return LinearModel(
        weights=W[:d].copy() if W.ndim == 1 else W[:d],  # the next of a path takes over a single vector
        intercept=float(intercept) if W.ndim == 1 else intercept,
        problem=problem,
        solver=options.chosen_solver,
        history=[by_name(iteration) for iteration in history],
        parameters={**options.as_dict(), "C": problem.C, "l1_only" if problem.l1_only else "l1": problem.l1, **(fixed or {})},
        fingerprint=manifest.fingerprint,
        **fields,
    )


def multiclass_model(
    options: TrainOptions, problem: Problem, manifest: Manifest, W: np.ndarray, history: Sequence[Iteration],
    proved: Sequence[tuple[Certificate, Cut]], constant: float,
) -> LinearModel:  # fmt: skip
    """The model with weights W (D, K), `proved` of the joint problem or of each class; see `linear_model`."""
    return linear_model(
        options, problem, manifest, W, history, constant=constant, certificates=tuple(certificate for certificate, _ in proved),
        proofs=tuple(proof.reduced(certificate.c_bar, problem.l1) for certificate, proof in proved),
    )  # fmt: skip


def certificate(
    solution: Solution, oracle: DecomposableOracle | GlobalOracle, options: TrainOptions, *, unit: float = 1.0
) -> Certificate:
    """What `solution` proves for the problem of `oracle`, with the requested accuracy, in this `unit` of mean losses."""
    return Certificate(
        primal=solution.primal,
        lower_bound=solution.lower_bound,
        c_bar=oracle.c_bar,
        tol=options.tol,
        tol_relative=options.tol_relative,
        converged=solution.reason is StopReason.CONVERGED,
        stop_reason=solution.reason,
        unit=unit,
        raised=solution.raised,
        detail=detail(solution.reason, oracle),
        equal=oracle.equal,
    )


def detail(reason: StopReason, oracle: DecomposableOracle | GlobalOracle) -> str:
    """The detail for a training that ended at a limit, or because of rounding or scale: features that differ much in size."""
    if reason not in (StopReason.STALLED, StopReason.SCALE, StopReason.MAX_PASSES, StopReason.TIME):
        return ""
    sizes = oracle.column_sizes()
    sizes, index = sizes[sizes > 0.0], np.flatnonzero(sizes > 0.0)
    if len(sizes) == 0:
        return ""
    largest, smallest = int(np.argmax(sizes)), int(np.argmin(sizes))
    if sizes[largest] < _APART * sizes[smallest]:
        return ""
    names = f"feature {index[largest]} is {sizes[largest] / sizes[smallest]:.1g} times as large as feature {index[smallest]}"
    return f"{names} (0-based); scale std brings them to similar sizes"


def origins(options: TrainOptions, manifest: Manifest, problem: Problem, constant: float) -> tuple[Origin, ...]:
    """The origin for `problem`, or of one-vs-rest for that of each class; `constant` is the value of the constant feature.

    Features unknown to the model get weight 0, and several classes may be of another strategy. Raises UsageError for a model of
    a different kind, and what load_model raises.
    """
    path, model = _given(options), as_model(options.warm_start or "")
    if not isinstance(model, LinearModel) or not model.of_features or model.task != problem.task:
        kind = {"binary": "two classes", "regression": "numbers"}.get(problem.task, "several classes")
        raise UsageError(
            f"warm_start: {path} is a model of task {model.task} by {model.solver}; it takes a linear one for {kind}"
        )
    theirs, labels = model.labels or (), problem.labels or ()
    if problem.task == "binary" and theirs and theirs[1] != labels[1]:
        raise UsageError(
            f"warm_start: in {path} the positive label is {theirs[1]:g}, here it is {labels[1]:g}; see --positive-label"
        )
    if problem.task == "multiclass" and theirs != labels:
        odd = ", ".join(f"{label:g}" for label in sorted(set(labels) ^ set(theirs))[:10])
        raise UsageError(f"warm_start: {path} and the data do not have the same classes: {odd}; start without the model")
    W = _weights(model, options, manifest, constant)
    columns = [np.ascontiguousarray(column) for column in W.T] if problem.strategy == ONE_VS_REST else [W.reshape(-1)]
    return tuple(Origin(w, cut) for w, cut in zip(columns, _cuts(model, problem, manifest, len(columns)), strict=True))


def _given(options: TrainOptions) -> str:
    """The model, for messages."""
    return options.as_dict()["warm_start"]


def _weights(model: LinearModel, options: TrainOptions, manifest: Manifest, constant: float) -> np.ndarray:
    """The model's weights in this training's layout, (D, K). Raises UsageError for more features than the data has."""
    n_features = manifest.statistics.n_features
    if model.n_features > n_features:
        raise UsageError(
            f"warm_start: {_given(options)} has {model.n_features:,} features, but the data has {n_features:,}; "
            "convert the data with --n-features, or start without the model"
        )
    intercepts = np.atleast_1d(model.intercept)
    W = np.zeros((n_features + (options.bias != 0.0), len(intercepts)))
    W[: model.n_features] = model.weights.reshape(model.n_features, -1)
    if constant:
        W[-1] = intercepts / constant
    return W


def _cuts(model: LinearModel, problem: Problem, manifest: Manifest, count: int) -> list[Cut | None]:
    """The model's cuts of its mean loss where they are cuts of this problem, too; with λ, the proof kept is not a cut."""
    theirs = model.problem if problem.free else replace(model.problem, C=problem.C)  # with a free intercept they hold for one C
    same = theirs == replace(problem, l1=0.0, l1_only=False) and model.fingerprint == manifest.fingerprint
    return list(model.proofs) if same and model.proofs else [None] * count
