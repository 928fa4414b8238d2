"""Check a model's certificate against its data in one new pass, and prove its bound independently (streamcut.proofs.proving).

What is proved, and by what:

* `primal` is recomputed from the rows alone: that the model reaches it is certain. So are C̄ and unit, in which tolerances are
  expressed; whether the gap is within them is then arithmetic.
* `witness_bound` is recomputed from what the model keeps. For a linear model that is a cutting plane: it shows that the record is
  consistent, not that it is true. For a kernel model it is the dual variables, which the rows show to be feasible: this bound is
  true whatever the file claims (of sequences with a kernel, but for the transitions).
* `proof` is made from the rows and the weights alone, by training passes that do not use the certificate.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.bundle.l1_only import L1Only
from streamcut.bundle.penalty import penalty_of
from streamcut.data.datasets import labelled
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.scaled import ScaledDataset
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.losses.sequence import SequenceRisk
from streamcut.measures.classes import loss_of
from streamcut.measures.global_loss import GlobalLoss
from streamcut.measures.kernel_dual import ClaimedPoint, KernelDoubt, claimed_value, kernel_squares
from streamcut.measures.pointwise import risk_of
from streamcut.models.certificate import Certificate, Witness
from streamcut.models.files import as_model
from streamcut.models.kernel import KernelModel
from streamcut.models.linear import LinearModel
from streamcut.models.mapped import MappedModel
from streamcut.models.model import Model
from streamcut.models.multiclass import MulticlassModel
from streamcut.models.sequence import KernelSequenceModel, SequenceModel
from streamcut.oracles.mapped import MappedDataset
from streamcut.prediction import scored_chunks
from streamcut.proofs.claims import AGREEMENT, Proof, Verification, trusted_of
from streamcut.proofs.proving import expect_provable, proofs
from streamcut.proofs.score_doubt import ClassesDoubt, ScoreDoubt, score_doubt
from streamcut.solver_table import SOLVER_TABLE

_GRID = 2.0**-49  # training sums weights and units on grids: the error per row is below this times the largest possible sum


def verify(
    model: Model | str | os.PathLike,
    data: Any,
    *,
    prove: bool = False,
    max_passes: int = 100,
    memory: str = "auto",
    force: bool = False,
) -> Verification:
    """See streamcut.api."""
    ceiling = Ceiling(memory)
    trained: Any = as_model(model, ceiling.expect_model)
    with labelled(trained, data, memory) as rows:
        return _verified(trained, rows, prove, max_passes, memory, force, ceiling)


def _verified(trained: Any, data: Any, prove: bool, passes: int, memory: str, force: bool, ceiling: Ceiling) -> Verification:
    scale = trained.parameters.get("scale", "none")
    if scale != "none":  # its certificate is for the scaled problem
        data = ScaledDataset(data, scale)
        divisors = np.append(data.divisors, np.ones(len(trained.weights)))[: len(trained.weights)]
        trained = replace(trained, weights=np.ascontiguousarray((trained.weights.T * divisors).T))
    if isinstance(trained, MappedModel):
        trained, data = trained.inner, _features(trained, data)
    if not isinstance(trained, LinearModel | MulticlassModel | KernelModel | SequenceModel | KernelSequenceModel):
        raise UsageError(f"task {trained.task} by {trained.solver} cannot be verified: its loss is known only to its own code")
    if trained.solver not in SOLVER_TABLE or "bias" not in trained.parameters:
        raise UsageError("the model does not say how it was trained, so there is no objective to verify")
    if prove:
        expect_provable(trained)
    same = data.manifest.fingerprint == trained.fingerprint
    if not same and not force:
        raise UsageError(
            "this is not the data that the model was trained on (fingerprints differ): these are other rows, or the same in "
            "another order or in shards of another size (--shard-nnz); use --force to continue"
        )
    sorts = isinstance(trained, LinearModel) and GlobalLoss.trained(trained)
    ceiling.expect_rows(trained, data.manifest, GlobalLoss.row_bytes if sorts else (0, 0))
    found = _found(trained, data, same)
    ceiling.keep()
    found = replace(found, wrong=(*found.wrong, *_misstated(trained)), trusted=trusted_of(trained))
    return _with_proof(found, trained, data, passes, memory) if prove else found


def _found(model: Any, data: Any, same: bool) -> Verification:
    """The results of one pass."""
    if isinstance(model, LinearModel):
        return _verified_by_sorting(model, data, same) if GlobalLoss.trained(model) else _linear(model, data, same)
    if isinstance(model, SequenceModel | KernelSequenceModel):
        return _sequences(model, data, same)
    if isinstance(model, MulticlassModel) or model.scores_per_row > 1:
        return _several(model, data, same)
    return _kernel(model, data, same)


def objective_of(model: Any, data: Any) -> list[tuple[float, float]]:
    """(F, what rounding may have done to it) of each problem of a linear model, from one pass over `data`."""
    found = _linear(model, data, True) if isinstance(model, LinearModel) else _several(model, data, True)
    return [(each.primal, 2.0 * each.resolution) for each in found.classes or (found,)]


def _with_proof(found: Verification, model: Any, data: Any, passes: int, memory: str) -> Verification:
    """`found`, with proofs of the bounds of its problems."""
    if isinstance(model, KernelModel):
        bound = found.witness_bound
        return replace(found, proof=None if bound is None else Proof(bound, found.primal, 0))
    each = found.classes or (found,)
    proved = proofs(model, data, each, passes=passes, memory=memory)
    if not found.classes:
        return replace(found, proof=proved[0])
    bound, least = (math.fsum(getattr(one, name) for one in proved) for name in ("lower_bound", "least"))
    classes = tuple(replace(one, proof=proof) for one, proof in zip(each, proved, strict=True))
    return replace(found, proof=Proof(bound, least, proved[0].passes), classes=classes)


def _misstated(model: Any) -> tuple[str, ...]:
    """Claims that are refuted without rows: an intercept where there can be none, tolerances that were not requested."""
    inner, wrong = model.emissions if isinstance(model, KernelSequenceModel) else model, []
    intercept = np.atleast_1d(inner.intercepts if hasattr(inner, "intercepts") else inner.intercept)
    if not isinstance(inner, KernelModel):
        if inner.bias == 0.0 and np.any(intercept):
            wrong.append("it has an intercept, and was trained without a bias feature")
    elif SOLVER_TABLE[inner.solver].constant:  # that of the kernel's constant term
        c = inner.coefficients.reshape(inner.n_support, -1)
        sums, sizes = (float(inner.parameters["bias"]) ** 2 * each.sum(axis=0) for each in (c, np.abs(c)))
        if np.any(np.abs(intercept - sums) > AGREEMENT * sizes):
            wrong.append("its intercept is not what its coefficients give")
    if model.task == "one-class" and inner.labels != (-1.0, 1.0):
        wrong.append("its labels for rows outside and inside are not -1 and 1")
    certificates = inner.certificates if isinstance(inner, MulticlassModel) else (inner.certificate,)
    asked, options = model.parameters, SOLVER_TABLE[model.solver].options
    for name in ("tol", "tol_relative"):
        recorded = {getattr(c, name) for c in certificates if c is not None}
        if name in options and name in asked and recorded - {asked[name]}:
            wrong.append(f"its record says {name} {recorded.pop()}, its parameters {asked[name]}")
    return tuple(wrong)


def _features(model: MappedModel, data: Any) -> MappedDataset:
    """`data` as the inner linear model received it. Raises BadInputError for features that the model does not know."""
    found = data.manifest.statistics.n_features
    if found > model.n_features:
        raise BadInputError(f"the data has {found:,} features, the model only {model.n_features:,}")
    return MappedDataset(data, model.map)


class _Unit:
    """The unit of mean losses: 1, or for numbers about that of the best constant; where all are equal, of w = 0."""

    def __init__(self, risk: PointwiseRisk, statistics: Any) -> None:
        self.equal = risk.loss.targets == "numbers" and statistics.label_min == statistics.label_max
        self._least = 1.0 if self.equal else 1e-6  # times the mean loss at w = 0
        self._risk, self._scores, self.doubt, weight = risk, np.zeros(0), 0.0, statistics.weight_sum
        if risk.loss.targets == "numbers":
            weight = float(statistics.n_rows) if weight is None else weight
            scale = risk.scale(weight, statistics.label_min, statistics.label_max)
            self._scores = np.append(risk.loss.constants(scale), 0.0)
            ends = np.array([scale.lowest, scale.highest])
            worst = max(float(risk.values(ends, np.full(2, score)).max()) for score in self._scores.tolist())
            self.doubt = _GRID * statistics.n_rows * worst
        self._losses = np.zeros(len(self._scores))

    def add(self, y: np.ndarray, u: np.ndarray) -> None:
        for number, score in enumerate(self._scores.tolist()):
            self._losses[number] += float(u[u > 0.0] @ self._risk.values(y, np.full(len(y), score))[u > 0.0])

    def value(self, total: float) -> float:
        """The unit, for rows whose weights sum to `total`."""
        known = len(self._losses) > 0 and self._losses[-1] > 0.0
        return float(max(self._losses.min(), self._least * self._losses[-1])) / total if known else 1.0


def _linear(model: LinearModel, data: Any, same: bool) -> Verification:
    """Losses of single rows."""
    penalty = L1Only(model.l1) if model.alone else penalty_of(model.l1)
    risk, doubt, recorded = risk_of(model), ScoreDoubt(model, data.manifest.statistics), model.certificate
    rows, loss, total, unit = 0, 0.0, 0.0, _Unit(risk, data.manifest.statistics)
    for chunk, scores in scored_chunks(model, data):
        if model.labels is not None:
            model.is_positive(chunk.y, chunk.first_row)  # raises for labels unknown to the model
        u = risk.weights_of(chunk.y, chunk.weight)
        rows += chunk.n_rows
        counts = u > 0.0  # a loss may be infinite, and no weight times that is nothing
        loss += float(u[counts] @ risk.values(chunk.y, scores)[counts])
        total += float(u.sum())
        doubt.add(risk, chunk.y, scores, u)
        unit.add(chunk.y, u)
    return Verification(
        rows=rows,
        same_data=same,
        primal=penalty.value(np.ascontiguousarray(model.trained_weights)) + model.C * loss,
        mean_loss=loss / total if total else 0.0,
        recorded=recorded,
        c_bar=model.C * total,
        unit=unit.value(total),
        equal=unit.equal,
        doubts=(_weight_doubt(data, model.C * max(1.0, model.positive_weight)), unit.doubt),
        witness_bound=_value(model.witness, recorded.c_bar, model.l1, recorded.primal if model.alone else None),
        resolution=model.C * doubt.loss,
    )


def _weight_doubt(data: Any, factor: float) -> float:
    """The error bound of training's sum of weights, times `factor`."""
    statistics = data.manifest.statistics
    weight = statistics.n_rows if statistics.weight_sum is None else statistics.weight_sum
    return _GRID * statistics.n_rows * weight * factor


