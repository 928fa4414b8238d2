"""Check a model's certificate against its rows.

Of a linear model: F at its weights is computed, then it is trained from these weights (where its loss is a sum over rows; else
from 0) without its certificate, until a bound as good as the recorded one is proved (reached), or weights are found that reach
less (refuted), or the passes are used up (undecided). Of a kernel model: its dual variables are the proof, if the rows show them
to be feasible, so one pass decides.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import cast

import numpy as np

from streamcut.certification import Objective, global_objective, objectives, training_options
from streamcut.data.datasets import labelled
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.views import as_trained
from streamcut.foundation.rounding import UNSEEN
from streamcut.io.dataset import Dataset
from streamcut.measures.kernel_dual import KernelClaim, kernel_squares
from streamcut.measures.trained_loss import TrainedLoss
from streamcut.models.certificate import Certificate, StopReason, certificate_of
from streamcut.models.files import as_model
from streamcut.models.kernel import KernelModel
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.oracles.mapped import MappedDataset
from streamcut.prediction import scored_chunks
from streamcut.solvers.progress import Iteration
from streamcut.training import Session, checked, train

PASSES = 100
_SCORING = "scoring, before training", 8 << 20
AGREEMENT = 1e-9  # relative: recorded and recomputed differ only by the order of their sums
_DID = 0.25  # of the worst-case allowance for rounding: actual rounding is at most this
_PART, _PART_OF_CLASS = 1e-3, 0.05  # of the recorded gap: training continues to this, for all classes, or for each
_LEAST = 1e-12  # of the objective: below, float64 has no gap


class Outcome(StrEnum):
    REACHED = "reached"
    REFUTED = "refuted"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Verification:
    """What `rows` rows show about a certificate.

    same_data    whether the model was trained on these rows
    recorded     the certificate; of one-vs-rest the sum of all
    primal       F at the model's weights; the true one is at most `error` away
    lower_bound  no weights can reach less: proved by the rows; None: the record was refuted before
    passes       of the training that proved it; 0 for a kernel model, whose dual variables are the proof
    problems     what is refuted, one clause each
    classes      of one-vs-rest: the same for each class, in the order of the labels
    """

    rows: int
    same_data: bool
    recorded: Certificate
    primal: float
    error: float
    lower_bound: float | None = None
    passes: int = 0
    problems: tuple[str, ...] = ()
    classes: tuple[Verification, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Whether the recorded bound was reached, or something of the record refuted."""
        if self.problems:
            return Outcome.REFUTED
        parts = self.classes or (self,)
        reached = all(one.lower_bound is not None and one.recorded.lower_bound <= one.lower_bound + one.slack for one in parts)
        return Outcome.REACHED if reached else Outcome.UNDECIDED

    @property
    def consistent(self) -> bool:
        """Nothing of the record is refuted."""
        return not self.problems

    @property
    def gap(self) -> float | None:
        """How far above the optimum the model is at most, by the rows alone."""
        return None if self.lower_bound is None else self.primal - self.lower_bound

    @property
    def slack(self) -> float:
        """The error allowed in recorded numbers."""
        return AGREEMENT * self.primal + 2.0 * self.error + UNSEEN


def verify(
    model: Model | str | os.PathLike, data: object, *, max_passes: int = PASSES, memory: str = "auto", force: bool = False
) -> Verification:
    """See streamcut.api."""
    ceiling = Ceiling(memory)
    trained = as_model(model, ceiling.expect_model)
    _check_claims(trained)
    with labelled(trained, data, memory) as rows:
        return _verified(trained, rows, max_passes, memory, force, ceiling)


def _check_claims(model: Model) -> None:
    """Raise UsageError for a model of which there is nothing to prove, or nothing here that could."""
    if model.whole_groups:
        raise UsageError(f"task {model.task}: its certificate cannot be verified; train again, with the same seed")
    if not model.certificates:
        raise UsageError(f"a model by {model.solver} claims no bound, so there is nothing to verify; smo and sampled cuts do")


def _verified(trained: Model, data: Dataset, passes: int, memory: str, force: bool, ceiling: Ceiling) -> Verification:
    data, divisors = as_trained(trained.problem, data, trained.n_features)
    if divisors is not None and isinstance(trained, LinearModel):  # its certificate is for the scaled problem
        trained = replace(trained, weights=np.ascontiguousarray((trained.weights.T * divisors).T))
    if trained.map is not None:
        trained, data = replace(trained, map=None), _features(trained, data)
    same = data.manifest.fingerprint == trained.fingerprint
    if not same and not force:
        raise UsageError(
            "this is not the data that the model was trained on (fingerprints differ): these are other rows, or the same in "
            "another order or in shards of another size (--shard-nnz); use --force to continue"
        )
    if isinstance(trained, KernelModel):
        ceiling.expect_rows(trained, data.manifest)
        return replace(_kernel(trained, data), same_data=same)
    check = _proved(cast(LinearModel, trained), data, passes, memory)
    ceiling.keep()
    return replace(check, same_data=same)


def _features(model: Model, data: Dataset) -> MappedDataset:
    """`data` in the features of the model's map. Raises BadInputError for features that the model does not know."""
    width = data.manifest.statistics.n_features
    if width > model.n_features:
        raise BadInputError(f"the data has {width:,} features, the model only {model.n_features:,}")
    assert model.map is not None
    return MappedDataset(data, model.map)


