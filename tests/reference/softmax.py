"""Multinomial logistic regression, slow and obvious: dense NumPy, exact decimals, scikit-learn's optimum."""

from decimal import Decimal, localcontext

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.linear_model import LogisticRegression


def losses(target, S):
    """log Σ_y exp(s_y) − s_t of each row of S (n, K)."""
    return logsumexp(S, axis=1) - S[np.arange(len(target)), target]


def primal(W, X, target, C, u):
    """½‖W‖² + C Σ u_i ℓ_i, W (D, K)."""
    return 0.5 * np.sum(W * W) + C * u @ losses(target, X @ W)


def cut(W, X, target, u):
    """(a (D, K), b) of the cutting plane of the mean loss at W: the tangent there."""
    P = softmax(X @ W, axis=1) - np.eye(W.shape[1])[target]
    a = X.T @ (u[:, None] * P) / u.sum()
    return a, u @ losses(target, X @ W) / u.sum() - np.sum(a * W)


def best_shares(p, scores, Q):
    """argmax over the simplex of H(p′) + ⟨p′, s⟩ − ½Q‖p′ − p‖²: log p′ + Q p′ = s + Q p − λ by bisection twice over."""
    c = scores + Q * p

    def shares(level):
        low, high = np.zeros(len(c)), np.ones(len(c))
        for _ in range(60):
            middle = 0.5 * (low + high)
            with np.errstate(divide="ignore"):
                above = np.log(middle) + Q * middle > c - level
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return high

    low, high = c.max() - Q - 1.0, c.max() + np.log(len(c)) + 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if shares(middle).sum() > 1.0 else (low, middle)
    return shares(low)


def optimum(X, target, C, u):
    """(W, F there) by scikit-learn: the constant feature is one of X."""
    fitted = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, target, sample_weight=u)
    W = fitted.coef_.T if len(fitted.coef_) > 1 else np.vstack([-fitted.coef_ / 2, fitted.coef_ / 2]).T
    return W, primal(W, X, target, C, u)


def exact_cut(share, X, target, u, M):
    """(a, b) of the shares (n, K) of wrong classes, in decimals: the float64 that are given are taken as they are."""
    with localcontext() as context:
        context.prec = 60
        n, K = share.shape
        a, b = np.full((X.shape[1], K), Decimal(0)), Decimal(0)
        for i in range(n):
            p = [Decimal(value) for value in share[i].tolist()]
            p[target[i]] = 1 - sum(value for k, value in enumerate(p) if k != target[i])
            weight = Decimal(float(u[i])) / Decimal(float(M))
            b -= weight * sum((value * value.ln() for value in p if value > 0), Decimal(0))
            p[target[i]] -= 1
            for j in np.flatnonzero(X[i]):
                for k in range(K):
                    a[j, k] += weight * Decimal(float(X[i, j])) * p[k]
        return a, b