def _value(witness: Witness | None, c_bar: float, l1: float = 0.0, most: float | None = None) -> float | None:
    return None if witness is None else witness.bound(c_bar, l1, most)


def _kernel(model: KernelModel, data: Any, same: bool) -> Verification:
    """One score with a kernel: ½‖w‖² from the support vectors, the losses of the rows, and the dual where claimed."""
    rows, loss, total = 0, 0.0, 0.0
    dual = None if model.certificate is None else ClaimedPoint(model)
    risk, doubt = risk_of(model), KernelDoubt(model)
    for chunk, scores in scored_chunks(model, data):
        u = risk.weights_of(chunk.y, chunk.weight)
        doubt.meet(chunk, u)
        positive = model.is_positive(chunk.y, chunk.first_row) if model.labels else None  # raises for unknown labels
        rows += chunk.n_rows
        counts = u > 0.0  # a loss may be infinite, and no weight times that is nothing
        loss += float(u[counts] @ risk.values(chunk.y, scores)[counts])
        total += float(u.sum())
        if dual is not None and positive is not None:
            dual.meet(chunk, positive.astype(np.int64), model.C * u)
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(kernel_squares(model, model.coefficients)[0]) + model.C * loss,
        mean_loss=loss / total if total else 0.0,
        recorded=model.certificate,
        c_bar=model.C * total,
        witness_bound=None if dual is None else dual.value(),
        resolution=doubt.resolution,
    )


