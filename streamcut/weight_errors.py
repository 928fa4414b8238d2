"""Standard errors of the weights of a logistic, squared or Poisson model, from the rows that it was trained on.

    H = ∇²F(w) = R + C Σ u_i h_i x_i x_iᵀ,   R the identity, 0 for a free intercept;   B = C² Σ_g s_g s_gᵀ,   s_g = Σ u_i ℓ_i′ x_i

Plain      √(C (H⁻¹)_jj): the errors of a posterior whose prior is that of the penalty, w ~ N(0, C); for large C those of maximum
           likelihood. The squared loss has a variance too: that of the residuals, Σ u z² / (Σ u − D).
Robust     √(H⁻¹BH⁻¹)_jj, g the single rows (White 1980, HC0), for rows that do not follow the model.
Clustered  g are clusters of rows that depend on each other, times G/(G − 1) · (n − 1)/(n − D) (Liang and Zeger 1986).

They are those at the model's weights; its certificate says how near the optimum these are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from streamcut.compiled import second_order
from streamcut.data.datasets import labelled
from streamcut.errors import UsageError
from streamcut.execution.ceiling import Ceiling
from streamcut.execution.views import as_trained
from streamcut.foundation.chunk import Chunk
from streamcut.io.dataset import Dataset
from streamcut.losses.pointwise import PointwiseRisk
from streamcut.models.files import as_model
from streamcut.models.linear import LinearModel
from streamcut.models.model import Model
from streamcut.prediction import scored_chunks

_LOSSES = ("logistic", "squared", "poisson")  # log-likelihoods; their curvature depends on the score or on |ℓ′| alone
_95 = 1.959963984540054  # 95 % of a normal distribution are within so many standard errors
_MATRICES = 6  # D × D numbers at a time


class StandardErrors(NamedTuple):
    """Of each weight, and of the intercept, last, where there is one: float64 arrays (D,).

    error      the standard error; z: the weight divided by it; p: two-sided, of a normal distribution
    interval_low, interval_high   ends of the 95 % interval
    """

    error: np.ndarray
    z: np.ndarray
    p: np.ndarray
    interval_low: np.ndarray
    interval_high: np.ndarray


def standard_errors(
    model: Model | str | os.PathLike,
    data: object,
    *,
    robust: bool = False,
    clusters: ArrayLike | None = None,
    memory: str = "auto",
) -> StandardErrors:
    """See streamcut.api."""
    ceiling = Ceiling(memory)
    trained = as_model(model, ceiling.expect_model)
    loss, l1 = trained.problem.loss, trained.problem.l1
    if not isinstance(trained, LinearModel) or trained.scores_per_row > 1 or trained.map or loss not in _LOSSES or l1:
        what = f"loss {loss!r}{' with l1' if l1 else ''} of a {trained.kind} model"
        raise UsageError(
            f"{what} is no likelihood, so its weights have no standard errors; linear ones of {', '.join(_LOSSES)} have"
        )
    with labelled(trained, data, memory) as rows:
        return _tested(trained, _errors(trained, rows, ceiling, robust, clusters))


def _errors(model: LinearModel, rows: Dataset, ceiling: Ceiling, robust: bool, clusters: ArrayLike | None) -> np.ndarray:
    """The standard error of each weight, float64 (D,), and of the bias feature, last."""
    loss = model.problem.loss
    ridge = _penalty(model, rows)
    statistics, D = rows.manifest.statistics, len(ridge)
    codes = None if clusters is None else _codes(rows, clusters)
    groups = 0 if codes is None else int(codes.max(initial=-1)) + 1
    if codes is not None and (groups < 2 or len(codes) <= D):
        raise UsageError(f"{groups} clusters of {len(codes)} rows say nothing about {D} weights; two, and more rows, would")
    ceiling.reserve(
        f"{_MATRICES} matrices of {D:,} × {D:,} numbers, sums of {groups:,} clusters", 8 * D * (_MATRICES * D + groups)
    )
    ceiling.expect_rows(model, rows.manifest, (0, 0))
    H, B = np.diag(ridge), np.zeros((D, D))
    sums, variance, total, at = np.zeros((groups, D)), 0.0, 0.0, 0
    risk, C, bias = PointwiseRisk.of(model.problem), model.C, model.problem.bias
    curvature: Callable[..., np.ndarray | float] = risk.loss.curvature  # of these losses: of arrays too
    dense = statistics.nnz > 0.25 * statistics.n_rows * D
    for chunk, scores in scored_chunks(model, rows):
        u = risk.weights_of(chunk.y, chunk.weight)
        f = risk.duals(chunk.y, scores)[0]  # −ℓ′
        slopes = C * u * f
        _add_squares(chunk, C * u * curvature(np.abs(f), scores, chunk.y), bias, dense, H)
        if codes is None and robust:
            _add_squares(chunk, slopes * slopes, bias, dense, B)
        elif codes is not None:
            group = codes[at : at + chunk.n_rows]
            which = sp.csr_array((slopes, (group, np.arange(chunk.n_rows))), shape=(groups, chunk.n_rows))
            sums += (which @ _matrix(chunk, D, bias)).toarray()
        variance += float(u @ (scores - chunk.y) ** 2) if loss == "squared" else 0.0
        total, at = total + float(u.sum()), at + chunk.n_rows
    ceiling.keep()
    if loss == "squared" and not total > D:
        raise UsageError("standard errors of squared losses need more rows than weights")
    inverse = np.linalg.inv(H + np.tril(H, -1).T)
    if codes is not None:
        B = sums.T @ sums * (groups / (groups - 1) * (statistics.n_rows - 1) / (statistics.n_rows - D))
    else:
        B = B + np.tril(B, -1).T
    plain = C * np.diagonal(inverse) * (variance / (total - D) if loss == "squared" else 1.0)
    squares = np.einsum("ij,jk,ki->i", inverse, B, inverse) if robust or codes is not None else plain
    return np.sqrt(squares)


def _tested(model: LinearModel, error: np.ndarray) -> StandardErrors:
    from scipy.special import erfc

    weights = model.augmented_weights
    if bias := model.problem.bias:
        weights, error = np.append(weights[:-1], model.intercept), np.append(error[:-1], error[-1] * abs(bias))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = weights / error
    return StandardErrors(error, z, erfc(np.abs(z) * 0.5**0.5), weights - _95 * error, weights + _95 * error)


def _penalty(model: LinearModel, rows: Dataset) -> np.ndarray:
    """The penalty of each weight of unscaled rows, (D,). Raises UsageError for rows that the model was not trained on."""
    ridge = np.ones(len(model.augmented_weights))
    _, divisors = as_trained(model.problem, rows, model.n_features, model.fingerprint)
    if divisors is not None:
        ridge[: len(divisors)] = divisors**2
    if model.problem.free:
        ridge[-1] = 0.0
    return ridge


def _add_squares(chunk: Chunk, h: np.ndarray, bias: float, dense: bool, out: np.ndarray) -> None:
    """out (D, D) += Σ h_i x_i x_iᵀ, the lower triangle, in place."""
    entries = chunk.indptr, chunk.indices, chunk.data
    if dense:
        second_order.add_dense(*entries, h, bias, np.empty((second_order.TOGETHER, len(out))), out)
    else:
        second_order.add_sparse(*entries, h, bias, out)


def _matrix(chunk: Chunk, D: int, bias: float) -> sp.csr_array:
    """The rows of `chunk` with their bias feature, (n, D)."""
    first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
    data = np.ones(last - first) if chunk.data is None else chunk.data[first:last]
    X = sp.csr_array((data, chunk.indices[first:last], chunk.indptr - first), shape=(chunk.n_rows, D - bool(bias)))
    return sp.hstack([X, sp.csr_array(np.full((chunk.n_rows, 1), bias))], format="csr") if bias else X


def _codes(data: Dataset, clusters: ArrayLike | None) -> np.ndarray:
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
