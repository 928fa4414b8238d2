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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from streamcut.chunk import Chunk
from streamcut.compiled.linear import scatter
from streamcut.errors import BadInputError, UsageError
from streamcut.inputs import open_store
from streamcut.io.memory import MemoryDataset
from streamcut.kernels.kernel import squared_norms
from streamcut.losses.sequence import SequenceRisk
from streamcut.measures.global_loss import GlobalLoss
from streamcut.measures.pointwise import risk_of
from streamcut.models.certificate import SHORTER, Certificate, DualPoint, Witness
from streamcut.models.files import as_model
from streamcut.models.kernel import KernelModel
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.models.multiclass import CRAMMER_SINGER, MulticlassModel
from streamcut.models.nystroem import NystroemModel
from streamcut.models.sequence import ChainModel, KernelSequenceModel, SequenceModel
from streamcut.oracles.nystroem import NystroemDataset
from streamcut.prediction import scored_chunks
from streamcut.rounding import Grids, gamma
from streamcut.solver_table import SOLVER_TABLE

AGREEMENT = 1e-9  # relative: recorded and recomputed differ only by the order of their sums
PLAIN = Grids(0.0, 0.0)  # for ordinary sums: a bound needs no equal bits


@dataclass(frozen=True, slots=True)
class Verification:
    """What a fresh pass over `rows` rows found; every bound is a lower bound of min F. None: not asked for or not possible.

    recorded       the certificate of the model, None when it has none
    witness_bound  of a kernel model 0 when its coefficients are no feasible point for these rows
    resolution     of a kernel: how far rounding may have moved the objective, recorded or recomputed; sums of kernel values can
                   cancel out
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
        return None if self.recorded is None else self._close(self.primal, self.recorded.primal)

    @property
    def bound_agrees(self) -> bool | None:
        """None when the model has no witness to compare with."""
        if self.witness_bound is None or self.recorded is None:
            return None
        return self._close(self.witness_bound, self.recorded.lower_bound)

    def _close(self, one: float, other: float) -> bool:
        return abs(one - other) <= AGREEMENT * self.primal + self.resolution

    @property
    def consistent(self) -> bool:
        """The certificate is what this data and the model's witness give, and primal and bounds are in order."""
        bounds = [b for b in (self.witness_bound, self.own_bound, self.combined_bound) if b is not None]
        bounds += [] if self.recorded is None else [self.recorded.lower_bound]
        slack = AGREEMENT * self.primal + self.resolution
        agrees = self.primal_agrees is not False and self.bound_agrees is not False
        return agrees and all(b <= self.primal + slack for b in bounds) and all(each.consistent for each in self.classes)


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
    if isinstance(trained, NystroemModel):
        trained, data = trained.inner, _features(trained, data)
    if not isinstance(trained, LinearModel | MulticlassModel | KernelModel | SequenceModel | KernelSequenceModel):
        raise UsageError(f"task {trained.task} by {trained.solver} cannot be verified: only its own code knows its loss")
    sorts = isinstance(trained, LinearModel) and GlobalLoss.trained(trained)
    if bound and (sorts or not isinstance(trained, LinearModel)):
        raise UsageError("bound: only linear models with a loss of single rows have a bound from the rows alone")
    same = data.manifest.fingerprint == trained.fingerprint
    if not same and not force:
        raise UsageError("these are not the data that the model was trained on (fingerprints differ); use --force to go on")
    if isinstance(trained, LinearModel):
        return _verified_by_sorting(trained, data, same) if sorts else _linear(trained, data, same, bound)
    if isinstance(trained, ChainModel):
        return _sequences(trained, data, same)
    if isinstance(trained, MulticlassModel) or trained.scores_per_row > 1:
        return _several(trained, data, same)
    return _kernel(trained, data, same)


def _features(model: NystroemModel, data: Any) -> NystroemDataset:
    """`data` as the linear model inside saw it. Raises BadInputError for features that the model does not know."""
    found = data.manifest.statistics.n_features
    if found > model.n_features:
        raise BadInputError(f"the data has {found:,} features, the model only {model.n_features:,}")
    parameters = model.parameters
    identity = {"kernel": model.map.kernel.as_dict(), "landmarks": parameters["nystroem"], "seed": parameters["seed"]}
    return NystroemDataset(data, model.map, identity)