def _several(model: MulticlassModel | KernelModel, data: Any, same: bool) -> Verification:
    """K classes: one joint loss, or K problems in the same pass."""
    loss_of_classes = loss_of(model)
    problems = loss_of_classes.problems
    certificates: tuple[Certificate, ...]
    witnesses: tuple[Witness, ...] = ()
    doubt, kernel_doubt, penalty = None, None, penalty_of(0.0)
    if isinstance(model, KernelModel):
        kernel_doubt = KernelDoubt(model)
        squares = kernel_squares(model, model.coefficients)
        certificates = () if model.certificate is None else (model.certificate,)
        dual = None if model.certificate is None or problems > 1 else ClaimedPoint(model)
        prices = 0.5 * (squares.sum(keepdims=True) if problems == 1 else squares)
    else:
        W, penalty, dual = model.trained_weights, penalty_of(model.l1), None
        certificates, witnesses = model.certificates, model.witnesses
        prices = np.array([penalty.value(np.ascontiguousarray(w)) for w in (W.T if problems > 1 else [W.reshape(-1)])])
        doubt = ClassesDoubt(model, data.manifest.statistics, problems)
    rows, total, losses = 0, 0.0, np.zeros(problems)
    for chunk, scores in scored_chunks(model, data):
        classes = model.classes_of(chunk.y, chunk.first_row)
        u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        values = loss_of_classes.values(classes, scores)
        losses += u @ values
        rows += chunk.n_rows
        total += float(u.sum())
        if dual is not None:
            dual.meet(chunk, classes, model.C * u)
        if kernel_doubt is not None:
            kernel_doubt.meet(chunk, u)
        if doubt is not None:
            doubt.add(loss_of_classes, classes, scores, values, u)
    doubts = _weight_doubt(data, model.C), 0.0
    c_bar, means = model.C * total, losses / total if total else np.zeros(problems)
    each = tuple(
        Verification(rows, same, float(price) + model.C * float(loss), float(mean), recorded, c_bar, doubts=doubts)
        for price, loss, mean, recorded in zip(prices, losses, means, certificates or [None] * problems, strict=True)
    )
    if witnesses:
        known = [_value(witness, found.c_bar, penalty.l1) for witness, found in zip(witnesses, certificates, strict=True)]
        each = tuple(replace(found, witness_bound=bound) for found, bound in zip(each, known, strict=True))
    if kernel_doubt is not None:
        each = tuple(replace(found, resolution=kernel_doubt.resolution) for found in each)
    if doubt is not None:
        doubts = (model.C * doubt.losses).tolist()
        each = tuple(replace(found, resolution=resolution) for found, resolution in zip(each, doubts, strict=True))
    if problems == 1:
        return each[0] if dual is None else replace(each[0], witness_bound=dual.value())
    return Verification(
        rows=rows,
        same_data=same,
        primal=math.fsum(found.primal for found in each),
        mean_loss=math.fsum(found.mean_loss for found in each),
        recorded=_sum_of(certificates) if certificates else None,
        c_bar=c_bar,
        witness_bound=_sum_of_bounds([found.witness_bound for found in each]),
        resolution=math.fsum(found.resolution for found in each),
        classes=each,
    )


