"""The master problem, max_β ⟨b, β⟩ − ½‖S(v, λ)‖² with v = −Σ β_t a_t, over β ≥ 0, Σβ = total, to a verified gap.

It is a quadratic program where λ = 0; else `solve_penalised` solves it. Rounding counts in its gap.

The problem of the elastic net, λ > 0, is concave with a continuous gradient g_t = b_t + ⟨a_t, S(v, λ)⟩, and quadratic while no
weight becomes 0 or nonzero. So, from the last solution:

    repeat
        solve the quadratic problem of the nonzero features
        move to the best point between β and its solution
    until total·max g − ⟨β, g⟩, an upper bound on the remaining gain, is small

A part of the curvature of the other features is mixed in, as in a trust region: more of it after short steps, less after full
ones. With all of it the quadratic problem is below the true one everywhere, so every turn makes progress.

A free intercept lies in an interval, and the pull on it is priced by the half-width. The problem

    max_β  ⟨b + m·a₀, β⟩ − ½ βᵀGβ − B |⟨a₀, β⟩|    over β ≥ 0, Σβ = total,    [m − B, m + B] the interval,

is the dual of minimising ½‖w‖² + total·max_t(⟨a_t, w⟩ + a₀_t·c + b_t) over all w and all c in the interval, which
streamcut.bundle.intercept proves. The multiplier of the price is c. An equality ⟨a₀, β⟩ = 0 is no option:
rounding leaves all cuts near an optimum with a₀ of one sign, and then only the zero cut would be feasible. It is a small
quadratic program with equalities, solved by Mehrotra's predictor-corrector method.
"""

from __future__ import annotations

import numpy as np

from streamcut.bundle.intercept import Interval
from streamcut.compiled import simplex_qp, vectors
from streamcut.foundation.rounding import EPSILON

_MOST_TURNS = 300
_FIRST, _LEAST, _FACTOR = 1e-3, 1e-9, 10.0  # of the curvature of all features: mixed in at first, at least
_PATIENCE = 20  # turns without a smaller gap: rounding allows none
_SHORT = 0.3  # of a full step: shorter ones increase the part mixed in
_INSIDE = 0.1  # of the gap, or of the tolerance: accuracy of the inner problem


def solve_penalised(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float, l1: float,
) -> float:  # fmt: skip
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or rounding stops it; returns the gap.

    rows (T, D) are the a_t, `gram` (T, T) their products, l1 is λ.
    """
    v, w, delta = np.empty(rows.shape[1]), np.empty(rows.shape[1]), np.empty(rows.shape[1])
    products, active = np.empty(len(b)), np.empty_like(gram)
    best, kept, part, late = np.inf, beta.copy(), _FIRST, 0
    for _ in range(_MOST_TURNS):
        vectors.combine(rows, -beta, v)
        vectors.shrink(v, l1, w)
        vectors.dots(rows, w, products)
        gradient = b + products
        gap = max(0.0, total * float(gradient.max()) - float(beta @ gradient))
        late = 0 if gap < 0.9 * best else late + 1
        if gap < best:
            best, kept = gap, beta.copy()
        if gap <= tolerance or late == _PATIENCE:
            break
        vectors.active_gram(rows, w, active)
        active += part * (gram - active)
        target = beta.copy()
        solve_master(active, gradient + active @ beta, total, target, _INSIDE * min(gap, max(tolerance, 1e-3 * gap)))
        direction = target - beta
        vectors.combine(rows, -direction, delta)
        k = longest_step(v, delta, float(direction @ b), l1)
        if k < _SHORT:
            part = min(1.0, part * _FACTOR)
        elif k == 1.0:
            part = max(_LEAST, part / _FACTOR)
        beta += k * direction
        np.maximum(beta, 0.0, out=beta)
        beta *= total / beta.sum()
    beta[:] = kept
    return best


_TURNS = 500


def solve_master(G: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float) -> float:
    """Improve the feasible `beta` (T,) in place until the dual gap is at most `tolerance`, or rounding stops it; returns the gap.

    G (T, T) symmetric positive semidefinite, singular allowed; b (T,); all float64.
    """
    return simplex_qp.solve(G, b, total, beta, tolerance, _TURNS, simplex_qp.space(len(b)))


_ROUNDINGS = 8.0  # roundings of a gradient's terms: the typical error of their sum


def solve_verified(
    rows: np.ndarray, gram: np.ndarray, b: np.ndarray, total: float, beta: np.ndarray, tolerance: float, l1: float = 0.0,
) -> float:  # fmt: skip
    """Improve the feasible `beta` (T,) in place until the gap is at most `tolerance`, or rounding stops it.

    rows (T, D) are the a_t, `gram` (T, T) their products, b (T,); l1 is λ. Returns an upper bound on the gap.
    """
    if l1 == 0.0:
        gap = solve_master(gram, b, total, beta, tolerance)
    else:
        gap = solve_penalised(rows, gram, b, total, beta, tolerance, l1)
    sizes = np.abs(b) + np.abs(gram) @ beta
    return gap + _ROUNDINGS * EPSILON * total * float(sizes.max())


_ROOT_STEPS = 60
_ROOT_PART = 1e-9


def longest_step(v: np.ndarray, delta: np.ndarray, gain: float, l1: float, low: float = 0.0) -> float:
    """The θ ∈ [low, 1] that maximises θ·gain − ½‖S(v + θδ, λ)‖², which still rises at `low`.

    Its derivative falls and is piecewise linear: Newton's method with a bracket.
    """
    high, theta = 1.0, 1.0
    for _ in range(_ROOT_STEPS):
        slope, curvature = vectors.slope_along(v, delta, l1, theta)
        rise = gain - slope
        if rise >= 0.0:
            low = theta
        else:
            high = theta
        if low == 1.0 or high - low <= _ROOT_PART * high:
            break
        after = theta + rise / curvature if curvature > 0.0 else 0.5 * (low + high)
        if abs(after - theta) <= _ROOT_PART * theta:
            break
        theta = after if low < after < high else 0.5 * (low + high)
    return theta


_ROUNDS = 60
_CENTRED = 0.995  # of the way to the boundary
_TINY = 1e-40  # so that quotients stay finite
_MOST = 1e6  # largest ratio of the scales of two variables
_NO_GAIN = 1e-26  # of the largest number: the remaining gain of a variable


def interior_point(Q: np.ndarray, c: np.ndarray, E: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, multipliers of Ex = e) that minimise ½xᵀQx + cᵀx over x ≥ 0 with Ex = e, approximately: Mehrotra's predictor-corrector.

    Q (n, n) is positive semidefinite; for a few dozen cuts a round takes less than a millisecond.
    """
    n, m = len(c), len(e)
    scale = _scales(np.diagonal(Q))
    Q, c, E = Q * (scale[:, None] * scale), c * scale, E * scale
    size = max(float(np.abs(Q).max()), float(np.abs(c).max()), 1e-300)
    Q, c = Q / size, c / size
    x, s, y = np.full(n, 1.0 / n), np.ones(n), np.zeros(m)
    K = np.zeros((n + m, n + m))
    K[:n, n:], K[n:, :n] = -E.T, E
    diagonal = np.arange(n)
    for _ in range(_ROUNDS):
        dual, primal, mu = Q @ x + c - E.T @ y - s, E @ x - e, float(x @ s) / n
        if mu < _NO_GAIN:
            break
        K[:n, :n] = Q
        K[diagonal, diagonal] += s / x + 1e-16

        def step(
            target: float, second: float | np.ndarray, at: tuple[np.ndarray, ...] = (x, s, dual, primal)
        ) -> tuple[np.ndarray, ...]:
            now, slack, off, feasible = at
            toward = (target - second) / now - slack
            direction = _solved(K, np.append(toward - off, -feasible))
            return direction[:n], toward - slack / now * direction[:n], direction[n:]

        dx, ds, dy = step(0.0, 0.0)
        if not np.isfinite(dx).all():  # the variables differ by more than float64 can hold: x cannot be improved
            break
        ahead = float((x + _reach(x, dx) * dx) @ (s + _reach(s, ds) * ds)) / n
        dx, ds, dy = step(mu * (ahead / mu) ** 3, dx * ds)
        if not np.isfinite(dx).all():
            break
        alpha, beta = _reach(x, dx), _reach(s, ds)
        x, s, y = np.maximum(x + alpha * dx, _TINY), np.maximum(s + beta * ds, _TINY), y + beta * dy
    return x * scale, y * size


