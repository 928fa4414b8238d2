"""What training claims of several classes, and `verify` of its models, checked in exact arithmetic as in reference.exact_bounds.

F is enclosed by fractions for each way to train: one problem of all classes, or a problem of each class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from reference import exact
from reference.exact_bounds import Violation, problem, solved

import streamcut
from streamcut import verify
from streamcut.errors import BadInputError
from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import ROW_LOSSES
from streamcut.verification import Verification

WAYS: dict[str, dict[str, Any]] = {
    "crammer-singer": {"strategy": "crammer-singer"},
    "softmax": {"loss": "softmax"},
}
WAYS |= {
    f"one-vs-rest {name}": {"strategy": "one-vs-rest", "loss": name}
    for name in ROW_LOSSES
    if ROW_LOSSES[name].targets == "labels"
}
_SOLVERS: list[dict[str, Any]] = [
    {"solver": "bundle-dca"},
    {"solver": "bundle-dca", "row_cache": "0"},
    {"solver": "bundle-dca", "lanes": 3, "l1": 0.01},
    {"solver": "bundle-dca", "row_cache": "0", "lanes": 3},
]
_RULES: list[dict[str, Any]] = [{}, {"tol": None, "tol_relative": 1e-6}, {"tol": None, "tol_relative": 1e-9}]


def crammer_singer(scores: list[Fraction], target: int) -> exact.Interval:
    """max_y (1[y ≠ t] + s_y − s_t)."""
    return exact.exactly(max(s - scores[target] + (y != target) for y, s in enumerate(scores)))


def softmax(scores: list[Fraction], target: int) -> exact.Interval:
    """log Σ_y e^(s_y − s_t)."""
    best = max(range(len(scores)), key=scores.__getitem__)
    parts = [exact.exp(s - scores[best]) for y, s in enumerate(scores) if y != best]
    low, high = exact.log_of_one_more(sum(part[0] for part in parts), sum(part[1] for part in parts))
    return low + scores[best] - scores[target], high + scores[best] - scores[target]


@dataclass(frozen=True)
class ExactClasses:
    """Rows of classes 0 … K − 1 as exact numbers, a bias feature last; their weights, and how they are trained."""

    rows: list[list[Fraction]]
    target: list[int]
    weights: list[Fraction]
    way: str

    def objectives(self, model: Any, C: float) -> list[exact.Interval]:
        """Enclosures of F of each problem at the weights of a linear model."""
        W = [[Fraction(value) for value in column] for column in model.weights.T.tolist()]
        if model.problem.bias:
            W = [[*w, Fraction(own) / Fraction(model.problem.bias)] for w, own in zip(W, model.intercept.tolist(), strict=True)]
        l1 = Fraction(model.problem.l1)
        squares = [sum(v * v for v in w) / 2 + l1 * sum(map(abs, w)) for w in W]
        joint = not self.way.startswith("one-vs-rest")
        found = [(sum(squares),) * 2] if joint else [(square,) * 2 for square in squares]
        for x, target, u in zip(self.rows, self.target, self.weights, strict=True):
            scores = [sum((v * value for v, value in zip(w, x, strict=True) if v and value), Fraction(0)) for w in W]
            losses = self._losses(scores, target)
            weight = Fraction(C) * u
            found = [(low + weight * a, high + weight * b) for (low, high), (a, b) in zip(found, losses, strict=True)]
        return found

    def _losses(self, scores: list[Fraction], target: int) -> list[exact.Interval]:
        if self.way in ("crammer-singer", "softmax"):
            return [{"crammer-singer": crammer_singer, "softmax": softmax}[self.way](scores, target)]
        loss = exact.LOSSES[self.way.removeprefix("one-vs-rest ")]
        return [loss(s, Fraction(1 if k == target else -1), {}) for k, s in enumerate(scores)]


def check(way: str, seed: int, passes: int = 6, one_type: bool = False) -> list[Violation]:
    """Trains problem `seed` in a way of WAYS, with a solver and a stopping rule of its own; what is false of the claims."""
    rng = np.random.default_rng([seed, 2])
    given, K = problem("hinge", seed, rows=14, features=6, one_type=one_type), int(rng.integers(3, 6))
    n = len(given.X)
    planted = given.X.astype(float) @ rng.standard_normal((given.X.shape[1], K))
    target = planted.argmax(axis=1) if rng.random() < 0.7 else rng.integers(0, K, n)
    classes = sorted(set(target.tolist()))
    if len(classes) < 3:
        target, classes = np.arange(n) % 3, list(range(min(n, 3)))
    if len(classes) < 3:
        return []
    solver, rule = _SOLVERS[seed % len(_SOLVERS)], _RULES[int(rng.integers(len(_RULES)))]
    options = {"task": "multiclass", "bias": given.bias, "C": given.C, **WAYS[way]}
    data = streamcut.rows(given.X, target.astype(float), weight=given.weight, shard_nnz=given.X.size // 3 + 1)
    limits = {"max_passes": int(rng.choice([1, 2, 3, passes, passes]))}
    best = {"solver": "bundle-dca", "tol": None, "tol_relative": 1e-9, "max_passes": 40}
    best |= {"l1": solver.get("l1", 0.0)}
    models = [solved(data, {**options, **solver, **rule, **limits}), solved(data, {**options, **best})]
    X = [[*map(Fraction, row), Fraction(given.bias)][: len(row) + (given.bias != 0.0)] for row in given.X.astype(float).tolist()]
    u = [Fraction(1)] * n if given.weight is None else [Fraction(value) for value in given.weight.tolist()]
    rows = ExactClasses(X, [classes.index(t) for t in target.tolist()], u, way)
    seen = f"{way} {seed}: {given.kind}; {K} classes, C = {given.C:g}, bias {given.bias:g}, {solver}, {rule}, {limits}"
    return [Violation(kind, f"{what}; {seen}") for kind, what in _false(models, rows, data)]


def _false(models: list[Any], rows: ExactClasses, data: MemoryDataset) -> Iterator[tuple[str, str]]:
    """(kind, what) of claims that are false."""
    each = [rows.objectives(model, model.C) for model in models]
    least = [min(low for low, _ in bounds) for bounds in zip(*each, strict=True)]
    for model, objectives in zip(models, each, strict=True):
        who = model.solver
        try:
            found = verify(model, data)
        except BadInputError as error:  # training refuses it, too
            if "weight 0" not in str(error):
                raise
            found = None
        if found is not None and not found.consistent:
            yield "verify", f"{who}'s model is rejected: {found}"
        problems = [None] * len(objectives) if found is None else found.classes or (found,)
        for k, (claim, one, (_, most)) in enumerate(zip(model.certificates, problems, objectives, strict=True)):
            if Fraction(claim.primal) < most:
                short = float(most - Fraction(claim.primal))
                yield "primal", f"{who}'s primal {claim.primal!r} of problem {k} is below F by {short:.3g}"
            bound = Fraction(claim.lower_bound)
            if bound > least[k]:
                yield "bound", f"{who}'s bound {claim.lower_bound!r} of problem {k} is above F by {float(bound - least[k]):.3g}"
            if one is not None:
                yield from _forged(model, data, k, one)


def _forged(model: Any, data: MemoryDataset, k: int, found: Verification) -> Iterator[tuple[str, str]]:
    """Certificates of problem k that are beyond what rounding may do, and still taken."""
    claim, slack = model.certificates[k], found.slack
    forged = {
        "an objective that is too low": replace(claim, primal=claim.primal - 2.5 * slack - 2.5 * claim.raised),
        "an objective that is too high": replace(claim, primal=claim.primal + 2.5 * slack + 2.5 * claim.raised),
        "a bound above it": replace(claim, lower_bound=found.primal + 2.5 * slack),
    }
    for what, certificate in forged.items():
        certificates = tuple(certificate if i == k else own for i, own in enumerate(model.certificates))
        if verify(replace(model, certificates=certificates), data).consistent:
            yield "forged", f"{what} is taken: {certificate!r}, found was {found!r}"
