"""The slow obvious versions for several classes: dense NumPy, one row at a time, and the papers' formulas."""

import numpy as np


def losses(target, S):
    """Crammer & Singer 2001: max_y (1[y ≠ t] + s_y − s_t) of each row of S (n, K)."""
    rows = np.arange(len(target))
    return (S - S[rows, target][:, None] + (np.arange(S.shape[1]) != target[:, None])).max(axis=1)


def primal(W, X, target, C, u):
    """½‖W‖² + C Σ u_i ℓ_i, W (D, K)."""
    return 0.5 * np.sum(W * W) + C * u @ losses(target, X @ W)


def project_on_simplex(v):
    """The point of the simplex nearest to v, by sorting (Held, Wolfe & Crowder 1974)."""
    falling = np.sort(v)[::-1]
    levels = (np.cumsum(falling) - 1.0) / np.arange(1, len(v) + 1)
    return np.maximum(v - levels[falling > levels][-1], 0.0)


def optimum(X, target, K, C, u, gap=1e-8):
    """min F by the sequential dual method (Keerthi et al. 2008), a row at a time, to a relative duality gap: (primal, dual)."""
    n, D = X.shape
    P = np.eye(K)[target]  # row i: its shares
    W = np.zeros((D, K))
    norms = (X * X).sum(axis=1)
    rng = np.random.default_rng(0)
    others = (np.arange(K) != target[:, None]).astype(float)
    for _ in range(5000):
        for i in rng.permutation(n):
            if norms[i] == 0.0 or u[i] == 0.0:
                new = np.eye(K)[(target[i] + 1) % K]
            else:
                new = project_on_simplex(P[i] + (others[i] + X[i] @ W) / (C * u[i] * norms[i]))
            W += C * u[i] * np.outer(X[i], P[i] - new)
            P[i] = new
        value, dual = primal(W, X, target, C, u), C * u @ (others * P).sum(axis=1) - 0.5 * np.sum(W * W)
        if value - dual <= gap * value:
            break
    return value, dual
