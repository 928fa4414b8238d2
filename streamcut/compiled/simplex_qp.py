"""max_β ⟨b, β⟩ − ½ βᵀGβ over β ≥ 0, Σβ = total: sequential minimal optimisation with second-order choice of the pair."""

import numpy as np

from streamcut.jit import kernel


@kernel
def smo(G, b, total, beta, gradient, tolerance, max_steps):
    """Improves the feasible `beta` (T) in place until the dual gap is at most `tolerance`; returns (gap, steps).

    G (T, T) symmetric positive semidefinite, singular allowed; `gradient` (T) is filled with b − Gβ. The gap
    total·max g − ⟨β, g⟩ bounds what the optimum has over the present value. Pair: i with the largest gradient, j with
    β_j > 0 by the largest gain (Fan, Chen & Lin, 2005, second-order working set).
    """
    T = len(b)
    for t in range(T):
        g = b[t]
        for s in range(T):
            if beta[s] != 0.0:
                g -= G[t, s] * beta[s]
        gradient[t] = g
    steps = 0
    gap = np.inf
    while True:
        i = 0
        weighted = 0.0
        for t in range(T):
            if gradient[t] > gradient[i]:
                i = t
            weighted += beta[t] * gradient[t]
        gap = total * gradient[i] - weighted
        if gap <= tolerance or steps >= max_steps:
            return gap, steps
        j = -1
        best = 0.0
        for t in range(T):
            ahead = gradient[i] - gradient[t]
            if beta[t] > 0.0 and ahead > 0.0:
                curvature = max(G[i, i] + G[t, t] - 2.0 * G[i, t], 1e-300)
                move = min(ahead / curvature, beta[t])
                gain = move * (ahead - 0.5 * move * curvature)
                if gain > best:
                    best = gain
                    j = t
        if j < 0:
            return gap, steps
        curvature = max(G[i, i] + G[j, j] - 2.0 * G[i, j], 1e-300)
        move = min((gradient[i] - gradient[j]) / curvature, beta[j])
        beta[i] += move
        beta[j] = 0.0 if move == beta[j] else beta[j] - move
        for t in range(T):
            gradient[t] -= move * (G[t, i] - G[t, j])
        steps += 1
