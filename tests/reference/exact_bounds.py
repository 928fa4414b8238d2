"""What training claims, checked in exact arithmetic on problems as badly scaled as can be: no tolerance anywhere.

`check` makes a problem from its seed, trains it and lists what is false of the claims: nothing, one hopes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from reference.exact import ExactRows, objective

import streamcut
from streamcut import verify
from streamcut.config import TrainOptions
from streamcut.errors import BadInputError
from streamcut.execution.feed import Feed
from streamcut.execution.plan import MemoryPlan
from streamcut.execution.runner import Runner
from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import ROW_LOSSES
from streamcut.solvers.progress import Progress, StoppingRule
from streamcut.training import job_class

_CACHE = 1 << 18


@dataclass(frozen=True)
class Problem:
    """Rows of two classes, labels ±1, or with numbers as targets. `kind` says in a few words what makes it hard."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    loss: str
    own: dict[str, float]  # options of the loss
    positive_weight: float
    C: float
    bias: float

    def exact(self) -> ExactRows:
        u = np.ones(len(self.y)) if self.weight is None else self.weight
        found = ExactRows.of(self.X, self.y, u, self.loss, self.own)
        more = Fraction(self.positive_weight)
        weights = [u * more if y > 0 else u for u, y in zip(found.weights, self.y.tolist(), strict=True)] if more != 1 else None
        return found if weights is None else ExactRows(**{**vars(found), "weights": weights})

    @property
    def options(self) -> dict[str, Any]:
        """As `train` takes them."""
        if ROW_LOSSES[self.loss].targets == "numbers":
            return {"task": "regression", "loss": self.loss, "bias": self.bias, **self.own}
        return {"task": "binary", "loss": self.loss, "bias": self.bias, "positive_weight": self.positive_weight, **self.own}


# Options of losses, by name
_OWN = {
    "epsilon": lambda rng: float(rng.choice([0.0, 0.1, 0.5, 10.0 ** rng.uniform(-6, 2)])),
    "delta": lambda rng: float(rng.choice([0.1, 1.0, 10.0 ** rng.uniform(-4, 4)])),
    "quantile": lambda rng: float(rng.choice([0.5, 0.9, 0.01, rng.uniform(0.01, 0.99)])),
}


