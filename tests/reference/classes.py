"""Several classes with an elastic net, slow and obvious: a general-purpose solver on dense rows.

The dual of a joint loss is over a point p_i of the simplex for each row: max C Σ u_i h(p_i) − ½‖S(W, λ)‖² with
W = C Σ u_i x_i (e_t − p_i)ᵀ, h the entropy for the softmax and 1 − p_t for Crammer and Singer's loss.
"""

import numpy as np
from reference import elastic_net
from reference.elastic_net import shrunk
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax, xlogy


def binary(A, sign, C, u, loss, l1):
    """(least primal found, greatest dual found) of one class against the rest."""
    return elastic_net.optimum(A, sign, C, u, loss, l1)


def losses(kind, S, target):
    rows = np.arange(len(S))
    if kind == "softmax":
        return logsumexp(S, axis=1) - S[rows, target]
    wrong = 1.0 + S - S[rows, target][:, None]
    wrong[rows, target] = 0.0
    return wrong.max(axis=1)


def primal(kind, W, A, target, C, u, l1):
    """½‖W‖² + l1‖W‖₁ + C Σ u ℓ."""
    return 0.5 * np.sum(W * W) + l1 * np.abs(W).sum() + C * u @ losses(kind, A @ W, target)


def _projected(P):
    """The nearest points of the simplex, row by row."""
    ordered = -np.sort(-P, axis=1)
    over = (np.cumsum(ordered, axis=1) - 1.0) / np.arange(1, P.shape[1] + 1)
    last = (ordered > over).sum(axis=1) - 1
    return np.maximum(P - over[np.arange(len(P)), last][:, None], 0.0)


def joint(A, target, C, u, kind, l1):
    """(least primal found, greatest dual found)."""
    return _softmax(A, target, C * u, l1) if kind == "softmax" else _crammer_singer(A, target, C * u, l1)


def _softmax(A, target, weight, l1):
    """By L-BFGS on W = W₊ − W₋; the dual at the shares of its answer."""
    d, K = A.shape[1], target.max() + 1
    E = np.eye(K)[target]

    def value(x):
        W = (x[: d * K] - x[d * K :]).reshape(d, K)
        slope = W + A.T @ (weight[:, None] * (softmax(A @ W, axis=1) - E))
        F = primal("softmax", W, A, target, 1.0, weight, 0.0) + l1 * x.sum()
        return F, np.concatenate([slope.ravel() + l1, l1 - slope.ravel()])

    x = np.zeros(2 * d * K)
    for _ in range(3):  # it gives up early now and then
        options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-10}
        x = minimize(value, x, jac=True, bounds=[(0.0, None)] * len(x), method="L-BFGS-B", options=options).x
    W = (x[: d * K] - x[d * K :]).reshape(d, K)
    P = softmax(A @ W, axis=1)
    V = shrunk(A.T @ (weight[:, None] * (E - P)), l1)
    return primal("softmax", W, A, target, 1.0, weight, l1), weight @ -xlogy(P, P).sum(axis=1) - 0.5 * np.sum(V * V)


def _crammer_singer(A, target, weight, l1, steps=20_000):
    """By accelerated projected gradients on the dual, begun anew where it falls."""
    n, K = len(target), target.max() + 1
    E = np.eye(K)[target]
    scale = np.linalg.norm(A * np.sqrt(weight)[:, None], 2) ** 2
    P = np.full((n, K), 1.0 / K)
    Q, t, best, bound, before = P, 1.0, np.inf, -np.inf, -np.inf
    for step in range(steps):
        W = shrunk(A.T @ (weight[:, None] * (E - Q)), l1)
        new = _projected(Q + (A @ W - E) / scale)
        W = shrunk(A.T @ (weight[:, None] * (E - new)), l1)
        now = weight @ (1.0 - new[np.arange(n), target]) - 0.5 * np.sum(W * W)
        if now < before:
            Q, t, before = P, 1.0, -np.inf
            continue
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        Q, P, t, before = new + (t - 1.0) / after * (new - P), new, after, now
        bound = max(bound, now)
        if step % 50 == 0:
            best = min(best, primal("crammer-singer", W, A, target, 1.0, weight, l1))
            if best - bound <= 1e-7 * best:
                break
    return best, bound
