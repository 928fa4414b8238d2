"""λ‖w‖₁ without ½‖w‖², many features: solved on the columns that can matter, held in memory, and certified by full passes.

Problem   min F(w) = λ‖w‖₁ + C Σ u_i ℓ(z_i), ℓ with a derivative; an intercept penalised like any weight, or free.
Given     the oracle, which holds a limited number of entries, and a stopping rule.
Returns   the best point w_b, F there, and a lower bound on min F.
Stops     when F(w_b) − bound is small enough.

    one pass at w = 0: the slopes of the loss
    repeat
        if a feature without a column is steeper than λ or has a weight:
            one pass: the columns of all features with a weight, and of the steepest, as many as fit
        w = argmin F over these, the other weights fixed (streamcut.solvers.working_set)
        one pass at w: F, the slopes of all features, the cut there, which bounds F

If the columns of all features fit, that is three passes. If even those that matter do not fit, blocks of them take
turns: F still falls, in more passes. Slopes do not depend on λ and C, so a path continues with the present columns, and most of
its values take one pass. No feature is discarded for good: every pass checks the slopes of all features, so no rule has to
prove that one stays 0 (as those of Fercoq, Gramfort & Salmon 2015 do).

The bound uses only the cut at w (streamcut.bundle.l1_only): once columns are solved, slopes of those with a
weight are λ up to a residual, and that residual is the loss of the bound. (Johnson & Guestrin 2015 and Massias, Gramfort &
Salmon 2018 choose working sets that way, in memory.)

λ‖w‖₁ + C Σ u_i ℓ(z_i) on columns in memory: Newton's method, each model minimised by coordinate descent.

Problem   min over w_K of λ‖w_K‖₁ + C Σ u_i ℓ(z_i), z = z₀ + Σ_k w_k (column k), ℓ with a derivative.
Given     the columns, initial z and w, a bound on subgradients.
Returns   z and w in place.
Stops     when no column's shortest subgradient is longer than that.

    repeat
        the model of the loss at z: slopes and curvatures of the rows
        active = all columns with a weight, and as many others (at least 100), most violated first
        coordinate descent on λ‖w‖₁ + the model, to a tenth of the present violation; after every ten sweeps, five over the
            columns with a weight, and the mixture of these five points that moves least, where the model is lower there
        the largest of the steps 1, ½, ¼, … with sufficient decrease (Armijo)

The active columns double from model to model, as in Massias, Gramfort & Salmon 2018; the descent is that of Yuan, Ho & Lin 2012,
the mixtures are Anderson's (Bertrand & Massias 2021). Quadratic losses are their own model: for them it is coordinate descent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from streamcut.compiled import chosen_columns as kernels
from streamcut.compiled.chosen_columns import Columns, NewtonModel, Price, RowsInMemory
from streamcut.losses.loss import Loss
from streamcut.oracles.chosen_columns import FeaturesOracle
from streamcut.solvers.loop import begun, iterated
from streamcut.solvers.progress import Progress, Solution
from streamcut.solvers.state import CAREFUL, BundleState

_GOAL = 0.3  # of the requested gap: the part of the bound that slope residuals may cost
_LEAST = 1e-12  # of λ: the smallest residual
_AGAIN = 0.1  # of that, if it was not enough
_OTHERS = 0.1  # of the violation of features without a column: those with one need not be solved further


def solve(oracle: FeaturesOracle, progress: Progress, *, max_cuts: int) -> Solution:
    """Run to the stopping rule of `progress`: an iteration takes one pass, for the columns or at a w.

    Raises Interrupted before there is a solution.
    """
    s, rule = begun(oracle, progress, max_cuts)
    s.w = s.w_b.copy()  # the master problem does not set the next w

    def iterate() -> None:
        if not s.stepped and oracle.wanting(s.w_b) > 0.0:
            oracle.choose(s.w_b)
            oracle.take()
            s.stepped = True  # next: solve on the present columns
            return
        allowed = rule.allowed_gap(s.F_b, oracle.c_bar)
        s.w = w = _solved(s, oracle, allowed * _AGAIN ** max(0, progress.still - s.stepped))
        if s.taken > CAREFUL * allowed:
            oracle.refine()
        cut = oracle.expand(w)
        s.move(1.0, oracle)
        s.improve(cut, rule)
        s.w = w

    return iterated(s, oracle, progress, rule, iterate)


def _solved(s: BundleState, oracle: FeaturesOracle, allowed: float) -> np.ndarray:
    """The best w among those that differ from w_b only in weights with columns, for an `allowed` gap."""
    columns, features, rows = oracle.in_memory()
    l1, w, free = s.penalty.l1, s.w_b.copy(), int(s.penalty.free)
    goal = max(_GOAL * allowed / s.F_b, _LEAST) * l1 if s.F_b > 0.0 else _LEAST * l1
    goal = max(goal, _OTHERS * oracle.wanting(s.w_b))
    interval = s.penalty.within
    reach = interval.half if free and interval.bounded else 1.0
    weights = np.ascontiguousarray(w[features])
    price = Price(oracle.C, l1, free, max(1.0, reach * l1 / s.F_b) if s.F_b > 0.0 else 1.0)
    minimise(columns, rows, weights, oracle.loss, price, goal, oracle.going)
    w[features] = weights
    return w


_FEWEST = 100  # active columns in addition to those with a weight
_PART = 0.1  # of the largest violation: accuracy to which a model is minimised
_MODELS, _HALVINGS = 1000, 40
_TURNS, _PLAIN, _DEPTH = 67, 10, 5  # of descent on a model: sweeps of a turn before those whose points are mixed, and these
_REGULAR = 1e-12  # of the trace of the products of steps, added to their diagonal
_ENOUGH = 0.01  # of the decrease predicted by the model
_ROUNDING = 1e-12  # of F: smaller predicted decreases cannot be checked, so near the optimum that Newton's steps are right
_BETTER, _IDLE = 0.9, 50  # of the least violation so far; models without such progress, after which digits are exhausted


def minimise(
    columns: Columns, rows: RowsInMemory, w: np.ndarray, loss: Loss, price: Price, goal: float, going: Callable[[], None]
) -> None:
    """As above, until no subgradient is longer than `goal`, or steps gain nothing that float64 can resolve. `going` is called now
    and then; an exception from it ends the search."""
    n, size, z = len(rows.z), len(w), rows.z
    slope, delta, far = np.empty(n), np.empty(n), np.empty(size)
    model, at = NewtonModel(np.empty(n), np.empty(size), np.empty(size), np.empty(size)), np.empty(size)
    least, idle = np.inf, 0
    for _ in range(_MODELS):
        going()
        F = kernels.expand(loss, z, rows.target, rows.u, price.C, slope, model.rows) + price.l1 * float(np.abs(w).sum())
        kernels.products(columns, slope, at)
        kernels.violations(at, w, price, far)
        worst = float(far.max(initial=0.0))
        idle = 0 if worst < _BETTER * least else idle + 1
        least = min(least, worst)
        if not worst > goal:
            return
        active = _active(far, w, price.costless)
        model.before[:] = w
        kernels.curvatures(columns, active, price.C, model)
        _descend(columns, active, price, model, max(0.5 * goal, _PART * worst), slope, w, going)
        delta[:] = 0.0
        w -= model.before  # the step, until its length is known
        kernels.move(columns, active, w, delta)
        k = _step(rows, delta, loss, price, at, model.before, w, _ROUNDING * F)
        w *= k
        w += model.before
        if k == 0.0 or idle > _IDLE:
            return
        z += k * delta


def _descend(
    columns: Columns, active: np.ndarray, price: Price, model: NewtonModel, goal: float, slope: np.ndarray, w: np.ndarray,
    going: Callable[[], None],
) -> None:  # fmt: skip
    """Accelerated coordinate descent on a model, until no violation exceeds `goal`; `slope` is that of the rows' losses."""
    begun, costs = slope.copy(), slice(0, len(w) - price.costless)

    def height(w: np.ndarray) -> tuple[float, np.ndarray]:
        """The model at w, up to a constant, and the slopes there."""
        change, along = w - model.before, np.zeros(len(slope))
        kernels.move(columns, active, change, along)
        there = begun + model.rows * along
        smooth = 0.5 * float((begun + there) @ along) + 0.5 * float(model.raised[active] @ change[active] ** 2)
        return smooth + price.l1 * float(np.abs(w[costs]).sum()), there

    for _ in range(_TURNS):
        going()
        if kernels.descend(columns, active, price, model, goal, _PLAIN, slope, w):
            return
        support = np.sort(active[w[active] != 0.0])
        points = np.empty((_DEPTH + 1, len(support)))
        points[0] = w[support]
        for point in points[1:]:
            kernels.descend(columns, support, price, model, 0.0, 1, slope, w)
            point[:] = w[support]
        mixed = w.copy()
        mixed[support] = _mixture(points)
        mixed_height, mixed_slope = height(mixed)
        if mixed_height < height(w)[0]:
            w[:], slope[:] = mixed, mixed_slope


