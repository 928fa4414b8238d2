"""Sums Σ h_i x_i x_iᵀ over rows, and the quadratic problems with λ‖w‖₁ of Newton's method.

Only the lower triangle of a sum is kept. No bound depends on it, so products and sums may share one rounding; additions are in
the order of the rows, however these are split into calls.

Also quadratic forms xᵀQx of rows, with the lower triangle of a symmetric Q kept row by row: (0,0), (1,0), (1,1), …
"""

import numpy as np

from streamcut.compiled import loss as methods  # noqa: F401  (kernels call methods of losses)
from streamcut.compiled.records import entry, target_of, weight_of
from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import fused, kernel

TOGETHER = 8  # dense rows added at a time: the matrix is read and written once for all


@kernel
def curvatures(loss, z, target, u, out, slack):
    """out[i] = u_i ℓ″(z_i), 0 where that is not finite; slack (total, rounding lost) += Σ u_i (ℓ(z_i) less the row's part of the
    cut), which is 0 unless ℓ is streamcut.losses.smoothed."""
    total, lost = slack[0], slack[1]
    for i in range(len(z)):
        y, weight = target_of(target, i), weight_of(u, i)
        f = loss.dual(z[i], y)
        h = loss.curvature(f, z[i], y) * weight
        out[i] = h if h < np.inf else 0.0
        total, lost = compensated(total, lost, weight * (loss.value(z[i], y) + f * z[i] + loss.conjugate(f, y)))
    slack[0], slack[1] = total, lost


@fused
def add_sparse(indptr, indices, data, h, bias, H):
    """H (D, D) += Σ h_i x_i x_iᵀ, the lower triangle, in place; features of a row increase."""
    last = len(H) - 1
    for i in range(len(h)):
        if h[i] == 0.0:
            continue
        first, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        for s in range(first, stop):
            value, row = h[i] * entry(data, s), H[np.uint64(indices[s])]
            for t in range(first, s + np.uint64(1)):
                row[np.uint64(indices[t])] += value * entry(data, t)
        if bias != 0.0:
            value, row = h[i] * bias, H[last]
            for t in range(first, stop):
                row[np.uint64(indices[t])] += value * entry(data, t)
            row[last] += value * bias


@fused
def add_dense(indptr, indices, data, h, bias, rows, H):
    """The same for rows that have most features, TOGETHER at a time, collected in `rows` (TOGETHER, D)."""
    D = len(H)
    for begin in range(0, len(h), TOGETHER):
        rows[:] = 0.0
        for k in range(min(TOGETHER, len(h) - begin)):
            i = begin + k
            root = np.sqrt(h[i])
            if bias != 0.0:
                rows[k, D - 1] = root * bias
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                rows[k, np.uint64(indices[t])] = root * entry(data, t)
        a, b, c, d, e, f, g, q = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], rows[6], rows[7]
        for s in range(D):
            A, B, C, E, F, G, P, Q = a[s], b[s], c[s], d[s], e[s], f[s], g[s], q[s]
            row = H[s]
            for t in range(s + 1):
                row[t] += (A * a[t] + B * b[t]) + (C * c[t] + E * d[t]) + ((F * e[t] + G * f[t]) + (P * g[t] + Q * q[t]))


@fused
def descend(Q, slope, l1, sweeps, w):
    """`sweeps` of coordinate descent on ½wᵀQw − ⟨q, w⟩ + Σ_j l1_j |w_j|, in place; `slope` is Qw − q and is updated.

    Q (D, D) is symmetric, its diagonal above 0.
    """
    D = len(w)
    for _ in range(sweeps):
        for j in range(D):
            free = w[j] - slope[j] / Q[j, j]
            new = max(abs(free) - l1[j] / Q[j, j], 0.0) * np.sign(free)
            if new != w[j]:
                change = new - w[j]
                w[j] = new
                for k in range(D):
                    slope[k] += change * Q[j, k]


@fused
def solve(L, q):
    """q = (LLᵀ)⁻¹q in place, of L (D, D) the lower triangle."""
    D = len(q)
    for i in range(D):
        row, total = L[i], q[i]
        for j in range(i):
            total -= row[j] * q[j]
        q[i] = total / row[i]
    for i in range(D - 1, -1, -1):
        row = L[i]
        q[i] /= row[i]
        for j in range(i):
            q[j] -= row[j] * q[i]
