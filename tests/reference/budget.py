"""BSCA and BSGD the slow and obvious way: Gaussian kernel, dense rows, merging by brute force."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq


def rbf(x, z, gamma: float) -> float:
    return float(np.exp(-gamma * np.sum((x - z) ** 2)))


def best_merge(a: float, b: float, kappa: float) -> tuple[float, float]:
    """(h, β_z) for a, b > 0: the best point of a fine grid over [0, 1], then where the derivative is 0 next to it."""
    h = np.linspace(0.0, 1.0, 201)
    best = int(np.argmax(a * kappa ** ((1 - h) ** 2) + b * kappa ** (h**2)))

    def slope(h: float) -> float:
        return a * (1 - h) * kappa ** ((1 - h) ** 2) - b * h * kappa ** (h**2)

    low, high = h[max(best - 1, 0)], h[min(best + 1, 200)]
    exact = brentq(slope, low, high, xtol=1e-15) if slope(low) * slope(high) < 0 else h[best]
    return float(exact), float(a * kappa ** ((1 - exact) ** 2) + b * kappa ** (exact**2))


class Model:
    """Σ β_j φ(x̃_j) with at most `budget` vectors, maintained by "merge" or "remove"; the paper's Algorithm 1."""

    def __init__(self, gamma: float, budget: int, maintenance: str) -> None:
        self.gamma, self.budget, self.maintenance = gamma, budget, maintenance
        self.vectors: list[tuple[float, np.ndarray, int | None]] = []  # β, x̃, number of the row that it is

    def score(self, x) -> float:
        return sum(beta * rbf(x, z, self.gamma) for beta, z, _ in self.vectors)

    def add(self, change: float, x, row: int) -> None:
        for place, (beta, z, source) in enumerate(self.vectors):
            if source == row:
                self.vectors[place] = (beta + change, z, source)
                return
        self.vectors.append((change, x, row))
        if len(self.vectors) > self.budget:
            self.maintain()

    def maintain(self) -> None:
        least, z_least, _ = self.vectors.pop(int(np.argmin([abs(beta) for beta, _, _ in self.vectors])))
        if self.maintenance == "remove":
            return
        choices = []
        for place, (beta, z, _) in enumerate(self.vectors):
            if beta * least > 0:
                kappa = rbf(z, z_least, self.gamma)
                h, merged = best_merge(abs(least), abs(beta), kappa)
                choices.append((least**2 + beta**2 + 2 * least * beta * kappa - merged**2, place, h, merged))
        if choices:
            _, place, h, merged = min(choices)
            _, z, _ = self.vectors.pop(place)
            self.vectors.append((merged * np.sign(least), h * z_least + (1 - h) * z, None))


def bsca(X, y, C, gamma, budget, order, maintenance) -> tuple[Model, np.ndarray]:
    """Algorithm 2 over the rows `order`."""
    model, alpha = Model(gamma, budget, maintenance), np.zeros(len(y))
    for i in order:
        target = np.clip(alpha[i] + 1 - y[i] * model.score(X[i]), 0.0, C[i])
        if target != alpha[i]:
            model.add((target - alpha[i]) * y[i], X[i], i)
            alpha[i] = target
    return model, alpha


def bsgd(X, y, C, gamma, budget, order, maintenance) -> Model:
    """Equation 4 over the rows `order`."""
    model = Model(gamma, budget, maintenance)
    for t, i in enumerate(order, 1):
        margin = y[i] * model.score(X[i])
        model.vectors = [(beta * (1 - 1 / t), z, source) for beta, z, source in model.vectors]
        if margin < 1:
            model.add(len(y) * C[i] / t * y[i], X[i], i)
    return model
