"""Check a model's certificate against its data, in one fresh pass.

What is proved, and by what:

* `primal` is recomputed from the rows alone. That the model reaches it is certain.
* `witness_bound` is recomputed from what the model keeps. Of a linear model that is a cutting plane, whose slope and offset come
  from training: that no row multiplier was out of its box cannot be seen without them, so this shows that the record is
  consistent, not that it is true. Of a kernel model it is the dual variables themselves, and that they are a feasible point is
  seen in the rows: this bound is true whatever the model file claims. Only of sequences with a kernel it is not seen that the
  transitions are those of the labellings behind the dual variables.
* `own_bound` is made from the rows alone: the cut at the model's weights, scaled as well as can be. No weights can reach less,
  whatever the model file claims. It is looser, since rows on the margin enter it with all of their weight or with none:
  measured 38 to 95 % of the optimum, and next to nothing when features differ much in scale.
* `combined_bound` is the best mixture of the last two, and as trustworthy as the witness.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamcut.bundle.penalty import penalty_of
from streamcut.errors import BadInputError, UsageError
from streamcut.execution.scaled import ScaledDataset
from streamcut.inputs import open_store
from streamcut.io.memory import MemoryDataset
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
from streamcut.models.sequence import ChainModel, KernelSequenceModel, SequenceModel
from streamcut.oracles.mapped import MappedDataset
from streamcut.prediction import scored_chunks
from streamcut.rounding import UNSEEN
from streamcut.row_bounds import ClassesDoubt, OwnCuts, ScoreDoubt
from streamcut.solver_table import SOLVER_TABLE

AGREEMENT = 1e-9  # relative: recorded and recomputed differ only by the order of their sums


@dataclass(frozen=True, slots=True)
class Verification:
    """What a fresh pass over `rows` rows found; every bound is a lower bound of min F. None: not asked for or not possible.

    recorded       the certificate of the model, None when it has none
    witness_bound  of a kernel model 0 when its coefficients are no feasible point for these rows
    resolution     how far rounding may have moved the objective that was recomputed: sums can cancel out
    classes        of a model of each class against the rest: what was found for each, in the order of the labels; the rest of
                   this record, and of `recorded`, is then the sum over them
    """

    rows: int
    same_data: bool
    primal: float
    mean_loss: float
    recorded: Certificate | None
    witness_bound: float | None = None
    own_bound: float | None = None
    combined_bound: float | None = None
    resolution: float = 0.0
    classes: tuple[Verification, ...] = ()

    @property
    def primal_agrees(self) -> bool | None:
        """None when the model has no certificate to compare with."""
        if self.recorded is None:
            return None
        above = self.recorded.primal - self.primal  # by what was put on it for rounding, and as much that rounding did
        return -self._slack <= above <= self._slack + 2.0 * self.recorded.raised

    @property
    def bound_agrees(self) -> bool | None:
        """None when the model has no witness to compare with."""
        if self.witness_bound is None or self.recorded is None:
            return None
        return abs(self.witness_bound - self.recorded.lower_bound) <= self._slack

    @property
    def _slack(self) -> float:
        return AGREEMENT * self.primal + 2.0 * self.resolution + UNSEEN  # what is recorded may be off by as much

    @property
    def consistent(self) -> bool:
        """The certificate is what this data and the model's witness give, and primal and bounds are in order."""
        bounds = [b for b in (self.witness_bound, self.own_bound, self.combined_bound) if b is not None]
        bounds += [] if self.recorded is None else [self.recorded.lower_bound]
        agrees = self.primal_agrees is not False and self.bound_agrees is not False
        return agrees and all(b <= self.primal + self._slack for b in bounds) and all(each.consistent for each in self.classes)


