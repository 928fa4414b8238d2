"""Merging two Gaussian terms into one: golden section search, and the table that replaces it.

Of a φ(x) + b φ(x′) with a, b of one sign, κ = k(x, x′) and m = a / (a + b), the best single term is β_z φ(h x + (1 − h) x′) where

    h = argmax over [0, 1] of s(h) = m κ^((1−h)²) + (1 − m) κ^(h²),   β_z = (a + b) s(h),
    weight degradation  WD = a² + b² + 2abκ − β_z².

Qaadan, Schüler & Glasmachers 2019, Algorithm 1; its pseudo-code swaps the weights m and 1 − m in the line of h, its closed form
for β_z is the one followed here. Tables depend on (m, κ) alone, so one does for all kernels, coefficients and data.

At m = 1/2, κ = e⁻² the maximum splits in two, and no grid follows h there: so the table holds s, which is smooth, to choose the
partner by, and h to start from; Newton steps then give h of the one pair that is merged, to rounding (streamcut.passes.budget).
"""

import math

import numpy as np

from streamcut.jit import inlined, kernel

GRID = 256  # cells of the table in each direction: m in [1/2, 1] and κ in [0, 1]
_GOLDEN = 0.6180339887498949


@inlined
def _value(h, m, kappa):
    return m * kappa ** ((1.0 - h) * (1.0 - h)) + (1.0 - m) * kappa ** (h * h)


@kernel
def golden_section(m, kappa, tolerance):
    """(h, s(h)): the maximum to within `tolerance` in h. 0 ≤ m ≤ 1, 0 ≤ κ ≤ 1.

    For m ≥ 1/2 it lies in [1/2, 1], where s has no other; m < 1/2 is the same with both terms exchanged.
    """
    if m < 0.5:
        h, s = golden_section(1.0 - m, kappa, tolerance)
        return 1.0 - h, s
    low, high = 0.5, 1.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    s_left, s_right = _value(left, m, kappa), _value(right, m, kappa)
    while high - low > tolerance:
        if s_left >= s_right:
            high, right, s_right = right, left, s_left
            left = high - _GOLDEN * (high - low)
            s_left = _value(left, m, kappa)
        else:
            low, left, s_left = left, right, s_right
            right = low + _GOLDEN * (high - low)
            s_right = _value(right, m, kappa)
    h = 0.5 * (low + high)
    return h, _value(h, m, kappa)


@kernel
def _best(m, kappa):
    """(h, s(h)) of the maximum in [1/2, 1], for m ≥ 1/2, by bisection on the sign of s′: to rounding, where values are flat.

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


@kernel
def fill_tables(h_of, s_of, least):
    """h and s at m = 1/2 + i / (2 GRID), κ = j / GRID, the last of each twice; `least` of WD / a² in the cell above (i, j).

    All float64 (GRID + 2, GRID + 2). WD / a², a the smaller coefficient, grows with m to 1 − κ² and falls with κ, so its least
    value in a cell is that of a corner.
    """
    for i in range(GRID + 2):
        for j in range(GRID + 2):
            h_of[i, j], s_of[i, j] = _best(0.5 + 0.5 * min(i, GRID) / GRID, min(j, GRID) / GRID)
    for i in range(GRID + 2):
        m = 0.5 + 0.5 * min(i, GRID) / GRID
        for j in range(GRID + 2):
            kappa, s = min(j + 1, GRID) / GRID, s_of[i, min(j + 1, GRID)]
            rest = 1.0 - m
            square = m * m + rest * rest + 2.0 * m * rest * kappa - s * s
            least[i, j] = max(square / (rest * rest), 0.0) if rest > 0.0 else 1.0 - kappa * kappa


def merging_tables() -> np.ndarray:
    """h, s and the least WD / a² of cells, float64 (3, (GRID + 2)² + 1): the rows of each one after the other, then infinity."""
    tables = np.full((3, (GRID + 2) ** 2 + 1), np.inf)
    fill_tables(*(table[:-1].reshape(GRID + 2, GRID + 2) for table in tables))
    return tables
