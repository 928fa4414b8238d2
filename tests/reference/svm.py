"""The slow obvious versions: dense NumPy, sorting, and the papers' algorithms line by line."""

import numpy as np
from scipy.optimize import minimize


def primal(w, X, sign, C, u):
    """½‖w‖² + C Σ u_i max(0, 1 − sign_i ⟨w, x_i⟩)."""
    return 0.5 * w @ w + C * np.sum(u * np.maximum(0.0, 1.0 - sign * (X @ w)))


def cut(w, X, sign, u):
    """(a, b) of the cutting plane of the mean risk at w (Franc & Sonnenburg 2008, eq. 5)."""
    active = sign * (X @ w) < 1.0
    M = u.sum()
    return -(X.T @ (u * sign * active)) / M, np.sum(u * active) / M


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def line_search_by_sorting(A0, B0, C, z_b, z, u):
    """argmin_{k ≥ 0} ½k²A₀ + kB₀ + C Σ u max(0, 1 − z_b − k(z − z_b)), all breakpoints in one sorted list."""

    def slope(k):  # right derivative
        room = 1.0 - z_b - k * (z - z_b)
        active = (room > 0.0) | ((room == 0.0) & (z < z_b))
        return k * A0 + B0 - C * np.sum((u * (z - z_b))[active])

    if slope(0.0) >= 0.0:
        return 0.0
    delta = z - z_b
    k = (1.0 - z_b) / delta
    use = (delta != 0.0) & (k > 0.0)
    order = np.argsort(k[use])
    breaks, jumps = k[use][order], (C * u * np.abs(delta))[use][order]
    constant = slope(0.0)
    for place, jump in zip(breaks, jumps, strict=True):
        if constant + place * A0 >= 0.0:
            return -constant / A0
        if constant + jump + place * A0 >= 0.0:
            return place
        constant += jump
    return -constant / A0


def master_value(vectors, b, c_bar):
    """max over β ≥ 0, Σβ ≤ c_bar of ⟨b, β⟩ − ½‖βᵀA‖² by a general-purpose solver."""
    G = vectors @ vectors.T
    result = minimize(
        lambda beta: 0.5 * beta @ G @ beta - b @ beta,
        np.full(len(b), c_bar / (2 * len(b))),
        jac=lambda beta: G @ beta - b,
        bounds=[(0.0, c_bar)] * len(b),
        constraints={"type": "ineq", "fun": lambda beta: c_bar - beta.sum(), "jac": lambda beta: -np.ones(len(beta))},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return -result.fun


def ocas(X, sign, C, u, tol, mu=0.1, max_iterations=300):
    """Franc & Sonnenburg 2008, Algorithm 1, with the line search above. Returns (w_b, F(w_b), lower bound, iterations)."""
    M = u.sum()
    c_bar = C * M
    w_b = np.zeros(X.shape[1])
    A, b = (part[None] for part in map(np.asarray, cut(w_b, X, sign, u)))
    beta = np.zeros(1)
    for _ in range(max_iterations):
        beta = _simplex_qp(A @ A.T, b, c_bar, np.append(beta, np.zeros(len(b) - len(beta))))
        w = -beta @ A
        bound = b @ beta - 0.5 * w @ w
        k = line_search_by_sorting((w - w_b) @ (w - w_b), w_b @ (w - w_b), C, sign * (X @ w_b), sign * (X @ w), u)
        w_b = w_b + k * (w - w_b)
        F = primal(w_b, X, sign, C, u)
        if F - bound <= tol * c_bar:
            break
        a, b_new = cut(w_b * (1 - mu) + w * mu, X, sign, u)
        A, b = np.vstack([A, a]), np.append(b, b_new)
    return w_b, F, bound, len(b)


def _simplex_qp(G, b, total, beta):
    """Pairwise exact coordinate steps over the simplex with a slack variable, to 1e-10 of the total."""
    G = np.pad(G, ((1, 0), (1, 0)))
    b = np.append(0.0, b)
    beta = np.append(total - beta.sum(), beta)
    for _ in range(100_000):
        g = b - G @ beta
        i = int(np.argmax(g))
        if total * g[i] - beta @ g <= 1e-9 * total:
            break
        ahead = np.where(beta > 0.0, g[i] - g, 0.0)
        curvature = np.maximum(G[i, i] + np.diag(G) - 2.0 * G[i], 1e-300)
        j = int(np.argmax(np.where(ahead > 0.0, ahead**2 / curvature, 0.0)))
        move = min(ahead[j] / curvature[j], beta[j])
        beta[i] += move
        beta[j] -= move
    return beta[1:]