def _linear(model: LinearModel, data: Any, same: bool, bound: bool) -> Verification:
    """A loss of each row."""
    w = np.ascontiguousarray(model.augmented_weights)
    slope = np.zeros(len(w)) if bound else None  # Σ α_i σ_i x_i with α_i = −C u_i ℓ′(z_i)
    risk = risk_of(model)
    rows, loss, total, offset = 0, 0.0, 0.0, 0.0
    for chunk, scores in scored_chunks(model, data):
        model.is_positive(chunk.y, chunk.first_row)  # raises for labels unknown to the model
        u = risk.weights_of(chunk.y, chunk.weight)
        rows += chunk.n_rows
        loss += float(u @ risk.values(chunk.y, scores))
        total += float(u.sum())
        if slope is not None:
            signed, constants = risk.duals(chunk.y, scores)
            offset += model.C * float(u @ constants)
            scatter(chunk.indptr, chunk.indices, chunk.data, model.C * u * signed, model.bias, PLAIN, slope[None])
    own, combined = (None, None) if slope is None else _bounds(model, slope, offset)
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(w @ w) + model.C * loss,
        mean_loss=loss / total if total else 0.0,
        recorded=model.certificate,
        witness_bound=_value(model.witness, model.certificate),
        own_bound=own,
        combined_bound=combined,
    )


def _value(witness: Witness | None, certificate: Certificate) -> float | None:
    return None if witness is None else witness.bound(certificate.c_bar)


def _kernel(model: KernelModel, data: Any, same: bool) -> Verification:
    """Two classes with a kernel: ½‖w‖² of the support vectors alone, the losses of the rows, and the dual where it is claimed."""
    rows, loss, total = 0, 0.0, 0.0
    dual = None if model.certificate is None else _DualPoint(model)
    risk = risk_of(model)
    for chunk, scores in scored_chunks(model, data):
        positive, u = model.is_positive(chunk.y, chunk.first_row), risk.weights_of(chunk.y, chunk.weight)
        rows += chunk.n_rows
        loss += float(u @ risk.values(chunk.y, scores))
        total += float(u.sum())
        if dual is not None:
            dual.meet(chunk, positive.astype(np.int64), model.C * u)
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(_kernel_squares(model, model.coefficients)[0]) + model.C * loss,
        mean_loss=loss / total if total else 0.0,
        recorded=model.certificate,
        witness_bound=None if dual is None else dual.value(),
        resolution=_resolution(model, data, total),
    )


def _resolution(model: KernelModel, data: Any, weight: float) -> float:
    """How far rounding of kernel values may move an objective over rows of this total weight.

    Σ|c| times that of a value is how far a score may be off, and a loss by twice that.
    """
    statistics, X = data.manifest.statistics, model.support
    square = max(statistics.max_squared_norm, float(squared_norms(X).max(initial=0.0)))
    constant = float(model.parameters["bias"]) ** 2 if SOLVER_TABLE[model.solver].constant else 0.0
    one = model.kernel.rounding(square, statistics.max_row_nnz) + gamma(64) * constant
    length = float(np.abs(model.coefficients).sum())
    return length * one * (2.0 * model.C * weight + length)


def _kernel_squares(model: KernelModel, coefficients: np.ndarray) -> np.ndarray:
    """‖w_k‖² of every score with these coefficients of the support vectors, from them alone, float64 (K,).

    The constant term of sampled cuts is a feature like others, the intercept of other solvers is free.
    """
    X = model.support
    vectors = Chunk(X.indptr.astype(np.int64), X.indices, X.data, np.zeros(model.n_support))
    shape = model.n_support, model.scores_per_row
    other = replace(model, coefficients=coefficients, intercept=np.zeros(shape[1]) if coefficients.ndim == 2 else 0.0)
    c = coefficients.reshape(shape)
    squares = (c * other.score_chunk(vectors).reshape(shape)).sum(axis=0)
    constant = float(model.parameters["bias"]) if SOLVER_TABLE[model.solver].constant else 0.0
    return squares + (constant * c.sum(axis=0)) ** 2


