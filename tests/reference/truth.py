"""What trainings of every task claim, against the optimum in 500 bits: bound ≤ optimum ≤ F(w) ≤ primal, all finite, stops true.

`check` makes a problem from its seed, as badly scaled as can be, trains it in a way of its own and says what is false. A training
that ended for rounding says that its gap is nothing but what it put onto F and took off the bound, twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from flint import arb, fmpq
from reference.optimum import Bent, Form, Largest, Problem, Smooth, Term, precision
from reference.scaled import problem

import streamcut
from streamcut import train
from streamcut.bundle.penalty import penalty_of
from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import LABELLING_LOSSES, ROW_LOSSES
from streamcut.models.certificate import Certificate, Cut, StopReason

CLASSES = {"crammer-singer": {}, "softmax": {"loss": "softmax"}}
_REST = ("hinge", "squared-hinge", "logistic")
CLASSES |= {f"one-vs-rest {loss}": {"loss": loss, "strategy": "one-vs-rest"} for loss in _REST}
CLASSES |= {
    f"one-vs-rest {loss} {more}": {**CLASSES[f"one-vs-rest {loss}"], "intercept": "free"}
    for more in ("free", "free l1")
    for loss in _REST
}
KINDS = (
    *ROW_LOSSES, *(f"{loss} {more}" for more in ("l1", "free") for loss in ROW_LOSSES),
    *(f"{loss} free l1" for loss in ROW_LOSSES if loss != "poisson"), *CLASSES, *LABELLING_LOSSES, "ranking",
    "queries", "roc-area", "one-class", "sequence",
)  # fmt: skip
_GLOBAL = ("ocas", "cpa")
_RULES: tuple[dict[str, Any], ...] = (
    {}, {}, {"tol": None, "tol_relative": 1e-6}, {"tol": None, "tol_relative": 1e-9}, {"tol": None, "tol_relative": 1e-13},
)  # fmt: skip
_PASSES = 80


class Violation(NamedTuple):
    """What was false: the kind of claim, and all that is needed to see it again."""

    kind: str
    what: str


@dataclass(frozen=True)
class Claimed:
    """A certificate with its proof, and the weights that it is of, flat."""

    certificate: Certificate
    proof: Cut | None
    weights: list[arb]
    l1: float = 0.0


@dataclass(frozen=True)
class Case:
    """How to train, and what is minimised: a Problem for each claim."""

    what: str
    data: MemoryDataset
    options: dict[str, Any]
    problems: Any  # of a model: [(Problem, Claimed)]


def check(kind: str, seed: int) -> list[Violation]:
    """Of problem `seed` of a kind of KINDS."""
    with precision():
        case = _case(kind, seed)
        model = train(case.data, scheduler="sync", **case.options)
        seen = f"{kind} {seed}: {case.what}; {case.options}"
        return [
            Violation(name, f"{what}; {seen}")
            for stated, claimed in case.problems(model)
            for name, what in false_claims(stated, claimed)
        ]


def false_claims(stated: Problem, claimed: Claimed) -> Iterator[tuple[str, str]]:
    """(kind, what) of all that is false."""
    claim = claimed.certificate
    numbers = claim.primal, claim.lower_bound, claim.raised
    if not all(math.isfinite(v) for v in numbers) or not all(w.is_finite() for w in claimed.weights):
        yield "finite", f"{claim}"
        return
    F = stated.value(claimed.weights)
    best, _ = stated.solved()
    optimum = stated.value(best)
    if bool(optimum > F):
        optimum = F
    primal, bound = arb(claim.primal), arb(claim.lower_bound)
    if bool(primal < F):
        yield "primal", f"primal {claim.primal!r} is below F by {float((F - primal).mid()):.3g}"
    if bool(bound > optimum):
        yield "bound", f"bound {claim.lower_bound!r} is above the optimum by {float((bound - optimum).mid()):.3g}"
    above = primal - optimum
    if claim.converged and not (claim.gap <= claim.tolerance.gap and bool(above <= arb(claim.tolerance.gap) * arb("1.000001"))):
        yield "stop", f"converged with a gap of {claim.gap!r} where {claim.tolerance.gap!r} was asked for"
    if claim.converged != (claim.stop_reason is StopReason.CONVERGED):
        yield "stop", f"{claim.stop_reason}, and converged is {claim.converged}"
    if claim.stop_reason is StopReason.STALLED and claimed.proof is not None:
        own = claimed.proof
        true, computed = penalty_of(claimed.l1).bound(claim.c_bar, own.a, own.b, own.error)
        rounding = 2.0 * (claim.raised + max(0.0, computed - max(true, 0.0)))
        if bool(above > arb(rounding) + arb(claim.primal) * arb("1e-12")):
            yield "stop", f"ended for rounding of {rounding:.3g}, {float(above.mid()):.3g} above the optimum of {optimum.str(12)}"


def _case(kind: str, seed: int) -> Case:
    rng = np.random.default_rng([seed, 3])
    loss = kind if kind in CLASSES else kind.removesuffix(" l1").removesuffix(" free")
    given = problem(loss if loss in ROW_LOSSES else "hinge", seed)
    X = given.X
    if rng.random() < 0.3:
        X = X.copy()
        X[:, 0] = 10.0 ** rng.uniform(6, 9) * (1.0 + 10.0 ** rng.uniform(-6, 0) * X[:, 0] / (np.abs(X[:, 0]).max() + 1e-9))
    given = replace(given, X=X)
    passes = (3, 1, 2)[seed // 2 % 3] if seed % 2 else _PASSES
    rule = _RULES[int(rng.integers(len(_RULES)))] | {"max_passes": passes}
    if loss in ROW_LOSSES:
        return _rows(given, kind, rule, seed, rng)
    if kind in CLASSES:
        return _classes(given, kind, rule, seed, rng)
    return _structured(given, kind, rule, seed, rng)


def _exactly(value: Any) -> arb:
    value = Fraction(value)
    return arb(fmpq(value.numerator, value.denominator))


def _forms(given: Any) -> list[list[arb]]:
    """x of each row, a bias feature last."""
    more = [given.bias] if given.bias else []
    return [[arb(v) for v in (*row, *more)] for row in given.X.astype(float).tolist()]


def _plus(form: list[arb], factor: arb, b: arb) -> Form:
    return [factor * v for v in form], b


def _weights(model: Any, bias: float) -> list[arb]:
    w = [arb(v) for v in model.weights.tolist()]
    return [*w, arb(float(model.intercept)) / arb(bias)] if bias else w


def _no_class_without_weight(weight: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """`weight`, but 1 for the rows of a label that all have weight 0: such rows are refused."""
    return np.where([weight[labels == label].any() for label in labels], weight, 1.0)


def _rows(given: Any, kind: str, rule: dict[str, Any], seed: int, rng: np.random.Generator) -> Case:
    solvers: list[dict[str, Any]] = [{"solver": "bundle-dca"}, {"solver": "ocas"}, {"solver": "cpa"}, {"solver": "newton"},
                                     {"solver": "bundle-dca", "row_cache": "0"}]  # fmt: skip
    l1 = float(10.0 ** rng.uniform(-3, 1)) * min(1.0, given.C) if kind.endswith(" l1") else 0.0
    free = " free" in kind
    if free:
        given = replace(given, bias=1.0, weight=np.maximum(given.weight, 1e-6))
    if set(given.y.tolist()) == {-1.0, 1.0}:
        given = replace(given, weight=_no_class_without_weight(given.weight, given.y))
    how = ({}, {"row_cache": "0"}, {"lanes": 2})[seed % 3] if free and l1 else solvers[seed % len(solvers)]
    options = {**given.options, **how, **rule, "C": given.C} | ({"l1": l1} if l1 else {})
    options |= {"intercept": "free"} if free else {}
    data = streamcut.rows(given.X, given.y, weight=given.weight, shard_nnz=given.X.size // 3 + 1)
    if seed % 2:
        options["warm_start"] = train(data, scheduler="sync", **{**options, "C": given.C / 10.0})

    def problems(model: Any) -> list[tuple[Problem, Claimed]]:
        rows = _forms(given)
        terms: list[Term] = [
            term
            for x, y, u in zip(rows, given.y.tolist(), given.weight.tolist(), strict=True)
            for term in row_loss(
                given.loss, given.own, x, y, _exactly(given.C) * arb(u) * arb(given.positive_weight if y > 0 else 1.0)
            )
            if u
        ]
        terms += _absolute(len(rows[0]), l1, len(rows[0]) - free)
        claimed = Claimed(model.certificate, next(iter(model.proofs), None), _weights(model, given.bias), l1)
        return [(Problem(len(rows[0]), terms, free), claimed)]

    return Case(given.kind, data, options, problems)


def _absolute(dimension: int, l1: float, costly: int | None = None) -> list[Term]:
    """λ‖w‖₁ of the first `costly` weights, or all."""
    if l1 == 0.0:
        return []
    units = [[arb(i == j) for i in range(dimension)] for j in range(dimension if costly is None else costly)]
    return [Largest(arb(l1), [_plus(e, arb(sign), arb(0)) for sign in (1, -1)]) for e in units]


def row_loss(loss: str, own: dict[str, float], x: list[arb], target: float, price: arb) -> list[Term]:
    """price · ℓ(⟨w, x⟩, target)."""
    zero, y, one = ([arb(0)] * len(x), arb(0)), arb(target), arb(1)
    late = _plus(x, -y, one)  # 1 − yz
    over, under = _plus(x, one, -y), _plus(x, -one, y)
    if loss in ("hinge", "squared-hinge"):
        return [Largest(price, [zero, late], loss != "hinge")]
    if loss == "smoothed-hinge":
        return [Bent(price, late, one, True)]
    if loss == "logistic":
        return [Smooth(price, [zero, _plus(x, -y, arb(0))], True)]
    if loss == "squared":
        return [Largest(price / 2, [over, under], True)]
    if loss == "huber":
        return [Bent(price, over, arb(own["delta"]), False)]
    if loss in ("epsilon-insensitive", "squared-epsilon-insensitive"):
        e = arb(own["epsilon"])
        return [Largest(price, [zero, (over[0], over[1] - e), (under[0], under[1] - e)], loss.startswith("squared"))]
    if loss == "quantile":
        q = arb(own["quantile"])
        return [Largest(price, [_plus(x, -q, q * y), _plus(x, 1 - q, -(1 - q) * y)])]
    constant = y - y * y.log() if target > 0 else arb(0)
    return [Smooth(price, [(x, arb(0))], False, _plus(x, -price * y, -price * constant))]


def _classes(given: Any, kind: str, rule: dict[str, Any], seed: int, rng: np.random.Generator) -> Case:
    K, n = 3, max(len(given.X), 4)
    rows = np.resize(given.X, (n, given.X.shape[1]))
    target = rng.permutation(np.arange(n) % K)
    given = replace(given, X=rows, weight=_no_class_without_weight(np.resize(given.weight, n), target))
    free = " free" in kind
    if free:
        given = replace(given, bias=1.0, weight=np.maximum(given.weight, 1e-6))
    l1 = float(10.0 ** rng.uniform(-3, 1)) * min(1.0, given.C) if kind.endswith(" l1") else 0.0
    options = {"task": "multiclass", "bias": given.bias, "C": given.C, **CLASSES[kind], **rule}
    options |= {"l1": l1} if l1 else {}
    if kind.startswith("one-vs-rest"):
        options |= ({}, {"row_cache": "0"}, {"lanes": 2})[seed % 3]
    if kind == "crammer-singer":
        options["strategy"] = kind
    data = streamcut.rows(given.X, target.astype(float), weight=given.weight, shard_nnz=given.X.size // 3 + 1)

    def problems(model: Any) -> list[tuple[Problem, Claimed]]:
        X, D = _forms(given), given.X.shape[1] + (given.bias != 0.0)
        classes = len(model.weights.T)
        W = [[arb(v) for v in column] for column in model.weights.T.tolist()]
        if given.bias:
            W = [[*w, arb(b) / arb(given.bias)] for w, b in zip(W, model.intercept.tolist(), strict=True)]
        price = [_exactly(given.C) * arb(u) for u in given.weight.tolist()]
        known = sorted({int(t) for t, u in zip(target, given.weight, strict=True)})
        positions = [known.index(int(t)) for t in target]
        if kind.startswith("one-vs-rest"):
            found = []
            for k in range(classes):
                terms = [
                    term for x, t, p, u in zip(X, positions, price, given.weight, strict=True) if u
                    for term in row_loss(CLASSES[kind]["loss"], {}, x, 1.0 if t == k else -1.0, p)
                ]  # fmt: skip
                terms += _absolute(D, l1, D - free)
                found.append((Problem(D, terms, free), Claimed(model.certificates[k], model.proofs[k], W[k], l1)))
            return found
        joint: list[Term] = []
        for x, t, p, u in zip(X, positions, price, given.weight, strict=True):
            if u:
                forms = [
                    _blocks(x, {k: 1, t: -1} if k != t else {}, classes, arb(k != t and kind != "softmax"))
                    for k in range(classes)
                ]
                joint.append(Smooth(p, forms, True) if kind == "softmax" else Largest(p, forms))
        flat = [W[k][j] for k in range(classes) for j in range(D)]
        return [(Problem(D * classes, joint), Claimed(model.certificates[0], None, flat))]

    return Case(given.kind, data, options, problems)


def _blocks(x: list[arb], signs: dict[int, int], classes: int, b: arb) -> Form:
    """Σ_k signs_k ⟨w_k, x⟩ + b of weights that stand class after class."""
    return [signs.get(k, 0) * v for k in range(classes) for v in x], b


def _structured(given: Any, kind: str, rule: dict[str, Any], seed: int, rng: np.random.Generator) -> Case:
    n = 6
    X = np.resize(given.X, (n, given.X.shape[1]))
    y = np.where(rng.permutation(n) < 3, 1.0, -1.0)
    given = replace(given, X=X, weight=None)
    qid = np.repeat([0, 1], n // 2) if kind in ("queries", "sequence") else None
    options: dict[str, Any] = {"C": given.C, "solver": _GLOBAL[seed % 2], **rule}
    if kind == "one-class":
        options = {"task": kind, "nu": 0.5, **rule}
    elif kind in LABELLING_LOSSES:
        options |= {"loss": kind, "bias": given.bias} | ({"k": "2"} if kind in ("prec@k", "rec@k") else {})
    elif kind == "sequence":
        y = rng.permutation(np.arange(n) % 2).astype(float)
        options |= {"task": kind, "bias": given.bias, "solver": ("bundle-dca", "ocas", "cpa")[seed % 3]}
    else:
        y = rng.permutation([2.0, 0.0, 1.0, 2.0, 0.0, 1.0]) if kind != "roc-area" else y
        options |= {"task": "ranking" if kind != "roc-area" else kind, "solver": (*_GLOBAL, "newton")[seed % 3]}
        options |= {"normalisation": "queries"} if kind == "queries" else {}
    if kind in ("one-class", "ranking", "queries", "roc-area"):
        given = replace(given, bias=0.0)
    data = streamcut.rows(X, np.ones(n) if kind == "one-class" else y, qid=qid, shard_nnz=X.size // 3 + 1)

    def problems(model: Any) -> list[tuple[Problem, Claimed]]:
        rows, claim = _forms(given), model.certificate
        c_bar = arb(claim.c_bar) if kind == "one-class" else _exactly(given.C) * n
        if kind == "sequence":
            stated = Problem((len(rows[0]) + 2) * 2, _chains(rows, y.astype(int), qid, _exactly(given.C)))
            W = np.vstack([model.weights]).T.tolist()
            flat = [arb(v) for own in W for v in own]
            if given.bias:
                flat = [
                    v
                    for own, b in zip(W, model.intercept.tolist(), strict=True)
                    for v in (*map(arb, own), arb(b) / arb(given.bias))
                ]
            return [(stated, Claimed(claim, None, [*flat, *(arb(v) for v in model.transitions.ravel().tolist())]))]
        stated = Problem(len(rows[0]), _of_all(kind, rows, y, qid, c_bar))
        return [(stated, Claimed(claim, next(iter(model.proofs), None), _weights(model, given.bias)))]

    return Case(given.kind, data, options, problems)


def _of_all(kind: str, rows: list[list[arb]], y: np.ndarray, qid: np.ndarray | None, c_bar: arb) -> list[Term]:
    """C̄ R(w) of a risk of all rows at once."""
    n, zero = len(rows), ([arb(0)] * len(rows[0]), arb(0))

    def summed(factors: dict[int, arb], b: arb) -> Form:
        return [sum((f * rows[i][j] for i, f in factors.items()), arb(0)) for j in range(len(rows[0]))], b

    if kind == "one-class":
        half = n // 2
        return [
            Largest(
                c_bar, [zero, *(summed(dict.fromkeys(some, -arb(1) / half), arb(1)) for some in combinations(range(n), half))]
            )
        ]
    if kind in ("ranking", "queries", "roc-area"):
        own = np.zeros(n) if qid is None else qid
        listed = [(i, j) for i, j in product(range(n), repeat=2) if y[i] > y[j] and own[i] == own[j]]
        groups = [0 if kind != "queries" else int(own[i]) for i, _ in listed]
        weights = [arb(1) / (len(set(groups)) * groups.count(g)) for g in groups]
        return [
            Largest(c_bar * u, [zero, summed({i: arb(-1), j: arb(1)}, arb(1))]) for (i, j), u in zip(listed, weights, strict=True)
        ]
    truth, forms = y > 0, [zero]
    for labels in product((False, True), repeat=n):
        said = np.array(labels)
        lost = _delta(kind, truth, said, 2)
        if lost is not None:
            flipped = {i: arb(-1 if truth[i] else 1) / n for i in np.flatnonzero(said != truth).tolist()}
            forms.append(summed(flipped, _exactly(lost)))
    return [Largest(c_bar, forms)]


def _delta(loss: str, truth: np.ndarray, said: np.ndarray, k: int) -> Fraction | None:
    """Loss of the labelling `said`, None when it is not allowed."""
    hits, P, size = int(np.sum(truth & said)), int(truth.sum()), int(said.sum())
    if loss == "error":
        return Fraction(int(np.sum(truth != said)), len(truth))
    if loss == "f1":
        return 1 - Fraction(2 * hits, P + size)
    k = P if loss == "prbep" else k
    return 1 - Fraction(hits, P if loss == "rec@k" else k) if size == k else None


def _chains(rows: list[list[arb]], y: np.ndarray, qid: np.ndarray | None, price: arb) -> list[Term]:
    """Of two classes: weights stand class after class, then the transitions."""
    assert qid is not None
    terms: list[Term] = []
    for group in sorted(set(qid.tolist())):
        positions = np.flatnonzero(qid == group).tolist()
        right = tuple(int(y[i]) for i in positions)
        forms = []
        for path in product((0, 1), repeat=len(positions)):
            form = [arb(0)] * (2 * len(rows[0]) + 4)
            for sign, labels in ((1, path), (-1, right)):
                for i, k in zip(positions, labels, strict=True):
                    for j, v in enumerate(rows[i]):
                        form[k * len(rows[0]) + j] += sign * v
                for before, after in pairwise(labels):
                    form[2 * len(rows[0]) + 2 * before + after] += sign
            forms.append((form, arb(sum(a != b for a, b in zip(path, right, strict=True)))))
        terms.append(Largest(price, forms))
    return terms
