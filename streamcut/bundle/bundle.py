"""The bundle of cutting planes and its master problem (Joachims 2006, eq. 7; Franc & Sonnenburg 2008, eq. 3).

A cut (a, b) says R(w) ≥ ⟨a, w⟩ + b for all w. Given cuts 1..T and C̄ the master problem is, in its dual,

    max_β  Σ β_t b_t − ½ ‖Σ β_t a_t‖²    over β ≥ 0, Σ β_t ≤ C̄,

and w = −Σ β_t a_t. Its value at any feasible β is a lower bound on min F: an inexact solution makes it loose, never wrong.
For penalties other than ½‖w‖² it is the same with their R* and w = ∇R* (streamcut.bundle.penalty).
The zero cut (R ≥ 0) takes the slack C̄ − Σ β_t; it is kept as cut 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamcut.bundle.intercept import Interval
from streamcut.bundle.penalty import L2, SQUARES
from streamcut.bundle.two_cuts import mix, mix_newest
from streamcut.bundle.verified_master import solve_priced
from streamcut.compiled import vectors
from streamcut.foundation.rounding import UNSEEN, CutError, combined, dot_gamma, gamma, mixed

UNUSED_ITERATIONS = 20  # a cut whose β was 0 for that many is dropped


@dataclass(frozen=True, slots=True)
class MasterSolution:
    """w (D,), the aggregated cut Σ β_t (a_t, b_t) / C̄ and its error; its rigorous bound; the gap left in the QP.

    taken  by which the bound is below the computed value
    """

    w: np.ndarray
    a: np.ndarray
    b: float
    error: CutError
    lower_bound: float
    qp_gap: float
    taken: float


def _with(array: np.ndarray, more: float | tuple[float, ...]) -> np.ndarray:
    """`array` with one more entry."""
    longer = np.empty((len(array) + 1, *array.shape[1:]), array.dtype)
    longer[:-1], longer[-1] = array, more
    return longer


class Bundle:
    """At most `max_cuts` cuts of `dimension` float64 each; beyond it the two with the smallest β merge.

    A weighted average of cuts is a cut, so merging keeps every bound valid; unused cuts go first.

    With a free intercept the last number of a cut's vector is its pull on the intercept, and is kept apart: w and
    cuts passed in have `dimension` + 1 numbers, those of the master problem `dimension`.
    """

    def __init__(self, dimension: int, c_bar: float, max_cuts: int, penalty: L2 = SQUARES) -> None:
        if max_cuts < 2:
            raise ValueError("a bundle needs room for two cuts")
        self.c_bar = c_bar
        self.penalty = penalty
        self.max_cuts = max_cuts
        self.dimension = dimension
        self._vectors = np.empty((max_cuts + 1, dimension))  # untouched rows cost no memory
        self._vectors[0] = 0.0  # the zero cut
        self._b = np.zeros(1)
        self._errors = np.zeros((1, 2))  # CutError of every cut
        self._pulls = np.zeros(1)  # on a free intercept
        self._beta = np.array([c_bar])
        self._gram = np.zeros((1, 1))
        self._unused = np.zeros(1, dtype=np.int64)

    def __len__(self) -> int:
        """Number of cuts, the zero cut not counted."""
        return len(self._b) - 1

    def add(self, a: np.ndarray, b: float, error: CutError) -> None:
        """Take a copy of the cut (a, b) into the bundle."""
        while len(self) >= self.max_cuts:
            self._make_room()
        a, pull = (a[:-1], float(a[-1])) if self.penalty.free else (a, 0.0)
        t = len(self._b)
        self._vectors[t] = a
        self._b, self._pulls, self._errors = _with(self._b, b), _with(self._pulls, pull), _with(self._errors, error)
        self._beta, self._unused = _with(self._beta, 0.0), _with(self._unused, 0)
        gram, self._gram = self._gram, np.empty((t + 1, t + 1))
        self._gram[:t, :t] = gram
        self._refresh_gram(t, a)

    def newest_with(self, a: np.ndarray, b: float, error: CutError, radius: float) -> tuple[np.ndarray, float, CutError]:
        """The best mixture, in closed form, of the newest cut and the cut (a, b) without a pull, less their errors for ‖w‖ up to
        `radius`: a bound where float64 cannot solve the master problem of all cuts, as with one column of 10⁹ among small ones,
        or where rounding in older cuts matters. The bundle is unchanged."""
        new, l1, rho = self._vectors[len(self._b) - 1].copy(), self.penalty.threshold, self.penalty.ridge
        b_new, error_new = self.penalty.feasible(new, float(self._b[-1]), CutError(*self._errors[-1]), float(self._pulls[-1]))
        squares, total = (vectors.dot(a, a), vectors.dot(a, new), vectors.dot(new, new)), float(self.c_bar / rho)
        if not np.isfinite(b_new) or not np.isfinite(4.0 * total * total * max(squares)):  # b: nothing is known of an intercept
            return a, b, error
        offset, offset_a = (np.array([at - off.slope * radius - off.offset]) for at, off in ((b_new, error_new), (b, error)))
        l1s, products = None if l1 is None else np.array([l1 / rho]), np.array(squares)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):  # of candidates that are no mixtures
            (p,), (q,) = mix(new[:, None], a[:, None], offset, offset_a, np.array([total]), l1s, products)
        size = (p * np.sqrt(squares[0]) + q * np.sqrt(squares[2])) * (1.0 + dot_gamma(len(a))) + UNSEEN
        new *= q
        new += p * a
        error = combined(p, error, q, error_new, float(size), p * abs(b) + q * abs(b_new))
        return new, p * b + q * b_new, error

    def scale(self, c_bar: float, penalty: L2) -> None:
        """The same cuts for another C̄ and penalty: they bound the mean risk, which has neither. β keeps its proportions."""
        self._beta *= c_bar / self.c_bar
        self.c_bar, self.penalty = c_bar, penalty

    def arrays(self, cuts: int | None = None) -> dict[str, np.ndarray]:
        """What a checkpoint keeps, by name, as views; of so many cuts, to be filled by the caller."""
        if cuts is not None:
            t = cuts + 1
            self._b, self._pulls, self._beta, self._unused = np.zeros(t), np.zeros(t), np.zeros(t), np.zeros(t, np.int64)
            self._errors, self._gram = np.zeros((t, 2)), np.zeros((t, t))
        names = ("b", "errors", "pulls", "beta", "gram", "unused")
        return {"vectors": self._vectors[: len(self._b)], **{name: getattr(self, f"_{name}") for name in names}}

    def solve(self, tolerance: float, near: Interval | None = None) -> MasterSolution:
        """Solve the master problem, starting from the last solution, to a dual gap of at most `tolerance`.

        With a free intercept, w and the mixture are restricted to intercepts `near`, the bound covers all intercepts that the
        optimum may have; it is 0 as long as these are unknown.
        """
        within = self.penalty.within
        wide = near is not None and (not within.bounded or within.within(near) != within)
        solution = self._solved(self._beta, tolerance, near=near if wide else None)
        if wide and within.bounded:
            solution = replace(self._solved(self._beta.copy(), tolerance), w=solution.w)
        elif wide:
            solution = replace(solution, lower_bound=0.0, taken=0.0)
        self._unused = np.where(self._beta > 0.0, 0, self._unused + 1)
        self._drop((self._unused >= UNUSED_ITERATIONS).nonzero()[0])
        return solution

    def _solved(self, beta: np.ndarray, tolerance: float, near: Interval | None = None) -> MasterSolution:
        """The solution for `beta`, improved in place; `beta` is made feasible if rounding has left it infeasible."""
        values, c_bar, penalty = self._b, self.c_bar, self.penalty
        rows, intercept = self._vectors[: len(self._b)], None
        if near is None and not penalty.priced:
            gap = penalty.solve_master(rows, self._gram, values, c_bar, beta, tolerance)
        elif penalty.threshold is not None:
            around = near or penalty.within
            intercept = mix_newest(rows, values, self._pulls, c_bar, beta, around, penalty.threshold)
            gap = 0.0
        else:
            gap, intercept = solve_priced(self._gram, values, self._pulls, c_bar, beta, near or penalty.within)
        used = float(beta[1:].sum())
        if used > c_bar:  # rounding only; the bound must come from a feasible point
            beta[1:] *= c_bar / used
        v = np.empty(self._vectors.shape[1])
        vectors.combine(rows, -beta, v)
        a, b = v / -c_bar, float(beta @ self._b) / c_bar
        b, error = penalty.feasible(a, b, self._error_of_mixture(beta / c_bar), float(beta @ self._pulls) / c_bar)
        bound, computed = penalty.bound(c_bar, a, b, error)
        v = v if intercept is None else np.append(v, intercept)
        return MasterSolution(penalty.weights(v), a, b, error, bound, gap, computed - bound)

    def _lengths(self) -> np.ndarray:
        return np.sqrt(np.diagonal(self._gram)) * (1.0 + dot_gamma(self._vectors.shape[1])) + UNSEEN

    def _error_of_mixture(self, pi: np.ndarray) -> CutError:
        """The error of Σ π_t (a_t, b_t): those of its cuts, and one rounding per cut."""
        rounding = gamma(float(np.count_nonzero(pi)) + 8.0)
        slope, offset = (pi @ self._errors).tolist()
        return CutError(
            slope + rounding * (float(pi @ (self._lengths() + np.abs(self._pulls))) + slope),
            offset + rounding * (float(pi @ np.abs(self._b)) + offset),
        )

    def _make_room(self) -> None:
        """Drop the cut unused for longest, or merge the two with the smallest β."""
        idle = 1 + int(np.argmax(self._unused[1:]))
        if self._unused[idle] > 0:
            self._drop(np.array([idle]))
            return
        s, t = 1 + np.argsort(self._beta[1:], kind="stable")[:2]
        total = self._beta[s] + self._beta[t]
        share = self._beta[t] / total if total > 0.0 else 0.5
        lengths = self._lengths() + np.abs(self._pulls)
        self._errors[s] = mixed(
            CutError(*self._errors[s]), CutError(*self._errors[t]), share, lengths[s] + lengths[t],
            abs(self._b[s]) + abs(self._b[t]),
        )  # fmt: skip
        vectors.move(self._vectors[s], self._vectors[t], share)
        self._b[s] += share * (self._b[t] - self._b[s])
        self._pulls[s] += share * (self._pulls[t] - self._pulls[s])
        self._beta[s], self._beta[t] = total, 0.0
        self._refresh_gram(s, self._vectors[s])
        self._drop(np.array([t]))

    def _refresh_gram(self, t: int, vector: np.ndarray) -> None:
        """Update the Gram matrix: cut t is now `vector`."""
        products = np.empty(len(self._b))
        vectors.dots(self._vectors[: len(products)], vector, products)
        self._gram[t] = self._gram[:, t] = products

    def _drop(self, cuts: np.ndarray) -> None:
        """Remove cuts (never cut 0); their β returns to the slack."""
        cuts = cuts[cuts > 0]
        if len(cuts) == 0:
            return
        stays: np.ndarray = np.ones(len(self._b), np.bool_)
        stays[cuts] = False
        keep: np.ndarray = np.flatnonzero(stays)
        self._beta[0] += self._beta[cuts].sum()
        for target, source in enumerate(keep):
            if target != source:
                self._vectors[target] = self._vectors[source]
        self._b, self._pulls, self._errors, self._beta, self._unused = (
            x[keep] for x in (self._b, self._pulls, self._errors, self._beta, self._unused)
        )
        self._gram = np.ascontiguousarray(self._gram[np.ix_(keep, keep)])