class _DualPoint:
    """The point of the dual that a kernel model claims (DualPoint): feasible, if the rows say so.

    That is when every support vector with its class is among the rows, whose C_i then have room for its Σ α, and, where the
    intercept was free, Σ y_i α_i = 0 exactly. Equal rows of one class are as good as one.
    """

    def __init__(self, model: KernelModel) -> None:
        self._model = model
        point = model.point
        own = model.coefficients if point is None else point.coefficients
        if own.ndim == 2:  # what is claimed of wrong classes counts; the row's own then has their sum
            wrong, classes = np.minimum(own, 0.0), np.argmax(own, axis=1)
            rows = np.arange(len(own))
            wrong[rows, classes] = 0.0
            own, alpha = wrong.copy(), -wrong.sum(axis=1)
            own[rows, classes] = alpha
        else:
            classes, alpha = (own > 0.0).astype(np.int64), np.abs(own)
        self._point = DualPoint(own, np.zeros(0))
        self._free_intercept = SOLVER_TABLE[model.solver].intercept and model.parameters["bias"] != 0.0
        X, self._left = model.support, dict[tuple[int, bytes, bytes], float]()
        entries = _entries(X.indptr, X.indices, X.data)
        for (indices, values), number, each in zip(entries, classes.tolist(), alpha.tolist(), strict=True):
            if each > 0.0:
                key = number, indices, values
                self._left[key] = self._left.get(key, 0.0) + SHORTER * each

    def meet(self, chunk: Chunk, classes: np.ndarray, upper: np.ndarray) -> None:
        """Take rows, their classes, and the C_i of each."""
        entries = _entries(chunk.indptr, chunk.indices, chunk.data)
        for (indices, values), number, room in zip(entries, classes.tolist(), upper.tolist(), strict=True):
            key = number, indices, values
            if key in self._left:
                self._left[key] -= room

    def value(self) -> float:
        """The dual there, or 0, which is a bound too, when the point is not feasible."""
        coefficients = self._point.coefficients
        balanced = not self._free_intercept or math.fsum(coefficients) == 0.0
        if not balanced or any(left > 0.0 for left in self._left.values()):
            return 0.0
        return self._point.value(float(_kernel_squares(self._model, coefficients).sum()))


def _entries(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray | None) -> Iterator[tuple[bytes, bytes]]:
    """Of each row what its features and values are, in a form that is equal for equal rows."""
    columns = np.ascontiguousarray(indices, np.int64)
    values = np.ones(len(indices)) if data is None else np.ascontiguousarray(data, np.float64)
    for start, stop in pairwise(indptr.tolist()):
        yield columns[start:stop].tobytes(), values[start:stop].tobytes()


def _several(model: MulticlassModel | KernelModel, data: Any, same: bool) -> Verification:
    """K classes: Crammer and Singer's loss, or K problems in the same pass."""
    together = model.strategy == CRAMMER_SINGER
    certificates: tuple[Certificate, ...]
    if isinstance(model, KernelModel):
        squares = _kernel_squares(model, model.coefficients)
        certificates = () if model.certificate is None else (model.certificate,)
        dual = None if model.certificate is None or not together else _DualPoint(model)
    else:
        squares, certificates, dual = (model.augmented_weights**2).sum(axis=0), model.certificates, None
    rows, total, losses = 0, 0.0, np.zeros(1 if together else model.scores_per_row)
    for chunk, scores in scored_chunks(model, data):
        classes = model.classes_of(chunk.y, chunk.first_row)
        own = classes[:, None] == np.arange(model.scores_per_row)
        u = np.ones(chunk.n_rows) if chunk.weight is None else chunk.weight
        if together:
            losses += u @ (np.max(scores + ~own, axis=1) - scores[own])
        else:
            losses += u @ np.maximum(0.0, 1.0 - np.where(own, scores, -scores))
        rows += chunk.n_rows
        total += float(u.sum())
        if dual is not None:
            dual.meet(chunk, classes, model.C * u)
    squares = squares.sum(keepdims=True) if together else squares
    each = tuple(
        Verification(rows, same, 0.5 * float(square) + model.C * float(loss), float(loss) / total if total else 0.0, recorded)
        for square, loss, recorded in zip(squares, losses, certificates or [None] * len(losses), strict=True)
    )
    if isinstance(model, KernelModel):
        resolution = _resolution(model, data, total)
        each = tuple(replace(found, resolution=resolution) for found in each)
    if together:
        return each[0] if dual is None else replace(each[0], witness_bound=dual.value())
    return Verification(
        rows=rows,
        same_data=same,
        primal=math.fsum(found.primal for found in each),
        mean_loss=math.fsum(found.mean_loss for found in each),
        recorded=_sum_of(certificates) if certificates else None,
        classes=each,
    )