def _mixture(points: np.ndarray) -> np.ndarray:
    """The affine combination of points[1:] whose last steps cancel best; the last point where that is not defined."""
    steps = np.diff(points, axis=0)
    products = steps @ steps.T
    products[np.diag_indices(len(products))] += _REGULAR * np.trace(products)
    with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
        parts = np.linalg.solve(products, np.ones(len(products)))
        mixture = (parts / parts.sum()) @ points[1:]
        if np.isfinite(mixture).all():
            return mixture
    return points[-1]


def _active(far: np.ndarray, w: np.ndarray, free: int) -> np.ndarray:
    """The columns with a weight, the free ones, and as many of the others, ascending."""
    chosen = w != 0.0
    chosen[len(w) - free :] = True
    others = np.flatnonzero((far > 0.0) & ~chosen)
    most = max(_FEWEST, int(np.count_nonzero(chosen)))
    if len(others) > most:
        others = others[np.argpartition(-far[others], most)[:most]]
    chosen[others] = True
    return np.flatnonzero(chosen)


def _step(
    rows: RowsInMemory, delta: np.ndarray, loss: Loss, price: Price, slope: np.ndarray, before: np.ndarray, step: np.ndarray,
    rounding: float,
) -> float:  # fmt: skip
    """The first of 1, ½, ¼, … that gains enough of the predicted decrease; 0: none. 1 if that is no more than `rounding`."""
    costs = slice(0, len(step) - price.costless)
    norm = float(np.abs(before[costs]).sum())

    def longer(k: float) -> float:
        return price.l1 * (float(np.abs(before[costs] + k * step[costs]).sum()) - norm)

    promised = float(slope @ step) + longer(1.0)
    if abs(promised) <= rounding:
        return 1.0
    if not promised < 0.0:
        return 0.0
    k = 1.0
    for _ in range(_HALVINGS):
        change = price.C * kernels.rise(loss, rows.z, delta, k, rows.target, rows.u) + longer(k)
        if change <= _ENOUGH * k * promised:
            return k
        k *= 0.5
    return 0.0