def verify(model: Model | str | os.PathLike, data: Any, *, bound: bool = False, force: bool = False) -> Verification:
    """Recompute the certificate of `model` on `data`: an opened data set, the path of a store, (X, y) or (X, y, row weights).

    bound   also compute bounds from the rows themselves (8 bytes a feature, twice the arithmetic, the same pass)
    force   take data that are not those the model was trained on; the certificate then says nothing about them

    Of a model without certificate the objective alone is computed, for the C that it has.
    Raises UsageError for other data without `force`, BadInputError for labels or features that the model does not know.
    """
    trained: Any = as_model(model)
    if isinstance(data, tuple):
        data = MemoryDataset(data[0], data[1], weight=data[2] if len(data) > 2 else None)
    elif isinstance(data, str | os.PathLike):
        data = open_store(data)
    scale = trained.parameters.get("scale", "none")
    if scale != "none":  # its certificate is about the scaled problem
        data = ScaledDataset(data, scale)
        divisors = _as_long(data.divisors, len(trained.weights))
        trained = replace(trained, weights=np.ascontiguousarray((trained.weights.T * divisors).T))
    if isinstance(trained, MappedModel):
        trained, data = trained.inner, _features(trained, data)
    if not isinstance(trained, LinearModel | MulticlassModel | KernelModel | SequenceModel | KernelSequenceModel):
        raise UsageError(f"task {trained.task} by {trained.solver} cannot be verified: only its own code knows its loss")
    if "rounded" in trained.parameters:
        raise UsageError("the weights of a compact model are rounded; verify the model that it was made from")
    if trained.solver not in SOLVER_TABLE or "bias" not in trained.parameters:
        raise UsageError("the model does not say how it was trained, so there is no objective to verify")
    sorts = isinstance(trained, LinearModel) and GlobalLoss.trained(trained)
    if bound and (sorts or not isinstance(trained, LinearModel | MulticlassModel)):
        raise UsageError("bound: only linear models with a loss of single rows have a bound from the rows alone")
    same = data.manifest.fingerprint == trained.fingerprint
    if not same and not force:
        raise UsageError("these are not the data that the model was trained on (fingerprints differ); use --force to go on")
    if isinstance(trained, LinearModel):
        return _verified_by_sorting(trained, data, same) if sorts else _linear(trained, data, same, bound)
    if isinstance(trained, ChainModel):
        return _sequences(trained, data, same)
    if isinstance(trained, MulticlassModel) or trained.scores_per_row > 1:
        return _several(trained, data, same, bound)
    return _kernel(trained, data, same)


def _as_long(values: np.ndarray, size: int) -> np.ndarray:
    """The first `size` of them, then ones."""
    return np.concatenate([values[:size], np.ones(max(0, size - len(values)))])


def _features(model: MappedModel, data: Any) -> MappedDataset:
    """`data` as the linear model inside saw it. Raises BadInputError for features that the model does not know."""
    found = data.manifest.statistics.n_features
    if found > model.n_features:
        raise BadInputError(f"the data has {found:,} features, the model only {model.n_features:,}")
    return MappedDataset(data, model.map)


def _linear(model: LinearModel, data: Any, same: bool, bound: bool) -> Verification:
    """A loss of each row."""
    penalty = penalty_of(model.l1)
    w = np.ascontiguousarray(model.augmented_weights)
    risk, doubt = risk_of(model), ScoreDoubt(model, data.manifest.statistics)
    own = OwnCuts(model, data.manifest.statistics, 1, 1, risk.rounding.conjugate) if bound else None
    rows, loss, total = 0, 0.0, 0.0
    for chunk, scores in scored_chunks(model, data):
        if model.labels is not None:
            model.is_positive(chunk.y, chunk.first_row)  # raises for labels unknown to the model
        u = risk.weights_of(chunk.y, chunk.weight)
        rows += chunk.n_rows
        counts = u > 0.0  # a loss may be infinite, and no weight times that is nothing
        loss += float(u[counts] @ risk.values(chunk.y, scores)[counts])
        total += float(u.sum())
        doubt.add(risk, chunk.y, scores, u)
        if own is not None:
            own.add(chunk, u, *(each[:, None] for each in risk.duals(chunk.y, scores)))
    return Verification(
        rows=rows,
        same_data=same,
        primal=penalty.value(w) + model.C * loss,
        mean_loss=loss / total if total else 0.0,
        recorded=model.certificate,
        witness_bound=None if model.witness is None else model.witness.bound(model.certificate.c_bar, model.l1),
        own_bound=None if own is None else own.bounds()[0],
        combined_bound=None
        if own is None or model.witness is None
        else own.bounds_with([model.witness], [model.certificate.c_bar])[0],
        resolution=model.C * doubt.loss,
    )


def _value(witness: Witness | None, certificate: Certificate) -> float | None:
    return None if witness is None else witness.bound(certificate.c_bar)


def _kernel(model: KernelModel, data: Any, same: bool) -> Verification:
    """One score with a kernel: ½‖w‖² of the support vectors alone, the losses of the rows, and the dual where it is claimed."""
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
        witness_bound=None if dual is None else dual.value(),
        resolution=doubt.resolution,
    )