def _sequences(model: SequenceModel | KernelSequenceModel, data: Any, same: bool) -> Verification:
    """Labellings of whole sequences: the loss of each by its best path; with a kernel also the dual that is claimed."""
    rows, loss, risk = 0, np.zeros(2), SequenceRisk(model.labels)
    transitions = np.ascontiguousarray(model.transitions)
    for chunk, scores in scored_chunks(model, data):
        target, z = model.classes_of(chunk.y, chunk.first_row).astype(np.int32), np.ascontiguousarray(scores)
        risk.add(risk.worst(model.starts(chunk), target, z, z, 0.0, transitions)[1], loss)
        rows += chunk.n_rows
    total, witness, resolution = float(loss.sum()), None, 0.0
    if isinstance(model, KernelSequenceModel):
        inner = model.emissions
        C, certificate, square = inner.C, inner.certificate, float(_kernel_squares(inner, inner.coefficients).sum())
        resolution = _resolution(inner, data, float(rows))
        if inner.point is not None:
            dense = inner.point.dense
            witness = inner.point.value(float(_kernel_squares(inner, inner.point.coefficients).sum()) + float(dense @ dense))
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
    primal, bound = (math.fsum(getattr(each, name) for each in certificates) for name in ("primal", "lower_bound"))
    return replace(worst, primal=primal, lower_bound=bound)


def _verified_by_sorting(model: LinearModel, data: Any, same: bool) -> Verification:
    """For losses of pairs and of whole labellings, which C times the number of rows stands before."""
    collected, rows = GlobalLoss(model), 0
    for chunk, scores in scored_chunks(model, data):
        collected.add(chunk, scores)
        rows += chunk.n_rows
    w, loss = model.augmented_weights, collected.value()
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(w @ w) + model.C * rows * loss,
        mean_loss=loss,
        recorded=model.certificate,
        witness_bound=_value(model.witness, model.certificate),
    )


def _bounds(model: LinearModel, slope: np.ndarray, offset: float) -> tuple[float, float | None]:
    """(own bound, combined bound) of the dual point with Σ α = offset and Σ α_i y_i x_i = slope.

    Scaling α by t ∈ [0, 1] keeps it in its box, and so does mixing it with another feasible point: both are a parabola in t.
    """
    own = _best_mixture(np.zeros_like(slope), 0.0, slope, offset)
    if model.witness is None:
        return own, None
    c_bar = model.certificate.c_bar
    return own, max(own, _best_mixture(-c_bar * model.witness.a, c_bar * model.witness.b, slope, offset))


def _best_mixture(g: np.ndarray, e: float, slope: np.ndarray, offset: float) -> float:
    """max over t ∈ [0, 1] of the dual value D(t) = e + t(offset − e) − ½‖g + t(slope − g)‖²."""
    step = slope - g
    length = float(step @ step)
    rise = offset - e - float(g @ step)
    t = min(1.0, max(0.0, rise / length)) if length else float(rise > 0)
    return e - 0.5 * float(g @ g) + t * rise - 0.5 * t * t * length
