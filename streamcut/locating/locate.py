"""`locate`: where the exact optimum of a model's problem is, as an ellipsoid around its weights.

Problem   F(v) = ½ Σ ridge_j v_j² + C Σ u_i ℓ_i(⟨v, x_i⟩), a smooth loss; v has the intercept last, if there is one.
Given     weights v_b, a bound D ≤ min F, and the rows.
Returns   Q with |⟨v_b − v*, x⟩| ≤ √(xᵀQx) for every x, and bounds of standard errors.
Stops     when the rows' ρ shrink by less than a part _SETTLED, or after _ROUNDS passes.

    v_b = Newton's method from v_b, while F falls (streamcut.locating.locate)
    one pass: G = F(v_b) − D, the gradient g;  r = √(2G)
    free intercept: one pass for the distance of b* (streamcut.locating.intercept)
    ρ_i = r‖x_i‖, or r‖x_i − c‖ + that
    repeat
        one pass: H = diag(ridge) + C Σ u_i h_i x_i x_iᵀ,  h_i = min ℓ″ on [z_i − ρ_i, z_i + ρ_i]
        e = min(√(2G), ‖g‖ in the norm of H⁻¹);  Q = e² H⁻¹;  ρ_i = √(x_iᵀQx_i), or its first value if that is less
    one pass: the same with max ℓ″; the standard errors are between the two

On the way from v_b to v* no row's margin leaves its interval, so F bends there by H at least: ½‖v_b − v*‖²_H ≤ F(v_b) − F(v*),
and ‖v_b − v*‖²_H ≤ ⟨g, v_b − v*⟩, whence v* is within ½‖g‖ (in the norm of H⁻¹) of v_b − ½H⁻¹g, too. Every ρ is proved by the one
before, so each round is as valid as the first. ρ_i is really an interval, the tightest that all known bounds on v* give.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from typing import Any

import numpy as np

from streamcut.config import SCALES
from streamcut.data.datasets import opened
from streamcut.errors import MemoryBudgetError, UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.scaled import ScaledDataset
from streamcut.foundation.rounding import above, gamma
from streamcut.foundation.units import format_bytes
from streamcut.io.dataset import Dataset
from streamcut.locating import factor
from streamcut.locating.answers import Certifier
from streamcut.locating.intercept import ROW_BYTES
from streamcut.locating.nearby import nearby
from streamcut.locating.problem import LIKELIHOODS, Located, expect_locatable, gap_part, is_scaled, located_problem, tighter
from streamcut.locating.regions import Ellipsoid, Region
from streamcut.locating.sums import (
    SHRUNK,
    Curvature,
    Rows,
    Slope,
    margins_within,
    rows_of,
    slope,
)
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.models.optimum import Optimum, digest


class TooFarError(UsageError):
    """The gap is too wide for any proof."""


MANY = 4096  # features: a matrix of as many rows and columns is 128 MB
_ROUNDS = 12
_SETTLED = 0.02
_MATRICES = 3 + factor.MATRICES  # D × D, of float64


def locate(model: Model | str | os.PathLike, data: Any, *, memory: str = "auto") -> LinearModel:
    """`model` with the location of its problem's exact optimum (`optimum`): an ellipsoid around its weights.

    `predict(…, certified=True)` proves far more labels with it than by the gap alone, and `standard_errors()` needs no data
    then; saving the model keeps it, in 4 D² bytes for D features.

    model   a linear model for two classes or for numbers with a smooth loss: made by `train`, or `better` of any `certify`
    data    the rows that it was trained on: an opened data set, the path of a store, (X, y) or (X, y, row weights); they
            are read 10 to 60 times
    memory  "4GB", "50%" or "auto": ceiling on the resident memory of this process, which holds seven D × D matrices

    Raises UsageError for other models, for rows that it was not trained on, and for a gap too wide for a proof, naming one that
    would do; MemoryBudgetError.
    """
    ceiling = Ceiling(memory)
    given = expect_locatable(as_model(model, ceiling.expect_model))
    rows, divisors = its_rows(given, data)
    trained = given
    if divisors is not None:
        trained = replace(given, weights=np.ascontiguousarray(given.weights * divisors))
    problem = located_problem(trained)
    _expect(ceiling, problem, rows)
    search = _Search(problem, rows)
    near = polished(problem, rows, search.at)
    found = search.found() if near is None else _seen_from(problem.at, near.at, _Search(near, rows))
    found = replace(found, gap=search.gap)
    ceiling.keep()
    back = np.append(np.ones(0) if divisors is None else 1.0 / divisors, np.ones(len(problem.at)))[: len(problem.at)]
    return replace(given, optimum=_rescaled(found, back, given))


def _seen_from(at: np.ndarray, center: np.ndarray, search: _Search) -> Optimum:
    """The result of a search round `center`, relative to the weights `at`: at − v* is `step` plus a rest; Q⁻¹ ⪯ H ⪯ tr H."""
    found = search.found()
    step = (at - center) + found.step
    far = float(np.linalg.norm(step)) * math.sqrt(search.trace) * (1.0 + gamma(len(at) + 64.0))
    return replace(found, step=step, distance=found.half + far)


def its_rows(model: LinearModel, data: Any) -> tuple[Dataset, np.ndarray | None]:
    """(the rows as they were trained on, what the features were divided by, float64 (n_features,), or None).

    Raises UsageError if `data` are not those that `model` was trained on.
    """
    rows, divisors = opened(data), None
    if is_scaled(model):
        if model.parameters["scale"] not in SCALES:
            raise UsageError(
                "the model's certificate is about features that a scaler of another program divided; scale the rows by it, and "
                "certify the last step of the pipeline on these"
            )
        rows = ScaledDataset(rows, model.parameters["scale"])
        divisors = np.concatenate([rows.divisors, np.ones(model.n_features)])[: model.n_features]
    if rows.manifest.fingerprint != model.fingerprint:
        raise UsageError(
            "these are not the rows that the model was trained on (fingerprints differ), and say nothing about its optimum"
        )
    return rows, divisors


def certifier_of(model: Any, trained_on: Any = None, memory: str = "auto") -> Certifier:
    """What proves the answers of `model`, which is located first if its training rows are given.

    With more than MANY features it is not: balls, and the bounds of these rows on a free intercept, need no matrices.
    """
    given = as_model(model, Ceiling(memory).expect_model)
    if trained_on is None or (isinstance(given, LinearModel) and given.optimum is not None):
        return Certifier(given)
    try:
        if isinstance(given, LinearModel) and given.n_features > MANY:
            return Certifier(given, region=_by_balls(expect_locatable(given), trained_on, Ceiling(memory)))
        return Certifier(locate(given, trained_on, memory=memory))
    except TooFarError as error:
        return Certifier(given, str(error))


def _by_balls(model: LinearModel, data: Any, ceiling: Ceiling) -> Region:
    rows, divisors = its_rows(model, data)
    if divisors is not None:
        raise UsageError(
            f"the model has {model.n_features:,} features, which were scaled; streamcut.locate proves more of it, in "
            f"{_MATRICES} matrices of as many rows and columns, or train on rows that are scaled already"
        )
    problem = located_problem(model)
    ceiling.expect_rows(model, rows.manifest, (ROW_BYTES, ROW_BYTES) if problem.free else (0, 0))
    at = slope(problem, rows)
    found, _ = nearby(problem, rows, at, gap_of(problem, at))
    if found is None:
        raise TooFarError(refusal(model, gap_of(problem, at)))
    ceiling.keep()
    return found


def _expect(ceiling: Ceiling, problem: Located, data: Dataset) -> None:
    """Raise MemoryBudgetError unless the matrices fit in memory."""
    D = len(problem.at)
    size = 8 * D * D
    try:
        ceiling.beside(f"{_MATRICES} matrices of {D:,} × {D:,} numbers, {format_bytes(size)} each", _MATRICES * size)
        ceiling.expect_rows(problem.model, data.manifest, (ROW_BYTES, ROW_BYTES) if problem.free else (0, 0))
    except MemoryBudgetError as error:
        raise MemoryBudgetError(f"{error}, or predict with --certified alone: balls round the weights need no matrix") from None


def _rescaled(found: Optimum, back: np.ndarray, model: LinearModel) -> Optimum:
    """In the model's own coordinates, where weights are `back` times those that were located; intercepts, not bias weights."""
    D = len(back)
    spread, low, high = found.spread.copy(), found.low, found.high
    for j in range(D):
        spread[j * (j + 1) // 2 : (j + 1) * (j + 2) // 2] *= back[j] * back[: j + 1]
    spread[np.arange(D) * (np.arange(D) + 3) // 2] *= 1.0 + 8.0 * D * gamma(4.0)
    if low is not None and high is not None:
        shown = back.copy()
        if model.bias:
            shown[-1] = abs(model.bias)
        low, high = low * shown * (1.0 - gamma(8.0)), high * shown * (1.0 + gamma(8.0))
    return replace(found, spread=spread, step=found.step * back, low=low, high=high, weights=digest(model.augmented_weights))


class _Search:
    """The algorithm above. `at` is the result of a pass, `gap` is G, `trace` at least that of H."""

    def __init__(self, problem: Located, data: Dataset) -> None:
        self._problem, self._data = problem, data
        self._now: Optimum | None = None
        self.trace = 0.0
        self.at = slope(problem, data)
        self.gap = gap_of(problem, self.at)

    def found(self) -> Optimum:
        problem, at = self._problem, self.at
        self._passes = 1
        root = math.sqrt(2.0 * self.gap) * (1.0 + gamma(8.0))
        bent = problem.model.l1 == 0.0  # else F has no gradient
        start, passes = nearby(problem, self._data, at, self.gap)
        self._passes += passes
        if start is None:
            raise TooFarError(refusal(problem.model, self.gap))
        self._start = start
        last = math.inf
        for _ in range(_ROUNDS):
            inverse, total = self._round(below=True)
            if inverse is None:
                raise TooFarError(refusal(problem.model, self.gap))
            own = inverse.most(at.gradient, at.error) if bent else math.inf
            step, half = inverse.half_step(at.gradient, own, at.error) if bent else (np.zeros(len(problem.at)), root)
            self._now = Optimum(inverse.above(), step, None, None, self.gap, min(root, own), half, at.rows, 0, "")
            errors = inverse.diagonal(most=True)
            if total > (1.0 - _SETTLED) * last:
                break
            last = total
        assert self._now is not None
        low, high = self._errors(errors, at, self._now.distance)
        return replace(self._now, low=low, high=high, passes=self._passes)

    def _ends(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """The interval in which the row's z stays on the way from v_b to v*."""
        problem, chunk, s = self._problem, rows.chunk, rows.s
        low, high = self._start.within(chunk, s)
        if self._now is not None:
            least, greatest = Ellipsoid(problem.at, problem.bias, self._now).within(chunk, s)
            low, high = np.maximum(low, least), np.minimum(high, greatest)
        return margins_within(problem, rows, low, high)

    def _round(self, *, below: bool) -> tuple[factor.Inverse | None, float]:
        """A pass: H⁻¹, and the sum of the widths of the intervals of z."""
        H = Curvature(self._problem, self._data.manifest.statistics)
        total = 0.0
        self._passes += 1
        for rows in rows_of(self._problem, self._data):
            low, high = self._ends(rows)
            total += float(rows.u @ np.minimum(high - low, 1e100))
            least, greatest = self._problem.risk.loss.curvature_within(low, high)
            H.add(rows, least * SHRUNK if below else greatest / SHRUNK)
        if below:
            self.trace = float(np.trace(H.total)) * (1.0 + 2.0 * H.part)
        return factor.inverse(H.total, H.part, below=below), total

    def _errors(self, most: np.ndarray, at: Slope, distance: float) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Lower and upper bounds on standard errors at the optimum."""
        problem = self._problem
        name, C = problem.model.parameters["loss"], problem.model.C
        if name not in LIKELIHOODS or problem.model.l1 != 0.0:
            return None, None
        inverse, _ = self._round(below=False)
        if inverse is None:
            return None, None
        low, high = (np.sqrt(C * each) for each in (inverse.diagonal(most=False), most))
        if name == "squared":  # whose likelihood has a variance parameter: that of the residuals, √(Σ u z² / (Σ u − D))
            freedom = at.weight - len(problem.at)
            if not freedom > 0.0:
                return None, None
            ends = math.sqrt(2.0 * at.least_loss), math.sqrt(2.0 * at.loss)
            moves = distance / math.sqrt(C) * (1.0 + gamma(8.0))
            low *= max(0.0, ends[0] - moves) / math.sqrt(freedom)
            high *= (ends[1] + moves) / math.sqrt(freedom)
        own = gamma(at.rows + 16.0)
        return low * (1.0 - own), high * (1.0 + own)


def gap_of(problem: Located, at: Slope) -> float:
    """An upper bound on F(v_b) − D. Raises UsageError for a bound above F."""
    gap = above(at.primal - problem.bound, gamma(4.0) * at.primal)
    if not gap >= 0.0 or not math.isfinite(gap):
        raise UsageError(
            f"the model's objective on these rows is {at.primal:.8g}, its bound {problem.bound:.8g}; `streamcut verify` says more"
        )
    return gap


def refusal(model: LinearModel, gap: float) -> str:
    """Why nothing is proved, and what helps."""
    part = gap_part(model, gap)
    return f"proved nothing: gap {part:.1g} of F is too wide; {tighter(part)}"


_NEAR = 1e-16
_STEPS = 30
_SHORTEST = 2.0**-20
_FALLS = 1e-4  # of the decrease that the slope predicts
_DAMPING = 1e-13  # of the largest on the diagonal


def polished(problem: Located, data: Dataset, at: Slope) -> Located | None:
    """The problem at weights near the optimum; `at` is F there. None if F has no gradient (an L1 penalty) or does not fall."""
    if problem.model.l1 != 0.0:
        return None
    now, begun = problem, at.primal
    for _ in range(_STEPS):
        step = _step(now, data, at)
        if step is None or not float(at.gradient @ step) > _NEAR * at.primal:
            break
        found = _shortened(now, data, at, step)
        if found is None:
            break
        now, at = found
    return now if at.primal < begun else None


def _step(problem: Located, data: Dataset, at: Slope) -> np.ndarray | None:
    """H⁻¹g, or None if it cannot be computed."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    H = Curvature(problem, data.manifest.statistics)
    for rows in rows_of(problem, data):
        H.add(rows, problem.risk.loss.curvature_within(rows.z, rows.z)[0])
    M, diagonal = H.total, np.arange(len(at.gradient))
    M[diagonal, diagonal] += _DAMPING * float(M[diagonal, diagonal].max())
    try:
        step = cho_solve(cho_factor(M, lower=True, overwrite_a=True), at.gradient)
    except (LinAlgError, ValueError):
        return None
    return step if np.isfinite(step).all() else None


def _shortened(problem: Located, data: Dataset, at: Slope, step: np.ndarray) -> tuple[Located, Slope] | None:
    """A point along −step where F is lower, and F's slope there; None: there is none."""
    part, promised = 1.0, float(at.gradient @ step)
    while part >= _SHORTEST:
        near = replace(problem, at=problem.at - part * step)
        with np.errstate(over="ignore", invalid="ignore"):
            there = slope(near, data)
        if there.primal <= at.primal - _FALLS * part * promised:
            return near, there
        part *= 0.25
    return None