def _several(model: MulticlassModel | KernelModel, data: Any, same: bool, bound: bool) -> Verification:
    """K classes: a loss of all together, or K problems in the same pass."""
    loss_of_classes = loss_of(model)
    problems, K = loss_of_classes.problems, model.scores_per_row
    certificates: tuple[Certificate, ...]
    witnesses: tuple[Witness, ...] = ()
    own, doubt, kernel_doubt, penalty = None, None, None, penalty_of(0.0)
    if isinstance(model, KernelModel):
        kernel_doubt = KernelDoubt(model)
        squares = kernel_squares(model, model.coefficients)
        certificates = () if model.certificate is None else (model.certificate,)
        dual = None if model.certificate is None or problems > 1 else ClaimedPoint(model)
        prices = 0.5 * (squares.sum(keepdims=True) if problems == 1 else squares)
    else:
        W, penalty, dual = model.augmented_weights, penalty_of(model.l1), None
        certificates, witnesses = model.certificates, model.witnesses
        prices = np.array([penalty.value(np.ascontiguousarray(w)) for w in (W.T if problems > 1 else [W.reshape(-1)])])
        doubt = ClassesDoubt(model, data.manifest.statistics, problems)
        own = OwnCuts(model, data.manifest.statistics, K, problems, loss_of_classes.conjugate) if bound else None
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
        if own is not None:
            own.add(chunk, u, *loss_of_classes.duals(classes, scores))
    each = tuple(
        Verification(rows, same, float(price) + model.C * float(loss), float(loss) / total if total else 0.0, recorded)
        for price, loss, recorded in zip(prices, losses, certificates or [None] * problems, strict=True)
    )
    if witnesses:
        c_bars, l1 = [certificate.c_bar for certificate in certificates], penalty.l1
        known = [witness.bound(c_bar, l1) for witness, c_bar in zip(witnesses, c_bars, strict=True)]
        each = tuple(replace(found, witness_bound=bound) for found, bound in zip(each, known, strict=True))
        if own is not None:
            mixed = own.bounds_with(witnesses, c_bars)
            each = tuple(replace(found, combined_bound=bound) for found, bound in zip(each, mixed, strict=True))
    if own is not None:
        each = tuple(replace(found, own_bound=bound) for found, bound in zip(each, own.bounds(), strict=True))
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
        witness_bound=_sum_of_bounds([found.witness_bound for found in each]),
        own_bound=_sum_of_bounds([found.own_bound for found in each]),
        combined_bound=_sum_of_bounds([found.combined_bound for found in each]),
        resolution=math.fsum(found.resolution for found in each),
        classes=each,
    )


def _sum_of_bounds(bounds: list[float | None]) -> float | None:
    """None where there are none."""
    known = [bound for bound in bounds if bound is not None]
    return math.fsum(known) if len(known) == len(bounds) else None


def _sequences(model: SequenceModel | KernelSequenceModel, data: Any, same: bool) -> Verification:
    """Labellings of whole sequences: the loss of each by its best path; with a kernel also the dual that is claimed."""
    rows, loss, risk = 0, np.zeros(2), SequenceRisk(model.labels)
    transitions = np.ascontiguousarray(model.transitions)
    doubt = KernelDoubt(model.emissions) if isinstance(model, KernelSequenceModel) else None
    for chunk, scores in scored_chunks(model, data):
        if doubt is not None:
            doubt.meet(chunk, np.ones(chunk.n_rows))
        target, z = model.classes_of(chunk.y, chunk.first_row).astype(np.int32), np.ascontiguousarray(scores)
        risk.add(risk.worst(model.starts(chunk), target, z, z, 0.0, transitions)[1], loss)
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
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * (square + float((transitions**2).sum())) + C * total,
        mean_loss=total / rows if rows else 0.0,
        recorded=certificate,
        witness_bound=witness,
        resolution=resolution,
    )


def _sum_of(certificates: tuple[Certificate, ...]) -> Certificate:
    """What the classes' certificates say together of the sum of their objectives."""
    worst = next((each for each in certificates if not each.converged), certificates[0])
    primal, bound, raised = (
        math.fsum(getattr(each, name) for each in certificates) for name in ("primal", "lower_bound", "raised")
    )
    return replace(worst, primal=primal, lower_bound=bound, raised=raised)


def _verified_by_sorting(model: LinearModel, data: Any, same: bool) -> Verification:
    """For losses of pairs and of whole labellings, which C times the number of rows stands before."""
    collected, rows = GlobalLoss(model), 0
    for chunk, scores in scored_chunks(model, data):
        collected.add(chunk, scores)
        rows += chunk.n_rows
    w, loss = model.trained_weights, collected.value()
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(w @ w) + model.C * rows * loss,
        mean_loss=loss,
        recorded=model.certificate,
        witness_bound=_value(model.witness, model.certificate),
    )
