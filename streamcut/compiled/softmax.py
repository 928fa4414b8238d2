"""The softmax of scores of rows: losses, cuts, and the sums of a line search. Conventions as in streamcut.compiled.multiclass.

A row with shares p (K,), whose target is t, adds u_i (p − e_t) x_iᵀ to a cut, and u_i H(p) to its constant, H(p) = −Σ p log p.
The target has the remaining share: p_t = 1 − Σ_{k ≠ t} p_k.
"""

import math

import numpy as np

from streamcut.compiled.records import entry, weight_of
from streamcut.compiled.shares import rounded
from streamcut.compiled.vectors import compensated
from streamcut.compiler.jit import allocating, helper, inlined, kernel


@helper
def normalised(z, out):
    """out (K,) = exp(z) / Σ exp(z)."""
    most = -np.inf
    for value in z:
        most = max(most, value)
    total = 0.0
    for k in range(len(z)):
        out[k] = math.exp(z[k] - most)
        total += out[k]
    for k in range(len(z)):
        out[k] /= total


@inlined
def _loss(z, t):
    """log Σ exp(z) − z_t, small where the target leads by far."""
    best = 0
    for k in range(len(z)):
        if z[k] > z[best]:
            best = k
    others = 0.0
    for k in range(len(z)):
        if k != best:
            others += math.exp(z[k] - z[best])
    return math.log1p(others) + (z[best] - z[t])


@kernel
def losses(target, z, out):
    """out[i] = the loss of row i at z; returns the first row with a score that is not finite, or −1."""
    bad = -1
    for i in range(len(z)):
        out[i] = _loss(z[i], target[i])
        total = 0.0
        for value in z[i]:
            total += value
        if bad < 0 and not np.isfinite(total):
            bad = i
    return bad


@helper
def entropy(p, t):
    """H(p) with p_t = 1 − Σ of the others, ignoring p[t]."""
    total, others = 0.0, 0.0
    for k in range(len(p)):
        if k != t and p[k] > 0.0:
            others += p[k]
            total -= p[k] * math.log(p[k])
    if 0.0 < others < 1.0:
        total -= (1.0 - others) * math.log1p(-others)
    return total


@kernel
def duals(target, z, alpha, constants):
    """alpha[i] = e_t − p, constants[i] = H(p) for p the softmax of z[i]: at any other scores s′ the loss is at least their
    constant − ⟨alpha, s′⟩."""
    for i in range(len(z)):
        t, others = target[i], 0.0
        normalised(z[i], alpha[i])
        constants[i] = entropy(alpha[i], t)
        for k in range(z.shape[1]):
            if k != t:
                others += alpha[i, k]
                alpha[i, k] = -alpha[i, k]
        alpha[i, t] = others


@helper
def add(rows, i, t, bias, p, weight, sign, grids, a):
    """Adds `sign`·weight (p − e_t) x_iᵀ to a (D, K), each term on a grid, ignoring p[t]. Overwrites p."""
    total = 0.0
    for k in range(len(p)):
        if k != t:
            p[k] *= weight
            total += p[k]
    p[t] = -total
    for at in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        j = np.uint64(rows.indices[at])
        value = entry(rows.data, at)
        for k in range(len(p)):
            a[j, k] += sign * rounded(p[k] * value, grids.vector)
    if bias != 0.0:
        for k in range(len(p)):
            a[len(a) - 1, k] += sign * rounded(p[k] * bias, grids.vector)


@allocating
def cut(rows, z_b, z, kappa, bias, grids, a, b):
    """The cut at z_b + κ(z − z_b) of all rows: added to a (D, K), and its constant to b[0]."""
    K = z.shape[1]
    there, p = np.empty(K), np.empty(K)
    for i in range(len(rows.y)):
        for k in range(K):
            there[k] = z_b[i, k] + kappa * (z[i, k] - z_b[i, k])
        normalised(there, p)
        weight = weight_of(rows.u, i)
        b[0] += rounded(weight * entropy(p, rows.y[i]), grids.weight)
        add(rows, i, rows.y[i], bias, p, weight, 1.0, grids, a)


@kernel
def step(target, z_b, z, k, out):
    """z_b += k (z − z_b) in place; out[i] = the loss of row i there."""
    for i in range(len(z)):
        for y in range(z.shape[1]):
            z_b[i, y] += k * (z[i, y] - z_b[i, y])
        out[i] = _loss(z_b[i], target[i])


@allocating
def slopes(target, z_b, z, k, u, slope, curvature):
    """slope += Σ u_i ⟨p − e_t, Δ⟩ and curvature += Σ u_i Var_p(Δ), p the softmax at z_b + kΔ, Δ = z − z_b."""
    K = z.shape[1]
    here, p = np.empty(K), np.empty(K)
    first, first_lost, second, second_lost = slope[0], slope[1], curvature[0], curvature[1]
    for i in range(len(z)):
        weight, mean, spread = weight_of(u, i), 0.0, 0.0
        for y in range(K):
            here[y] = z_b[i, y] + k * (z[i, y] - z_b[i, y])
        normalised(here, p)
        t = target[i]
        own = z[i, t] - z_b[i, t]
        for y in range(K):
            mean += p[y] * ((z[i, y] - z_b[i, y]) - own)
        for y in range(K):
            off = ((z[i, y] - z_b[i, y]) - own) - mean
            spread += p[y] * off * off
        first, first_lost = compensated(first, first_lost, weight * mean)
        second, second_lost = compensated(second, second_lost, weight * spread)
    slope[0], slope[1], curvature[0], curvature[1] = first, first_lost, second, second_lost