def _proved(model: LinearModel, data: Dataset, passes: int, memory: str) -> Verification:
    """A linear model: F at its weights, then training."""
    problem, wrong = training_options(model, data), list[str]()
    if "warm_start" in problem:
        chosen, scheduler = checked({**problem, "memory": memory})
        with suppress(BadInputError):  # of other data, on which nothing may be trained
            Session(data, chosen, scheduler=scheduler, more=(_SCORING,)).planned()  # refuses a budget before any row is read
        values = objectives(model, data)
    else:
        value, offset = global_objective(model, data, problem, memory)
        values = [value]
        intercept = float(model.intercept)
        if offset is not None and not abs(intercept + offset) <= AGREEMENT * abs(offset) + value.error:
            wrong.append(f"the offset of its plane is {offset:.10g}, and its intercept {intercept:.10g} is not minus that")
    rows, recorded = data.manifest.statistics.n_rows, model.certificates
    checks = [Verification(rows, True, c, *F) for c, F in zip(recorded, values, strict=True)]
    checks = [replace(one, problems=tuple(_misstated(one))) for one in checks]
    if not wrong and all(one.consistent for one in checks):
        decided, claimed, slack = list[bool](), checks[0].recorded.lower_bound, checks[0].slack

        def see(now: Iteration) -> None:  # of several problems, the end decides
            if len(checks) == 1 and (now.lower_bound >= claimed or now.primal < claimed - slack):
                decided.append(True)

        part = _PART if len(checks) == 1 else _PART_OF_CLASS
        gaps = [(one.primal - one.recorded.lower_bound) / one.primal if one.primal > 0.0 else 0.0 for one in checks]
        problem |= {"tol": None, "tol_relative": max(part * min(gaps), _LEAST), "max_passes": passes, "memory": memory}
        trained = train(data, **problem, on_iteration=see, stop=lambda: bool(decided))
        if trained.labels != model.labels or not math.isclose(trained.C, model.C, rel_tol=AGREEMENT):
            wrong.append(f"training on these rows has labels {trained.labels} and C {trained.C:.10g}, it has other ones")
        passed = trained.history[-1]["passes"]
        checks = [_compared(one, new, passed) for one, new in zip(checks, trained.certificates, strict=True)]
    if len(checks) == 1:
        return replace(checks[0], problems=(*wrong, *checks[0].problems))
    wrong += [f"class {number}: {clause}" for number, one in enumerate(checks) for clause in one.problems]
    primal, error = math.fsum(one.primal for one in checks), math.fsum(one.error for one in checks)
    proved = [one.lower_bound for one in checks if one.lower_bound is not None]
    bound = math.fsum(proved) if len(proved) == len(checks) else None
    return Verification(rows, True, certificate_of(recorded), primal, error, bound, checks[0].passes, tuple(wrong), tuple(checks))


def _misstated(check: Verification) -> Iterator[str]:
    """What F at the weights, and arithmetic, refute."""
    c, F = check.recorded, check.primal
    if not abs(c.primal - c.raised - F) <= check.slack + _DID * c.raised and not c.primal == c.raised == math.inf:
        put = f" (including {c.raised:.3g} added for rounding)" if c.raised > check.slack else ""
        yield f"the objective is {F:.10g}, not {c.primal:.10g}{put}"
    if not c.lower_bound <= F + check.slack:
        yield f"the lower bound {c.lower_bound:.10g} is above the objective {F:.10g}"
    allowed = c.tolerance
    if c.converged is not (c.stop_reason is StopReason.CONVERGED):
        yield f"it says {'' if c.converged else 'not '}converged, and that training ended because {c.stop_reason.because}"
    elif c.converged and not (allowed.rule and c.gap <= allowed.gap + AGREEMENT * c.primal):
        yield f"it says converged, but the gap is {c.gap:.4g} with {allowed.gap:.4g} allowed"


def _compared(one: Verification, new: Certificate, passes: int) -> Verification:
    """`one` with what a certificate of a new training adds."""
    c, wrong = one.recorded, list[str]()
    for what, old, now in (("C times the sum of weights", c.c_bar, new.c_bar), ("the unit of mean losses", c.unit, new.unit)):
        if not math.isclose(old, now, rel_tol=AGREEMENT):
            wrong.append(f"{what} is {now:.10g}, not {old:.10g}")
    if new.primal < c.lower_bound - one.slack:
        wrong.append(f"weights were found that reach {new.primal:.10g}, below the lower bound {c.lower_bound:.10g}")
    return replace(one, lower_bound=new.lower_bound, passes=passes, problems=tuple(wrong))


def _kernel(model: KernelModel, data: Dataset) -> Verification:
    """½‖w‖² from the support vectors, the losses of the rows, and the dual point."""
    rows, loss_sum, total = 0, 0.0, 0.0
    claim, several = KernelClaim(model), model.scores_per_row > 1
    loss = TrainedLoss(model)
    for chunk, scores in scored_chunks(model, data):
        target, u = loss.rows(chunk)
        values = loss.values(target, scores)[:, 0]
        classes = target if several else model.is_positive(chunk.y, chunk.first_row).astype(np.int64)
        claim.meet(chunk, classes, u)
        rows += chunk.n_rows
        counts = u > 0.0  # a loss may be infinite, and no weight times that is nothing
        loss_sum += float(u[counts] @ values[counts])
        total += float(u.sum())
    c, bound = model.certificates[0], claim.bound
    F = Objective(0.5 * float(kernel_squares(model, model.coefficients).sum()) + model.C * loss_sum, claim.resolution)
    check = Verification(rows, True, c, *F, bound)
    wrong = list(_misstated(check))
    if c.lower_bound > bound + check.slack:
        wrong.append(f"its dual variables prove a lower bound of {bound:.10g}, not {c.lower_bound:.10g}")
    if not math.isclose(c.c_bar, model.C * total, rel_tol=AGREEMENT):
        wrong.append(f"C times the sum of weights is {model.C * total:.10g}, not {c.c_bar:.10g}")
    return replace(check, problems=tuple(wrong))
