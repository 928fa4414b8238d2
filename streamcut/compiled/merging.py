"""Merging two Gaussian terms into one.

Of a φ(x) + b φ(x′) with a, b of one sign, κ = k(x, x′) and m = a / (a + b), the best single term is β_z φ(h x + (1 − h) x′) where

    h = argmax over [0, 1] of s(h) = m κ^((1−h)²) + (1 − m) κ^(h²),   β_z = (a + b) s(h),
    weight degradation  WD = a² + b² + 2abκ − β_z².

Qaadan, Schüler & Glasmachers 2019, Algorithm 1; its pseudo-code swaps the weights m and 1 − m in the line of h. This code follows
its closed form for β_z.

A table bounds WD from below near (m, κ), so that only the few partners that can be the best are evaluated exactly, by Newton's
method. It depends on (m, κ) alone: one serves all kernels, coefficients and data.
"""

import math

import numpy as np

from streamcut.compiled.kernel_rows import exponential
from streamcut.compiler.jit import fused, fused_inlined, kernel

_BITS, _OCTAVES = 6, 24  # the table of least degradations: cells of κ between powers of 2, and powers of 2 (below, one cell) …
_LOWEST = np.int32((127 - _OCTAVES) << _BITS)
_MS, _KAPPAS = 32, (_OCTAVES << _BITS) + 1  # … and cells of m, without m = 1 (one coefficient negligible)
_NOWHERE = (_MS + 1) * _KAPPAS  # the cell of a slot that cannot be a partner
_NOISE = 1e-12  # relative rounding error of a degradation
_NEWTON = 64  # most steps to h; a few but near m = 1/2, κ = e⁻², where the maximum splits in two: there each takes a third off
_FLAT = 1e-300  # for a slope that rounding makes 0
CELLS = _NOWHERE + 1  # of the table


@fused_inlined
def _kappa_cell(kappa):
    """The cell of κ in the table: exponent and leading bits of the float32, from 0 to _KAPPAS − 1; any number for nan."""
    return max((np.float32(kappa).view(np.int32) >> np.int32(23 - _BITS)) - _LOWEST, np.int32(0))


@fused
def best_h(m, kappa):
    """(h, s(h)) for 0 ≤ m ≤ 1, 0 ≤ κ ≤ 1.

    With u = 2h − 1, v = 2m − 1, L = −ln κ the maximum solves atanh(u) − L u / 2 = atanh(v). The left side is convex where u > 0,
    so Newton's method falls to the root from tanh(atanh(v) + L / 2), which is beyond it.
    """
    if m < 0.5:
        h, s = best_h(1.0 - m, kappa)
        return 1.0 - h, s
    if not (0.0 < kappa <= 1.0 and m < 1.0):  # nan included
        return 1.0, m
    log_kappa = math.log(kappa)
    half, goal = -0.5 * log_kappa, 0.5 * math.log(m / (1.0 - m))
    h = 0.5
    if m > 0.5 or half > 1.0:  # otherwise the maximum is at that point, where the equation can be flat
        u = 1.0 - 2.0 / (math.exp(2.0 * min(goal + half, 300.0)) + 1.0)
        for _ in range(_NEWTON):
            u = min(max(u, 1e-12), 1.0 - 1e-15)
            step = (0.5 * math.log((1.0 + u) / (1.0 - u)) - half * u - goal) / max(1.0 / (1.0 - u * u) - half, _FLAT)
            u -= step
            if abs(step) < 1e-9:
                break
        h = 0.5 + 0.5 * min(max(u, 0.0), 1.0)
    return h, m * exponential(log_kappa * (1.0 - h) * (1.0 - h)) + (1.0 - m) * exponential(log_kappa * h * h)


@fused
def smallest(values, n):
    """The index of the smallest |value|, the first of equals. Bits of numbers ≥ 0 sort like the numbers, and vectorise."""
    bits, magnitude, n = values.view(np.int64), np.int64(0x7FFFFFFFFFFFFFFF), np.uint64(n)
    least = magnitude
    for j in range(n):
        least = min(least, bits[j] & magnitude)
    found = np.int64(n)
    for j in range(n):
        found = min(found, np.int64(j) if bits[j] & magnitude == least else np.int64(n))
    return found


@fused_inlined
def _merged(a, b, kappa):
    """(weight degradation, h of the first, coefficient) of merging coefficients a, b > 0."""
    h, s = best_h(a / (a + b), kappa)
    merged = (a + b) * s
    return max(a * a + b * b + 2.0 * a * b * kappa - merged * merged, 0.0), h, merged


@fused
def best_partner(least, beta, k, used, table, cells, bounds):
    """(slot, WD, h of `least`, |β_z|) of the merge with `least` of least weight degradation; slot −1: none.

    Partners have the sign of `least`; k = k(x̃_least, ·).

    First, vectorised, a lower bound for every slot, from its cell of `table` (CELLS,). The slot with the lowest is evaluated
    exactly, then the few others with bounds below that value. `cells` and `bounds` are scratch (used,).
    """
    a, sign = abs(beta[least]), (1.0 if beta[least] > 0.0 else -1.0)
    for j in range(np.uint64(used)):
        signed = beta[j] * sign
        b = max(signed, a)
        cell = np.int32((b - a) / (b + a) * _MS) * np.int32(_KAPPAS) + _kappa_cell(k[j])
        cells[j] = min(max(cell, np.int32(0)), np.int32(_NOWHERE)) if signed > 0.0 else np.int32(_NOWHERE)  # nan, inf: any cell
    cells[least] = _NOWHERE
    for j in range(np.uint64(used)):
        bounds[j] = table[np.uint64(cells[j])]
    found = smallest(bounds, used)
    if bounds[found] == np.inf:
        return np.int64(-1), 0.0, 0.0, 0.0
    degradation, h, merged = _merged(a, abs(beta[found]), k[found])
    bounds[found] = np.inf
    bound = degradation / (a * a) - _NOISE
    for j in range(np.uint64(used)):
        if bounds[j] < bound:
            other = _merged(a, abs(beta[j]), k[j])
            if other[0] < degradation:
                found, (degradation, h, merged) = np.int64(j), other
                bound = degradation / (a * a) - _NOISE
    return found, degradation, h, merged


@kernel
def _fill(edges, table):
    """WD / a², a the smaller coefficient, grows with m to 1 − κ² and falls with κ: its least value in a cell is at an end."""
    for j in range(_KAPPAS):
        table[_MS * _KAPPAS + j] = 1.0 - edges[j] * edges[j]
    for i in range(_MS):
        m = 0.5 + 0.5 * i / _MS
        for j in range(_KAPPAS):
            table[i * _KAPPAS + j] = _merged(1.0 - m, m, edges[j])[0] / ((1.0 - m) * (1.0 - m))


def least_degradations() -> np.ndarray:
    """The least WD / a² in each cell, a the smaller coefficient, then infinity: float64 (CELLS,)."""
    table = np.full(CELLS, np.inf)
    edges = ((np.arange(1, _KAPPAS + 1) + _LOWEST) << (23 - _BITS)).astype(np.int32).view(np.float32)
    _fill(np.minimum(edges.astype(np.float64), 1.0), table)
    return table