def problem(loss: str, seed: int, rows: int = 24, features: int = 8, one_type: bool = False) -> Problem:
    """`one_type`: entries are float64 and not all 1, and rows have weights, so kernels are compiled for one kind of rows only."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, rows + 1)), int(rng.integers(1, features + 1))
    shape = rng.choice(["dense", "sparse", "one-hot", "rank one", "copies", "ones", "nearly copies"])
    X = rng.standard_normal((n, d))
    if shape == "sparse":
        X *= rng.random((n, d)) < 0.3
    elif shape == "one-hot":
        X = np.eye(d)[rng.integers(0, d, n)]
    elif shape == "rank one":
        X = np.outer(rng.standard_normal(n), rng.standard_normal(d))
    elif shape in ("copies", "nearly copies"):
        X = X[rng.integers(0, max(1, n // 3), n)]
        X *= 1.0 + (shape == "nearly copies") * 10.0 ** rng.uniform(-15, -3) * rng.standard_normal((n, d))
    elif shape == "ones":
        X = (rng.random((n, d)) < 0.5).astype(float)
    noise = rng.choice([0.0, 10.0 ** rng.uniform(-12, 0), 0.5])
    score = X @ rng.standard_normal(d) + noise * rng.standard_normal(n)
    columns = rng.choice(["", "columns 1e±8", "two scales"])
    if columns == "columns 1e±8":
        X = X * 10.0 ** rng.uniform(-8, 8, d)
    elif columns == "two scales":
        X = X * rng.choice([1.0, 10.0 ** rng.uniform(-8, 8)], d)
    scaled = rng.choice(["", "", "rows 1e±6"])
    if scaled:
        X = X * 10.0 ** rng.uniform(-6, 6, (n, 1))
    if rng.random() < 0.2:
        X[rng.random(n) < 0.3] = 0.0
    if rng.random() < 0.3:
        X = X.astype(np.float32)
    known = ROW_LOSSES[loss]
    named, y = _numbers(score, rng, loss) if known.targets == "numbers" else _labels(score, rng)
    weights, weight = rng.choice(["", "", "weights", "weights 1e±6"]), None
    if weights:
        weight = rng.uniform(0, 2, n) if weights == "weights" else 10.0 ** rng.uniform(-6, 6, n)
        weight[rng.random(n) < 0.2] = 0.0
        weight[0] = max(weight[0], 1e-3)
    C = 10.0 ** rng.uniform(-6, 8) if rng.random() < 0.7 else float(rng.choice([1e-6, 1.0, 100.0, 1e8]))
    bias, positive_weight = float(rng.choice([0.0, 1.0, 1.0, 10.0, 0.1])), float(rng.choice([1.0, 1.0, 0.1, 7.0]))
    own = {name: _OWN[name](rng) for name in known.options}
    if one_type:
        X = X.astype(float) * (1.5 if np.isin(X, (0.0, 1.0)).all() else 1.0)
        weight = np.ones(n) if weight is None else weight
    positive_weight = positive_weight if known.targets == "labels" else 1.0
    kind = ", ".join(filter(None, (shape, named, columns, scaled, weights)))
    return Problem(kind, X, y, weight, loss, own, positive_weight, float(C), bias)


def _labels(score: np.ndarray, rng: np.random.Generator) -> tuple[str, np.ndarray]:
    named = str(rng.choice(["random labels", "planted labels", "planted labels"]))
    middle = np.median(score)
    y = np.where((rng.standard_normal(len(score)) > 0.0) if named == "random labels" else score > middle, 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    return named, y


def _numbers(score: np.ndarray, rng: np.random.Generator, loss: str) -> tuple[str, np.ndarray]:
    named = str(rng.choice(["planted numbers", "planted numbers", "large numbers", "equal numbers", "small numbers"]))
    if loss == "poisson" and named == "small numbers":
        return named, 10.0 ** rng.uniform(-8, 0) * np.exp(np.clip(score, -30.0, 30.0))
    if loss == "poisson":
        mean = {"large numbers": 10.0 ** rng.uniform(0, 6), "equal numbers": 0.0}.get(named, 2.0)
        return named, rng.poisson(mean * np.exp(np.clip(score, -3.0, 3.0))).astype(float)
    if named == "equal numbers":
        return named, np.full(len(score), float(rng.choice([0.0, 1.0, -1e6])))
    scale = {"large numbers": 10.0 ** rng.uniform(0, 8), "small numbers": 10.0 ** rng.uniform(-8, 0)}.get(named, 1.0)
    return named, scale * score + float(rng.choice([0.0, 0.0, 10.0 * scale]))


_SOLVERS: list[dict[str, Any]] = [
    {"solver": "bundle-dca"},
    {"solver": "ocas"},
    {"solver": "bundle-dca", "row_cache": "0"},
    {"solver": "cpa"},
    {"solver": "bundle-dca", "row_cache": "0", "lanes": 3},
    {"solver": "ocas", "cut": "exact"},
    {"solver": "bundle-dca", "lanes": 3},
    {"solver": "ocas", "lanes": 2, "max_cuts": 5},
]
_RULES: list[dict[str, Any]] = [
    {},
    {"tol": None, "tol_relative": 1e-6},
    {"tol": None, "tol_relative": 1e-9},
    {"tol": 1e-8, "tol_relative": None},
    {"tol": None, "tol_relative": None},
]
_WAYS = ("cold", "cold", "warm", "path")


class Violation(NamedTuple):
    """What was false: the kind of claim, and all that is needed to see it again."""

    kind: str
    what: str


def check(loss: str, seed: int, passes: int = 8, **size: Any) -> list[Violation]:
    """Trains problem `seed` with a solver, a stopping rule and from a start of its own, and says what is false of the claims.

    C_1 is the largest C; every model of the same C is a point that no bound may lie above, and so are models of other C.
    """
    given, rng = problem(loss, seed, **size), np.random.default_rng([seed, 1])
    solver, rule = _SOLVERS[seed % len(_SOLVERS)], _RULES[int(rng.integers(len(_RULES)))]
    limit = int(rng.choice([1, 2, 3, passes, passes, passes]))
    data = streamcut.rows(given.X, given.y, weight=given.weight, shard_nnz=given.X.size // 3 + 1)
    chosen = {**given.options, **solver, **rule, "max_passes": limit}
    way = _WAYS[seed // len(_SOLVERS) % len(_WAYS)]
    models = list(_trained(data, chosen, given.C, way))
    best = {**given.options, "solver": "ocas" if solver["solver"] == "bundle-dca" else "bundle-dca", "C": given.C}
    models.append(solved(data, {**best, "tol": None, "tol_relative": 1e-9, "max_passes": 10}))
    exact, seen = given.exact(), f"{loss} {seed}: {given.kind}; {way}, C = {given.C:g}, {solver}, {rule}, {limit} passes"
    return [Violation(kind, f"{what}; {seen}") for kind, what in _false(models, exact, given.bias, data)]


def _false(models: list[Any], exact: ExactRows, bias: float, data: Any) -> Iterator[tuple[str, str]]:
    """(kind, what) of claims that are false."""
    parts = [exact.parts(model, bias) for model in models]
    for i, model in enumerate(models):
        claim, who = model.certificate, f"{model.parameters['solver']}'s"
        most, least = objective(parts[i], model.C)[1], min(objective(point, model.C)[0] for point in parts)
        if claim.primal < math.inf and Fraction(claim.primal) < most:  # where rounding moves e^s by any factor, F is not known
            yield "primal", f"{who} primal {claim.primal!r} is below F by {float(most - Fraction(claim.primal)):.3g}"
        if Fraction(claim.lower_bound) > least:
            yield "bound", f"{who} bound {claim.lower_bound!r} is above F by {float(Fraction(claim.lower_bound) - least):.3g}"
        if claim.converged and claim.gap > claim.tolerance.gap:
            yield "tolerance", f"{who} gap is {claim.gap!r}, {claim.tolerance.gap!r} was asked for"
        if model.witnesses[0].bound(claim.c_bar) < claim.lower_bound:
            yield "witness", f"{who} witness proves {model.witnesses[0].bound(claim.c_bar)!r}, claimed is {claim.lower_bound!r}"
        try:
            found = verify(model, data)
        except BadInputError as error:  # training refuses it, too
            if "weight 0" not in str(error):
                raise
        else:
            if not found.consistent:
                yield "verify", f"{who} model is rejected: {found}"


def _trained(data: MemoryDataset, chosen: dict[str, Any], C: float, way: str) -> Iterator[Any]:
    if way == "path":
        yield from _solve_path(data, {**chosen, "C": C / 30}, [C / 30, C, 3 * C])
        return
    if way == "warm":
        yield (first := solved(data, {**chosen, "C": C / 10}))
        chosen = {**chosen, "warm_start": first}
    yield solved(data, {**chosen, "C": C})


def solved(data: MemoryDataset, given: dict[str, Any]) -> Any:
    """The model of `train`, without what surrounds it: threads, the memory plan."""
    options = TrainOptions(**given, scheduler="sync")
    job = job_class(options).planned(options, data.manifest)
    with _runner(data, job) as runner:
        return job.solve(runner, _progress(options), _plan(data))


def _solve_path(data: MemoryDataset, given: dict[str, Any], Cs: list[float]) -> list[Any]:
    """The models of one C after another, each going on from the one before."""
    options = TrainOptions(**given, scheduler="sync")
    job: Any = job_class(options).planned(options, data.manifest)
    with _runner(data, job) as runner:
        trainer = job.trainer(runner, _plan(data))
        return [trainer.train(C, _progress(options)) for C in Cs]


def _runner(data: MemoryDataset, job: Any) -> Runner:
    return Runner(Feed(data, _plan(data).pinned), job.lanes, 1)


def _plan(data: MemoryDataset) -> MemoryPlan:
    return MemoryPlan(0, (), frozenset(range(len(data.manifest.shards))), 0, row_cache=_CACHE)


def _progress(options: TrainOptions) -> Progress:
    return Progress(StoppingRule(options.tol, options.tol_relative, options.target, options.max_passes, options.max_time))