def _sum_of_bounds(bounds: list[float | None]) -> float | None:
    """The sum; None where there are no bounds."""
    known = [bound for bound in bounds if bound is not None]
    return math.fsum(known) if len(known) == len(bounds) else None


def _sequences(model: SequenceModel | KernelSequenceModel, data: Any, same: bool) -> Verification:
    """Labellings of whole sequences: the loss of each by its best path; with a kernel also the claimed dual."""
    rows, longest, loss, risk = 0, 0, np.zeros(2), SequenceRisk(model.labels)
    transitions = np.ascontiguousarray(model.transitions)
    doubt = KernelDoubt(model.emissions) if isinstance(model, KernelSequenceModel) else None
    moves = float((transitions**2).sum())
    for chunk, scores in scored_chunks(model, data):
        if doubt is not None:
            doubt.meet(chunk, np.ones(chunk.n_rows))
        target, z = model.classes_of(chunk.y, chunk.first_row).astype(np.int32), np.ascontiguousarray(scores)
        starts = model.starts(chunk)
        risk.add(risk.worst(starts, target, z, z, 0.0, transitions)[1], loss)
        longest = max(longest, int(np.diff(starts).max(initial=0)))
        rows += chunk.n_rows
    total, witness, resolution = float(loss.sum()), None, 0.0
    if isinstance(model, KernelSequenceModel):
        assert doubt is not None
        inner = model.emissions
        C, certificate, square = inner.C, inner.certificate, float(kernel_squares(inner, inner.coefficients).sum())
        resolution = doubt.resolution
        if inner.point is not None:
            witness = claimed_value(inner, inner.point)
    else:
        C, certificate, square = model.C, model.certificate, float((model.augmented_weights**2).sum())
        witness = _value(model.witness, certificate.c_bar)
        near = score_doubt(data.manifest.statistics, model.bias, math.sqrt(square + moves), entries=4 * longest, longer=4.0)
        resolution = 2.0 * C * rows * near
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * (square + moves) + C * total,
        mean_loss=total / rows if rows else 0.0,
        recorded=certificate,
        c_bar=C * rows,
        witness_bound=witness,
        resolution=resolution,
    )


