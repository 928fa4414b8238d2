"""`standard_errors`: the sampling error of each weight at the exact optimum, between two bounds.

Model-based   √(C (H⁻¹)_jj), H = ∇²F(w*): those of a posterior whose prior is that of the penalty, w ~ N(0, C); for large C those
              of maximum likelihood. `locate` bounds them.
Robust        the sandwich (streamcut.locating.sandwich), for rows that do not follow the model, or are not independent
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamcut.data.datasets import opened
from streamcut.errors import UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.foundation.rounding import gamma
from streamcut.foundation.shown import Shown
from streamcut.io.dataset import Dataset
from streamcut.locating.locate import its_rows, locate
from streamcut.locating.problem import LIKELIHOODS, Located, expect_locatable, is_scaled, located_problem
from streamcut.locating.sandwich import MATRICES, Sandwich
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.models.optimum import Optimum

COLUMNS = {"error_low": "low", "error_high": "high", "z_low": "z_low", "z_high": "z_high", "p_low": "p_low", "p_high": "p_high"}
_ANYWHERE = 1e200
COLUMNS |= {"interval_low": "interval_low", "interval_high": "interval_high", "penalty": "penalty"}
_95 = 1.959963984540054  # 95 % of a normal distribution are within so many standard errors


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class StandardErrors(Shown):
    """Of each weight, and of the intercept, last, where there is one: float64 (D,) each.

    low, high      the standard error at the exact optimum is between them
    z_low, z_high  the optimum's weight divided by it
    p_low, p_high  two-sided, of a normal distribution
    interval_low, interval_high  ends of the 95 % interval of the optimum's weight; it is nowhere wider
    penalty        (H⁻¹)_jj at most: the part of what is known of a weight that is the penalty's and not the rows' (1: all of
                   it). Where it is not near 0 the weight is pulled towards 0, which z and p do not account for. 0 for a free
                   intercept, NaN where features were scaled and the rows were not given
    kind           "model", "robust", "clusters"
    """

    low: np.ndarray
    high: np.ndarray
    z_low: np.ndarray
    z_high: np.ndarray
    p_low: np.ndarray
    p_high: np.ndarray
    interval_low: np.ndarray
    interval_high: np.ndarray
    penalty: np.ndarray
    kind: str

    def shown(self) -> dict[str, Any]:
        return {"weights": len(self.low), "kind": self.kind}


def standard_errors(
    model: Model | str | os.PathLike, data: Any = None, *, robust: bool = False, clusters: Any = None, memory: str = "auto"
) -> StandardErrors:
    """Standard errors of the weights of a logistic, squared or Poisson model at the exact optimum, with z and p.

    model     a linear model as `locate` takes
    data      the rows that it was trained on, as `locate` takes them; None: `locate` has read them, which is enough for errors
              that are not robust
    robust the sandwich instead of the errors that assume the model to be true
    clusters  rows of the same cluster depend on each other: an array (n,) that names the cluster of each row, or "qid", those
              of the data; implies robust
    memory    "4GB", "50%" or "auto": ceiling on the resident memory of this process; clusters take 8 D bytes each

    Raises what `locate` raises, and UsageError for losses that are not likelihoods and clusters that do not fit the rows.
    """
    given = expect_locatable(as_model(model, Ceiling(memory).expect_model))
    name = given.parameters.get("loss")
    if name not in LIKELIHOODS or given.l1 != 0.0:
        raise UsageError(
            f"loss {name!r}{' with l1' if given.l1 else ''} is no likelihood, so its weights have no standard errors here; those "
            f"of {', '.join(LIKELIHOODS)} have"
        )
    robust = robust or clusters is not None
    if data is None and (robust or given.optimum is None):
        raise UsageError("standard errors need the rows that the model was trained on (data, --trained-on)")
    divisors = None if data is None else its_rows(given, data)[1]
    located = given if data is None or given.optimum is not None else locate(given, data, memory=memory)
    known = located.optimum
    if known is None or known.low is None or known.high is None:
        raise UsageError("standard errors of squared losses need more rows than weights")
    low, high = _sandwich(located, data, divisors, clusters, Ceiling(memory)) if robust else (known.low, known.high)
    return _tested(located, divisors, low, high, "clusters" if clusters is not None else "robust" if robust else "model")


def _tested(model: LinearModel, divisors: np.ndarray | None, low: np.ndarray, high: np.ndarray, kind: str) -> StandardErrors:
    from scipy.special import erfc

    weights, bias, known = model.augmented_weights, model.bias, model.optimum
    assert known is not None
    shown = np.ones(len(weights))
    if bias:
        shown[-1] = abs(bias)
    width = np.sqrt(known.diagonal) * (1.0 + gamma(8.0))
    least = np.maximum(weights - known.distance * width, weights - known.step - known.half * width) * shown
    most = np.minimum(weights + known.distance * width, weights - known.step + known.half * width) * shown
    if bias < 0.0:
        least[-1], most[-1] = -most[-1], -least[-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        z_low = np.where(least >= 0.0, least / high, least / low)
        z_high = np.where(most >= 0.0, most / low, most / high)
    farthest = np.maximum(np.abs(z_low), np.abs(z_high))
    nearest = np.where((z_low <= 0.0) & (z_high >= 0.0), 0.0, np.minimum(np.abs(z_low), np.abs(z_high)))
    p_low, p_high = (erfc(z / math.sqrt(2.0)) for z in (farthest, nearest))
    penalty = known.diagonal
    if divisors is not None:
        penalty[: len(divisors)] *= divisors**2
    elif is_scaled(model):
        penalty[: model.n_features] = np.nan
    penalty = np.minimum(penalty, 1.0)
    if model.free:
        penalty[-1] = 0.0
    return StandardErrors(low, high, z_low, z_high, p_low, p_high, least - _95 * high, most + _95 * high, penalty, kind)


def _sandwich(
    model: LinearModel, data: Any, divisors: np.ndarray | None, clusters: Any, ceiling: Ceiling
) -> tuple[np.ndarray, np.ndarray]:
    problem, rows = located_problem(model), opened(data)
    if divisors is not None:  # the same problem on unscaled rows: the penalty of a weight is that of the scaled one
        problem.ridge[: len(divisors)] = divisors**2
    codes = None if clusters is None else _codes(rows, clusters)
    D = len(problem.at)
    ceiling.beside(f"{MATRICES} matrices of {D:,} × {D:,} numbers", MATRICES * 8 * D * D)
    if codes is not None:
        groups = int(codes.max(initial=-1)) + 1
        if groups < 2 or len(codes) <= D:
            raise UsageError(f"{groups} clusters of {len(codes)} rows say nothing about {D} weights; two, and more rows, would")
        ceiling.beside(f"sums of {groups:,} clusters, {D:,} numbers each", 8 * groups * D)
    ceiling.expect_rows(model, rows.manifest, (16, 16))
    assert model.optimum is not None
    low, high = Sandwich(*_centred(problem, model.optimum), codes).errors(rows)
    ceiling.keep()
    if model.bias:
        low[-1], high[-1] = low[-1] * abs(model.bias), high[-1] * abs(model.bias)
    return low, high


def _centred(problem: Located, known: Optimum) -> tuple[Located, Optimum]:
    """The problem at the middle of the smaller ellipsoid, and that ellipsoid relative to it: its step is the part of the middle
    that float64 cannot hold."""
    at = problem.at - known.step
    back = at - problem.at
    left = (problem.at - (at - back)) - (known.step + back)
    return replace(problem, at=at), replace(known, step=-left, distance=_ANYWHERE)


def _codes(data: Dataset, clusters: Any) -> np.ndarray:
    """The index of each row's cluster, from 0, int64 (n,)."""
    n = data.manifest.statistics.n_rows
    if isinstance(clusters, str):
        if clusters != "qid":
            raise UsageError(f"clusters: {clusters!r} is neither 'qid' nor an array that names the cluster of each row")
        if data.manifest.statistics.groups is None:
            raise UsageError("clusters: 'qid', and the rows have none")
        buffers = data.buffers()
        names = np.concatenate([np.array(data.read(k, buffers).qid) for k in range(len(data.manifest.shards))])
    else:
        names = np.asarray(clusters)
    if names.shape != (n,):
        raise UsageError(f"clusters: an array of shape {names.shape} for {n:,} rows")
    return np.unique(names, return_inverse=True)[1].astype(np.int64)