def _scales(diagonal: np.ndarray) -> np.ndarray:
    """Factors of the variables that equalise the diagonal."""
    largest = float(diagonal.max(initial=0.0))
    return np.where(diagonal > 0.0, np.minimum(np.sqrt(largest / np.maximum(diagonal, _TINY)), _MOST), 1.0)


def _solved(K: np.ndarray, right: np.ndarray) -> np.ndarray:
    """K⁻¹ right, or the least squares solution; NaN where there is neither."""
    for solve in (np.linalg.solve, lambda K, right: np.linalg.lstsq(K, right, rcond=None)[0]):
        try:
            solution = solve(K, right)
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(solution).all():
            return solution
    return np.full(len(right), np.nan)


def _reach(x: np.ndarray, dx: np.ndarray) -> float:
    """The largest fraction of dx that keeps x positive."""
    falls = dx < 0.0
    return min(1.0, _CENTRED * float((-x[falls] / dx[falls]).min())) if falls.any() else 1.0


_NOTHING = 1e-13  # of the whole mixture: parts that interior points leave in place of 0


def solve_priced(
    gram: np.ndarray, b: np.ndarray, pulls: np.ndarray, total: float, beta: np.ndarray, within: Interval
) -> tuple[float, float]:
    """Write the best mixture of T cuts to `beta` (T,); returns (an upper bound on its gap, up to rounding; the intercept).

    gram (T, T) has the products of the cuts, without the pulls on the intercept: `pulls` (T,). The first cut is the zero cut.
    """
    T = len(b)
    square, pull, linear = total * total * gram, total * pulls, total * (b + pulls * within.middle)
    unit = max(float(np.abs(pull).max()), 1e-6 * float(np.abs(linear).max()), 1e-300)
    Q, c, E = np.zeros((T + 2, T + 2)), np.append(-linear, [within.half * unit] * 2), np.zeros((2, T + 2))
    Q[:T, :T] = square
    E[0, :T], E[1, :T], E[1, T], E[1, T + 1] = 1.0, pull / unit, 1.0, -1.0
    parts, multipliers = interior_point(Q, c, E, np.array([1.0, 0.0]))
    mixture = np.where(parts[:T] > _NOTHING, parts[:T], 0.0)
    beta[:] = total / mixture.sum() * mixture
    off = float(np.clip(multipliers[1] / unit, -within.half, within.half))
    products, pulled = gram @ beta, float(pulls @ beta)
    above = b - products + pulls * (within.middle + off)
    value = float((b + pulls * within.middle) @ beta) - float(beta @ products) - within.half * abs(pulled)
    sizes = np.abs(b) + np.abs(gram) @ beta + np.abs(pulls) * (within.largest + within.half)
    gap = total * float(above.max()) - value + _ROUNDINGS * EPSILON * total * float(sizes.max())
    return max(0.0, gap), within.middle + off
