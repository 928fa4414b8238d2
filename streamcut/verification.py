"""Check a model's certificate against its data, in one fresh pass.

What is proved, and by what:

* `primal` is recomputed from the rows alone. That the model reaches it is certain.
* `witness_bound` is recomputed from the cutting plane that the model keeps. The cut's slope and offset come from training: that
  no row multiplier was out of its box cannot be seen without them, so this shows that the record is consistent, not that it
  is true.
* `own_bound` is made from the rows alone: the cut at the model's weights, scaled as well as can be. No weights can reach less,
  whatever the model file claims. It is looser, since rows on the margin enter it with all of their weight or with none:
  measured 38 to 95 % of the optimum, and next to nothing when features differ much in scale.
* `combined_bound` is the best mixture of the last two, and as trustworthy as the witness.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.io.memory import MemoryDataset
from streamcut.measures.global_loss import GlobalLoss
from streamcut.models.certificate import Certificate
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.passes.linear import scatter
from streamcut.prediction import as_model, open_store, scored_chunks

AGREEMENT = 1e-9  # relative: recorded and recomputed differ only by the order of their sums
PLAIN = 0.0  # scatter's rounder for ordinary sums: a bound needs no equal bits


@dataclass(frozen=True, slots=True)
class Verification:
    """What a fresh pass over `rows` rows found; every bound is a lower bound of min F. None: not asked for or not possible."""

    rows: int
    same_data: bool
    primal: float
    mean_loss: float
    recorded: Certificate
    witness_bound: float | None
    own_bound: float | None
    combined_bound: float | None

    @property
    def primal_agrees(self) -> bool:
        return _close(self.primal, self.recorded.primal, self.primal)

    @property
    def bound_agrees(self) -> bool | None:
        """None when the model has no witness to compare with."""
        return None if self.witness_bound is None else _close(self.witness_bound, self.recorded.lower_bound, self.primal)

    @property
    def consistent(self) -> bool:
        """The certificate is what this data and the model's witness give, and primal and bounds are in order."""
        bounds = [b for b in (self.witness_bound, self.own_bound, self.combined_bound) if b is not None]
        slack = AGREEMENT * self.primal
        return self.primal_agrees and self.bound_agrees is not False and all(b <= self.primal + slack for b in bounds)


def verify(model: Model | str | os.PathLike, data: Any, *, bound: bool = False, force: bool = False) -> Verification:
    """Recompute the certificate of `model` on `data`: an opened data set, the path of a store, (X, y) or (X, y, row weights).

    bound   also compute bounds from the rows themselves (8 bytes a feature, twice the arithmetic, the same pass)
    force   take data that are not those the model was trained on; the certificate then says nothing about them

    Raises UsageError for other data without `force`, BadInputError for labels or features that the model does not know.
    """
    model = as_model(model)
    if not isinstance(model, LinearModel):
        raise UsageError(
            f"a model of task {model.task} by {model.solver} cannot be verified: only linear ones with one weight vector can"
        )
    sorts = GlobalLoss.trained(model)
    if sorts and bound:
        raise UsageError("bound: only the hinge loss of single rows has a bound from the rows alone")
    if isinstance(data, tuple):
        data = MemoryDataset(data[0], data[1], weight=data[2] if len(data) > 2 else None)
    elif isinstance(data, str | os.PathLike):
        data = open_store(data)
    same = data.manifest.fingerprint == model.fingerprint
    if not same and not force:
        raise UsageError("these are not the data that the model was trained on (fingerprints differ); use --force to go on")
    if sorts:
        return _verified_by_sorting(model, data, same)
    w = np.ascontiguousarray(model.augmented_weights)
    slope = np.zeros(len(w)) if bound else None  # Σ α_i y_i x_i with α_i = C u_i 1[y_i s_i < 1]
    rows, loss, total, offset = 0, 0.0, 0.0, 0.0
    for chunk, scores in scored_chunks(model, data):
        positive = model.is_positive(chunk.y, chunk.first_row)
        u = np.where(positive, model.positive_weight, 1.0)
        if chunk.weight is not None:
            u *= chunk.weight
        sign = np.where(positive, 1.0, -1.0)
        hinge = np.maximum(0.0, 1.0 - sign * scores)
        rows += chunk.n_rows
        loss += float(u @ hinge)
        total += float(u.sum())
        if slope is not None:
            alpha = model.C * u * (hinge > 0)
            offset += float(alpha.sum())
            scatter(chunk.indptr, chunk.indices, chunk.data, alpha * sign, model.bias, PLAIN, slope)
    own, combined = (None, None) if slope is None else _bounds(model, slope, offset)
    return Verification(
        rows=rows,
        same_data=same,
        primal=0.5 * float(w @ w) + model.C * loss,
        mean_loss=loss / total if total else 0.0,
        recorded=model.certificate,
        witness_bound=None if model.witness is None else model.witness.bound(model.certificate.c_bar),
        own_bound=own,
        combined_bound=combined,
    )


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
        witness_bound=None if model.witness is None else model.witness.bound(model.certificate.c_bar),
        own_bound=None,
        combined_bound=None,
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


def _close(a: float, b: float, scale: float) -> bool:
    return abs(a - b) <= AGREEMENT * scale
