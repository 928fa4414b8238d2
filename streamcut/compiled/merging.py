"""Merging two Gaussian terms into one by a table and Newton steps.

Of a φ(x) + b φ(x′) with a, b of one sign, κ = k(x, x′) and m = a / (a + b), the best single term is β_z φ(h x + (1 − h) x′) where

    h = argmax over [0, 1] of s(h) = m κ^((1−h)²) + (1 − m) κ^(h²),   β_z = (a + b) s(h),
    weight degradation  WD = a² + b² + 2abκ − β_z².

Qaadan, Schüler & Glasmachers 2019, Algorithm 1; its pseudo-code swaps the weights m and 1 − m in the line of h. This code follows
its closed form for β_z. Tables depend on (m, κ) alone, so one table serves all kernels, coefficients and data.

At m = 1/2, κ = e⁻² the maximum splits in two, and no grid resolves h there: so the table of h only gives starting points of
Newton steps, which find h to rounding. A second table bounds WD from below near (m, κ), so that only the few partners that can be
the best are evaluated exactly.
"""

import math
from typing import NamedTuple

import numpy as np

from streamcut.compiled.kernel_rows import exponential
from streamcut.compiler.jit import fused, fused_inlined, helper, inlined, kernel

GRID = 256  # cells of the table of h in each direction: m in [1/2, 1] and κ in [0, 1]
_BITS, _OCTAVES = 6, 24  # the table of least degradations: cells of κ between powers of 2, and powers of 2 (below, one cell) …
_LOWEST = np.int32((127 - _OCTAVES) << _BITS)
_MS, _KAPPAS = 32, (_OCTAVES << _BITS) + 1  # … and cells of m, without m = 1 (one coefficient negligible)
_NOWHERE = (_MS + 1) * _KAPPAS  # the cell of a slot that cannot be a partner
_NOISE = 1e-12  # relative rounding error of a degradation
_NEWTON = 4  # most steps from any h of the table to rounding


class Tables(NamedTuple):
    """float64: best h at m = 1/2 + i / (2 GRID), κ = j / GRID, the last of each twice; least WD / a² of cells, then infinity."""

    h: np.ndarray  # (GRID + 2, GRID + 2)
    least: np.ndarray  # (_NOWHERE + 1,)


@inlined
def _value(h, m, kappa):
    return m * kappa ** ((1.0 - h) * (1.0 - h)) + (1.0 - m) * kappa ** (h * h)


@helper
def _best(m, kappa):
    """(h, s(h)) of the maximum in [1/2, 1], for m ≥ 1/2, by bisection on the sign of s′: to rounding even where s is flat.

    s′(h) has the sign of atanh(v) − atanh(u) + (L/2) u with u = 2h − 1, v = 2m − 1, L = −ln κ: positive below the maximum.
    """
    if kappa <= 0.0:
        return 1.0, m
    v, half = 2.0 * m - 1.0, -0.5 * math.log(kappa)
    if v >= 1.0:
        return 1.0, 1.0
    low, high = 0.0, 1.0
    if v == 0.0 and half <= 1.0:
        return 0.5, _value(0.5, m, kappa)
    for _ in range(60):
        u = 0.5 * (low + high)
        if math.atanh(v) - math.atanh(u) + half * u > 0.0:
            low = u
        else:
            high = u
    h = 0.5 + 0.25 * (low + high)
    return h, _value(h, m, kappa)


@fused_inlined
def _kappa_cell(kappa):
    """The cell of κ in `Tables.least`: exponent and leading bits of the float32, from 0 to _KAPPAS − 1; any number for nan."""
    return max((np.float32(kappa).view(np.int32) >> np.int32(23 - _BITS)) - _LOWEST, np.int32(0))


@fused_inlined
def _lookup(table, m, kappa):
    """Bilinear interpolation of a table (GRID + 2, GRID + 2) at 1/2 ≤ m ≤ 1 and 0 ≤ κ ≤ 1."""
    x, y = (2.0 * m - 1.0) * GRID, kappa * GRID
    i, j = np.uint64(x), np.uint64(y)
    a, b = x - np.float64(i), y - np.float64(j)
    low, low1 = table[i, j], table[i, j + np.uint64(1)]
    high, high1 = table[i + np.uint64(1), j], table[i + np.uint64(1), j + np.uint64(1)]
    low, high = low + b * (low1 - low), high + b * (high1 - high)
    return low + a * (high - low)


