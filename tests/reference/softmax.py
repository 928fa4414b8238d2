"""Cuts of multinomial logistic regression in exact decimals."""

from decimal import Decimal, localcontext

import numpy as np


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
