"""Running a certification: its memory, oracles and courses, and its result."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from streamcut.certifying.course import Course, run_all
from streamcut.certifying.problem import FREE, Problem
from streamcut.certifying.record import AfterPass, Certified
from streamcut.certifying.several import CertifyClassesOracle
from streamcut.certifying.sides import CertifyOracle
from streamcut.certifying.together import Corner
from streamcut.config import TrainOptions
from streamcut.errors import MemoryBudgetError
from streamcut.execution.plan import Needs
from streamcut.execution.runner import Interrupted
from streamcut.execution.scaled import ScaledDataset, scaled_shard
from streamcut.foundation.rounding import above, below
from streamcut.io.dataset import Dataset
from streamcut.io.features import feature_statistics
from streamcut.io.manifest import Manifest
from streamcut.jobs.multiclass import MulticlassJob
from streamcut.loss_table import CLASSES_LOSSES, HINGE_OF_CLASSES
from streamcut.losses import row_loss
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.linear import LinearModel
from streamcut.models.multiclass import ONE_VS_REST, MulticlassModel
from streamcut.models.stated import BEGUN
from streamcut.oracles.dual.classes import ORDER
from streamcut.oracles.row_passes import row_arrays
from streamcut.training import Session

GIVEN = "given"  # the scale of a model whose certificate is about divided rows
_LONGER = 1.0 + 1e-9  # squares of rows are added in float64


class DividedDataset(ScaledDataset):
    """The rows of `data` with values divided by `divisors`, float64 (n_features,), above 0."""

    def __init__(self, data: Dataset, divisors: np.ndarray) -> None:
        self.inner, self.scale, self.divisors = data, GIVEN, divisors
        self.path, self.recipe = data.path, data.recipe
        manifest, found = data.manifest, feature_statistics(data)
        largest = float((found.largest / divisors[found.index]).max(initial=0.0))
        longest = manifest.statistics.max_squared_norm / float(divisors.min(initial=1.0)) ** 2
        squares = _LONGER * min(longest, manifest.statistics.max_row_nnz * largest * largest)
        digest = hashlib.sha256(f"{manifest.fingerprint} given ".encode() + divisors.tobytes())
        statistics: Any = replace(manifest.statistics, max_abs_value=largest, max_squared_norm=squares)
        shards = tuple(scaled_shard(shard) for shard in manifest.shards)
        self.manifest = Manifest(statistics=statistics, shards=shards, fingerprint=digest.hexdigest(), backend="scaled")


_FIRST_CUTS = 3
_VECTORS = 8  # of a lane: the sums of the first pass, their halves joined


def certified(problem: Problem, dataset: Any, passes: int, memory: str) -> Certified:
    """Certify a complete `problem` by `passes` passes over rows that match it."""
    assert problem.C is not None
    slots = _FIRST_CUTS + 2 * passes
    options = _told(problem) | {"memory": memory, "max_cuts": slots, "max_passes": passes}
    start = model_of(problem, problem.weights, problem.intercept, [nothing()], "")
    options["warm_start"] = replace(start, recipe=dataset.recipe)  # so that all features are there, whether they occur or not
    more = (("sums of the first pass", _VECTORS * 8 * (problem.weights.size + np.size(problem.intercept))),)
    with _advised(), _Session(problem, dataset, TrainOptions(**options), scheduler="threads", more=more) as run:
        courses = _courses(problem, run, slots)
        try:
            run_all(run.runner, courses, passes)
        except Interrupted:
            raise KeyboardInterrupt("certification was stopped") from None
    return _record(problem, courses, dataset)


def _told(problem: Problem) -> dict[str, Any]:
    """Training options that plan memory and row order. One against the rest takes those of a joint loss."""
    options: dict[str, Any] = {"task": problem.task, "C": problem.C, "bias": _bias(problem), "tol": None, "tol_relative": None}
    options |= {"solver": "bundle-dca", "row_cache": "0"}
    if problem.strategy:
        joint = CLASSES_LOSSES[0] if problem.strategy == ONE_VS_REST else problem.strategy
        return options | {"strategy" if joint == HINGE_OF_CLASSES else "loss": joint}
    options |= {"loss": problem.loss, **problem.options}
    if problem.labels is not None:
        options |= {"positive_label": problem.labels[1], "positive_weight": problem.positive_weight}
    return options


@dataclass(frozen=True)
class ApartJob(MulticlassJob):
    """A MulticlassJob whose rows take `own_bytes` each."""

    own_bytes: int = 0

    def needs(self, manifest: Manifest) -> Needs:
        return replace(super().needs(manifest), row_bytes=self.own_bytes)


class _Session(Session):
    """A Session that knows the bytes per row of one problem per class."""

    def __init__(self, problem: Problem, *given: Any, **more: Any) -> None:
        self._problem = problem
        super().__init__(*given, **more)

    def _choose(self, options: TrainOptions) -> None:
        super()._choose(options)
        if self._problem.strategy != ONE_VS_REST:
            return
        job: Any = self.job
        risk, weighted = _risk(self._problem, 0), self.dataset.manifest.statistics.weight_sum is not None
        numbers = 8 * len(row_arrays(risk, weighted, keep_margins=True)) + np.dtype(risk.loss.code_type).itemsize * job.max_cuts
        known = {each.name: getattr(job, each.name) for each in fields(MulticlassJob)}
        self.job = ApartJob(**known, own_bytes=job.risk.classes * numbers)


def _risk(problem: Problem, number: int) -> PointwiseRisk:
    """The risk of a class against the rest."""
    assert problem.labels is not None
    assert problem.loss is not None
    return PointwiseRisk(row_loss(problem.loss, problem.options, problem.labels[number]))


def _courses(problem: Problem, run: Session, slots: int) -> list[Course]:
    """One course for each problem."""
    job: Any = run.job
    bias, runner = _bias(problem), run.runner
    given: dict[str, Any] = {"C": problem.C, "bias": bias, "cuts": slots, "size": None, "sweeps": 0}
    w = problem.weights
    if bias:
        w = np.concatenate([w, np.reshape(problem.intercept / bias, (1, *w.shape[1:]))])
    free = problem.fit == FREE
    if problem.strategy == ONE_VS_REST:
        courses = []
        for k, start in enumerate(w.T):
            corner = Corner(runner, k)
            oracle = CertifyOracle(corner, _risk(problem, k), order=ORDER, **given)
            courses.append(Course(oracle, np.ascontiguousarray(start), free=free, slots=slots, corner=corner))
        return courses
    one: Any
    if problem.strategy:
        one = CertifyClassesOracle(runner, job.risk, **given)
    else:
        order = replace(job.order, batch=run.plan.batch) if run.plan.batch else job.order
        one = CertifyOracle(runner, job.risk, order=order, streams=run.plan.streams, **given)
    return [Course(one, w.reshape(-1), free=free, slots=slots)]


@contextmanager
def _advised() -> Iterator[None]:
    """Replace MemoryBudgetError's advice, which names training options, by certify's own."""
    try:
        yield
    except MemoryBudgetError as error:
        needs = str(error).partition(" Raise ")[0]
        raise MemoryBudgetError(f"{needs} Raise --memory, or ask for fewer --passes: each keeps two cuts") from None


def _record(problem: Problem, courses: list[Course], dataset: Any) -> Certified:
    given = [_certificate(course, course.primal) for course in courses]
    reached = [_certificate(course, course.best_primal) for course in courses]
    after = _together(courses)
    manifest, d, bias = dataset.manifest, len(problem.weights), _bias(problem)
    w = np.column_stack([course.best_point.reshape(-1, *problem.weights.shape[1:][: len(courses) == 1]) for course in courses])
    if not problem.strategy:
        w = w[:, 0]
    weights = w[:d].copy() if problem.divisors is None else (w[:d].T / problem.divisors).T
    intercept = w[d] * bias if bias else 0.0 * problem.intercept
    whole = given[0]
    if len(given) > 1:
        primal, bound = (math.fsum(getattr(each, name) for each in given) for name in ("primal", "lower_bound"))
        whole = replace(whole, primal=above(primal, 0.0), lower_bound=below(bound, 0.0) if bound > 0.0 else 0.0)
    begun = {"model": problem.what, "primal": whole.primal, "at_most": after[-1].at_most, "at_least": after[-1].at_least}
    better = model_of(problem, weights, intercept, reached, manifest.fingerprint)
    history = [{"passes": k, "primal": primal, "lower_bound": bound, "gap": primal - bound} for k, _, _, primal, bound in after]
    better = replace(better, recipe=dataset.recipe, history=history, parameters=better.parameters | {BEGUN: begun})
    if problem.divisors is not None:  # the certificate and its plane are about other features than the weights are
        better = replace(better, parameters=better.parameters | {"scale": GIVEN})
    elif not problem.strategy:
        better = replace(better, witness=courses[0].witness)
    elif problem.fit != FREE:  # no training can start from free intercepts of several classes
        better = replace(better, witnesses=tuple(course.witness for course in courses))
    classes = (
        ()
        if len(courses) == 1
        else tuple(zip(problem.labels or (), given, [course.history[-1].at_least for course in courses], strict=True))
    )
    return Certified(
        whole, after[-1].at_least, better, after, "none" if problem.fit is None or problem.fit == 0.0 else problem.fit,
        None if problem.strategy else courses[0].master.bounds, manifest.statistics.n_rows, classes,
    )  # fmt: skip


def _certificate(course: Course, primal: float) -> Certificate:
    oracle = course.oracle
    return Certificate(primal, course.bound, oracle.c_bar, None, None, False, StopReason.MAX_PASSES, unit=oracle.unit)


def _together(courses: list[Course]) -> tuple[AfterPass, ...]:
    """What was known of the sum of their problems after each pass."""
    if len(courses) == 1:
        return tuple(courses[0].history)
    primal, found = math.fsum(course.primal for course in courses), []
    for k in range(max(len(course.history) for course in courses)):
        each = [course.history[min(k, len(course.history) - 1)] for course in courses]
        better, bound = (math.fsum(getattr(one, name) for one in each) for name in ("better_primal", "lower_bound"))
        least = math.fsum(one.at_least * course.primal for one, course in zip(each, courses, strict=True))
        at_most, at_least = ((primal - bound) / primal, least / primal) if primal > 0.0 else (0.0, 0.0)
        found.append(AfterPass(k + 1, at_most, at_least, better, bound))
    return tuple(found)


def nothing() -> Certificate:
    """The certificate of weights about which nothing is known."""
    return Certificate(0.0, 0.0, 1.0, None, None, False, StopReason.MAX_PASSES)


def _bias(problem: Problem) -> float:
    return 1.0 if problem.fit == FREE else float(problem.fit or 0.0)


def model_of(problem: Problem, weights: np.ndarray, intercept: Any, certificates: list[Certificate], fingerprint: str) -> Any:
    """A LinearModel with these weights, or a MulticlassModel."""
    bias = _bias(problem)
    said = {"loss": problem.loss, "C": problem.C, "intercept": FREE if problem.fit == FREE else "regularised" if bias else "none"}
    common: dict[str, Any] = {"bias": bias, "C": float(problem.C or 0.0), "task": problem.task or "binary", "solver": ""}
    labels: Any = problem.labels
    common |= {"parameters": said | problem.options, "fingerprint": fingerprint, "weights": np.ascontiguousarray(weights)}
    if problem.strategy:
        common |= {"labels": labels, "strategy": problem.strategy}
        return MulticlassModel(intercepts=intercept, certificates=tuple(certificates), **common)
    return LinearModel(
        intercept=float(intercept), labels=labels, certificate=certificates[0], positive_weight=problem.positive_weight,
        **common,
    )  # fmt: skip