@fused
def best_h(tables, m, kappa):
    """(h, s(h)) for 0 ≤ m ≤ 1, 0 ≤ κ ≤ 1: from the table, then by Newton steps.

    With u = 2h − 1, v = 2m − 1, L = −ln κ the maximum solves atanh(u) − L u / 2 = atanh(v).
    """
    if m < 0.5:
        h, s = best_h(tables, 1.0 - m, kappa)
        return 1.0 - h, s
    if not (0.0 < kappa <= 1.0 and m < 1.0):  # nan included: no number may index outside the table
        return 1.0, m
    log_kappa = math.log(kappa)
    half, goal = -0.5 * log_kappa, 0.5 * math.log(m / (1.0 - m))
    h = 0.5
    if m > 0.5 or half > 1.0:  # otherwise the maximum is at that point, where the equation can be flat
        u = 2.0 * _lookup(tables.h, m, kappa) - 1.0
        for _ in range(_NEWTON):
            u = min(max(u, 1e-12), 1.0 - 1e-15)
            step = (0.5 * math.log((1.0 + u) / (1.0 - u)) - half * u - goal) / (1.0 / (1.0 - u * u) - half)
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
def _merged(a, b, kappa, tables):
    """(weight degradation, h of the first, coefficient) of merging coefficients a, b > 0."""
    h, s = best_h(tables, a / (a + b), kappa)
    merged = (a + b) * s
    return max(a * a + b * b + 2.0 * a * b * kappa - merged * merged, 0.0), h, merged


@fused
def best_partner(least, beta, k, used, tables, cells, bounds):
    """(slot, WD, h of `least`, |β_z|) of the merge with `least` of least weight degradation; slot −1: none.

    Partners have the sign of `least`; k = k(x̃_least, ·).

    First, vectorised, a lower bound for every slot, from its cell of the tables. The slot with the lowest bound is evaluated
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
        bounds[j] = tables.least[np.uint64(cells[j])]
    found = smallest(bounds, used)
    if bounds[found] == np.inf:
        return np.int64(-1), 0.0, 0.0, 0.0
    degradation, h, merged = _merged(a, abs(beta[found]), k[found], tables)
    bounds[found] = np.inf
    bound = degradation / (a * a) - _NOISE
    for j in range(np.uint64(used)):
        if bounds[j] < bound:
            other = _merged(a, abs(beta[j]), k[j], tables)
            if other[0] < degradation:
                found, (degradation, h, merged) = np.int64(j), other
                bound = degradation / (a * a) - _NOISE
    return found, degradation, h, merged


@kernel
def _fill_h(h):
    for i in range(GRID + 2):
        for j in range(GRID + 2):
            h[i, j] = _best(0.5 + 0.5 * min(i, GRID) / GRID, min(j, GRID) / GRID)[0]


@kernel
def _fill_least(edges, tables):
    """WD / a², a the smaller coefficient, grows with m to 1 − κ² and falls with κ: its least value in a cell is at a corner."""
    for j in range(_KAPPAS):
        tables.least[_MS * _KAPPAS + j] = 1.0 - edges[j] * edges[j]
    for i in range(_MS):
        m = 0.5 + 0.5 * i / _MS
        for j in range(_KAPPAS):
            tables.least[i * _KAPPAS + j] = _merged(1.0 - m, m, edges[j], tables)[0] / ((1.0 - m) * (1.0 - m))


def merging_tables() -> Tables:
    """The tables, read-only."""
    tables = Tables(np.empty((GRID + 2, GRID + 2)), np.full(_NOWHERE + 1, np.inf))
    _fill_h(tables.h)
    edges = ((np.arange(1, _KAPPAS + 1) + _LOWEST) << (23 - _BITS)).astype(np.int32).view(np.float32)
    _fill_least(np.minimum(edges.astype(np.float64), 1.0), tables)
    return tables