def _sum_of(certificates: tuple[Certificate, ...]) -> Certificate:
    """The certificate of the sum of the classes' objectives."""
    worst = next((each for each in certificates if not each.converged), certificates[0])
    parts = ("primal", "lower_bound", "raised")
    primal, bound, raised = (math.fsum(getattr(each, name) for each in certificates) for name in parts)
    return replace(worst, primal=primal, lower_bound=bound, raised=raised)


def _verified_by_sorting(model: LinearModel, data: Any, same: bool) -> Verification:
    """For losses of pairs and of whole labellings, whose factor is C times the number of rows."""
    collected, rows = GlobalLoss(model), 0
    for chunk, scores in scored_chunks(model, data):
        collected.add(chunk, scores)
        rows += chunk.n_rows
    w = model.trained_weights
    near, wrong = score_doubt(data.manifest.statistics, model.bias, math.sqrt(float(w @ w))), list[str]()
    offset, loss = collected.offset(), collected.value()
    if offset is not None and not abs(model.intercept + offset) <= AGREEMENT * abs(offset) + 4.0 * near:
        wrong.append(f"the offset of its plane is {offset:.10g}, and its intercept {model.intercept:.10g} is not minus that")
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(w @ w) + model.C * rows * loss,
        mean_loss=loss,
        recorded=model.certificate,
        c_bar=model.C * rows,
        witness_bound=_value(model.witness, model.certificate.c_bar),
        resolution=2.0 * model.C * rows * near,
        wrong=tuple(wrong),
    )
