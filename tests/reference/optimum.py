"""The least F of small problems of every task, in numbers of 500 bits: a point so close to the optimum that it is as good as it.

A problem is ½‖w‖² plus a sum of terms, each a convex function of affine forms of w. All but the smooth ones are written with
variables of their own, a linear and a quadratic price for each, and linear constraints; Newton's method with a logarithmic
barrier (Boyd & Vandenberghe 2004, section 11.3) then knows no scales. F is evaluated as an enclosure (Arb's balls, python-flint),
of the terms themselves: at any w at all, that of a model or the one found, it is right to the last of 500 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from flint import arb, arb_mat, ctx

BITS = 500
_CLOSE = -80  # as a power of two: of F, what the barrier may leave
_FASTER = 512  # times the weight of F in each round
_ROUNDS, _STEPS = 80, 40
_SETTLED = arb("1e-4")  # half the squared Newton decrement: close enough to the path

Form = tuple[list[arb], arb]  # (a, b): ⟨a, w⟩ + b


def _scored(form: Form, w: Sequence[arb]) -> arb:
    return sum((a * v for a, v in zip(form[0], w, strict=True)), form[1])


@dataclass(frozen=True)
class Largest:
    """price · max_k form_k, or price · (max_k form_k)² where one of them is 0."""

    price: arb
    forms: list[Form]
    squared: bool = False

    def value(self, w: Sequence[arb]) -> arb:
        most = _scored(self.forms[0], w)
        for form in self.forms[1:]:
            most = most.max(_scored(form, w))
        return self.price * (most * most if self.squared else most)

    def state(self, own: _Barrier) -> None:
        zero = [arb(0)] * own.dimension
        start = max((form[1] for form in self.forms), key=float)
        (t,) = own.variables([start + abs(start) + 1], [arb(0) if self.squared else self.price], [2 * self.price * self.squared])
        for a, b in self.forms:
            own.constrain([-x for x in a] if a else zero, -b, {t: arb(1)})


@dataclass(frozen=True)
class Bent:
    """price · (½v² up to |v| = knee, then a line), v the form; of v > 0 alone where `one_sided`: Huber, smoothed hinge."""

    price: arb
    form: Form
    knee: arb
    one_sided: bool

    def value(self, w: Sequence[arb]) -> arb:
        v = _scored(self.form, w)
        v = v.max(arb(0)) if self.one_sided else abs(v)
        s = v.min(self.knee)
        return self.price * (s * s / 2 + self.knee * (v - s))

    def state(self, own: _Barrier) -> None:
        a, b = self.form
        s, t = own.variables([arb(1), abs(b) + 2], [arb(0), self.price * self.knee], [self.price, arb(0)])
        own.constrain([-x for x in a], -b, {s: arb(1), t: arb(1)})
        if self.one_sided:
            own.constrain([arb(0)] * len(a), arb(0), {s: arb(1)})
            own.constrain([arb(0)] * len(a), arb(0), {t: arb(1)})
        else:
            own.constrain(list(a), b, {s: arb(-1), t: arb(1)})


@dataclass(frozen=True)
class Smooth:
    """price · log Σ_k e^form_k, or price · Σ_k e^form_k where not `log`, plus `linear`, a form."""

    price: arb
    forms: list[Form]
    log: bool
    linear: Form | None = None

    def value(self, w: Sequence[arb]) -> arb:
        scores = [_scored(form, w) for form in self.forms]
        most = max(scores, key=lambda s: float(s.mid())) if self.log else arb(0)
        total = sum(((s - most).exp() for s in scores), arb(0))
        found = self.price * (most + total.log() if self.log else total)
        return found if self.linear is None else found + _scored(self.linear, w)

    def slopes(self, w: Sequence[arb]) -> tuple[list[arb], list[list[arb]]]:
        """(its gradient by w, its second derivatives)."""
        n = len(w)
        scores = [_scored(form, w).mid() for form in self.forms]
        most = max(scores, key=float) if self.log else arb(0)
        parts = [(s - most).exp().mid() for s in scores]
        total = sum(parts, arb(0)) if self.log else arb(1)
        parts = [(self.price * part / total).mid() for part in parts]
        gradient = [sum((p * form[0][i] for p, form in zip(parts, self.forms, strict=True)), arb(0)) for i in range(n)]
        bend = [[sum((p * f[0][i] * f[0][j] for p, f in zip(parts, self.forms, strict=True)), arb(0)) for j in range(n)]
                for i in range(n)]  # fmt: skip
        if self.log:
            bend = [[bend[i][j] - gradient[i] * gradient[j] / self.price for j in range(n)] for i in range(n)]
        if self.linear is not None:
            gradient = [g + a for g, a in zip(gradient, self.linear[0], strict=True)]
        return gradient, bend


Term = Largest | Bent | Smooth


@dataclass
class Problem:
    """½‖w‖² + Σ terms, w of `dimension` numbers, of which the last costs nothing if it is `free`. Use it within `precision()`."""

    dimension: int
    terms: list[Term] = field(default_factory=list)
    free: bool = False

    def value(self, w: Sequence[arb]) -> arb:
        """An enclosure of F(w)."""
        return sum((term.value(w) for term in self.terms), sum((v * v for v in w[: len(w) - self.free]), arb(0)) / 2)

    def solved(self) -> tuple[list[arb], bool]:
        """(w whose F is the least as nearly as makes no difference, whether that is known: else it is only close)."""
        return _Barrier(self).solved()


@contextmanager
def precision() -> Iterator[None]:
    """Within it numbers have BITS bits."""
    before, ctx.prec = ctx.prec, BITS
    try:
        yield
    finally:
        ctx.prec = before


class _Barrier:
    def __init__(self, problem: Problem) -> None:
        self.problem, self.dimension = problem, problem.dimension
        self.x, self.prices, self.bends = ([arb(v)] * self.dimension for v in (0, 0, 1))
        if problem.free:
            self.bends[-1] = arb(0)
        self._constraints: list[tuple[list[arb], arb, dict[int, arb]]] = []
        for term in problem.terms:
            if not isinstance(term, Smooth):
                term.state(self)
        self.smooth = [term for term in problem.terms if isinstance(term, Smooth)]
        n = len(self.x)
        rows = [[*a, *(more.get(j, arb(0)) for j in range(self.dimension, n))] for a, _, more in self._constraints]
        self.M = arb_mat(len(rows), n, [v for row in rows for v in row])
        self.h = [b for _, b, _ in self._constraints]

    def variables(self, start: list[arb], prices: list[arb], bends: list[arb]) -> range:
        first = len(self.x)
        self.x, self.prices, self.bends = self.x + start, self.prices + prices, self.bends + bends
        return range(first, len(self.x))

    def constrain(self, a: list[arb], b: arb, more: dict[int, arb]) -> None:
        """⟨a, w⟩ + b + Σ more_j x_j ≥ 0."""
        self._constraints.append((a, b, more))

    def solved(self) -> tuple[list[arb], bool]:
        x, m = self.x, len(self.h)
        t = arb(1) if m == 0 else arb(m) / (abs(self._cost(x)) + 1)
        for _ in range(_ROUNDS):
            x, settled = self._centred(x, t)
            w = x[: self.dimension]
            close = self.problem.value(w).mid() * arb(2) ** _CLOSE
            if m == 0 or bool(arb(m) / t <= close):
                return w, settled
            t = (t * _FASTER).mid()
        return x[: self.dimension], False

    def _slack(self, x: list[arb]) -> list[arb]:
        if not self.h:
            return []
        return [(s + b).mid() for s, b in zip((self.M * arb_mat(len(x), 1, x)).entries(), self.h, strict=True)]

    def _cost(self, x: list[arb]) -> arb:
        own = sum((p * v + q * v * v / 2 for p, q, v in zip(self.prices, self.bends, x, strict=True)), arb(0))
        w = x[: self.dimension]
        return sum((term.value(w) for term in self.smooth), own).mid()

    def _whole(self, x: list[arb], t: arb) -> arb | None:
        """What is minimised, None outside."""
        slack = self._slack(x)
        if not all(s > 0 for s in slack):
            return None
        found = (t * self._cost(x) - sum((s.log() for s in slack), arb(0))).mid()
        return found if found.is_finite() else None

    def _centred(self, x: list[arb], t: arb) -> tuple[list[arb], bool]:
        D, n = self.dimension, len(x)
        least = arb(2) ** (_CLOSE - 40)  # without a barrier: of F
        for _ in range(_STEPS if self.h else 8 * _STEPS):
            slack = self._slack(x)
            gradient = [t * (p + q * v) for p, q, v in zip(self.prices, self.bends, x, strict=True)]
            H = arb_mat(n, n)
            if slack:
                one = arb_mat(len(slack), 1, [1 / s for s in slack])
                pull = (self.M.transpose() * one).entries()
                gradient = [g - p for g, p in zip(gradient, pull, strict=True)]
                scaled = arb_mat(len(slack), n, [self.M[i, j] / slack[i] for i in range(len(slack)) for j in range(n)])
                H = scaled.transpose() * scaled
            for j in range(n):
                H[j, j] = H[j, j] + t * self.bends[j]
            for term in self.smooth:
                slope, bend = term.slopes(x[:D])
                for i in range(D):
                    gradient[i] += t * slope[i]
                    for j in range(D):
                        H[i, j] = H[i, j] + t * bend[i][j]
            g = arb_mat(n, 1, gradient).mid()
            step = [-v for v in H.mid().solve(g, "approx").entries()]
            fall = -sum((s * v for s, v in zip(step, g.entries(), strict=True)), arb(0)).mid()
            enough = _SETTLED if self.h else least * abs(self._cost(x))
            if not bool(fall / 2 > enough):
                return x, True
            before, k = self._whole(x, t), arb(1)
            assert before is not None
            for _ in range(200):
                after = [(v + k * s).mid() for v, s in zip(x, step, strict=True)]
                there = self._whole(after, t)
                if there is not None and bool(there <= before - k * fall / 10):
                    break
                k = k / 2
            else:
                return x, False
            x = after
        return x, False
