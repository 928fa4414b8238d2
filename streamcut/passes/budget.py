"""Training on a budget: rows against the model's vectors, coordinate and gradient steps, budget maintenance.

The kernels of streamcut.solvers.bsca and streamcut.solvers.bsgd, and of scoring rows with a kernel model. The model is
Σ_j β_j φ(x̃_j) over slots j < counts[USED], one of which may be empty (counts[HOLE], β = 0).
"""

import math
from typing import NamedTuple

import numpy as np

from streamcut.jit import fused, fused_inlined, inlined, reordered

USED, HOLE, STEPS, UPDATES, ADDED, MAINTAINED, REMOVED, EVALUATIONS, CORRECT, COUNTS = range(10)
ALPHA, LOSS, DEGRADATION, SUMS = range(4)  # Σ α; Σ C_i × hinge of rows as they were met; Σ weight degradation
KEEP, MERGE, REMOVE, PROJECT = range(4)  # what keeps the model within its budget; KEEP: nothing, it may grow
_LINEAR, _RBF = 0, 1
_NEWTON = 4  # steps from the table's h to rounding, from anywhere in the table
_CG_STEPS, _CG_TOLERANCE = 200, 1e-8
EXP_ERROR = 1e-15  # relative, of _exp for arguments from −708 to 0


class Slots(NamedTuple):
    """The model; arrays are float64 unless said otherwise.

    Vectors are held twice: feature-major, so that an entry of a sparse row meets all of them in one contiguous sweep, and
    row-major, so that one can be read and written without striding.
    """

    V: np.ndarray  # (d, slots)
    R: np.ndarray  # (slots, d), or (0, d) when nothing is ever merged or replaced
    beta: np.ndarray  # (slots,)
    square: np.ndarray  # (slots,): ‖x̃_j‖²
    source: np.ndarray  # int64 (slots,): number of the row that x̃_j is, −1: merged
    K: np.ndarray  # (slots, slots): kernel values between the vectors; (0, 0) unless maintenance projects
    counts: np.ndarray  # int64 (COUNTS,)
    sums: np.ndarray  # (SUMS,)
    p: np.ndarray  # (slots,) scratch: inner products of the row at hand
    k: np.ndarray  # (slots,) scratch: its kernel values
    entries: np.ndarray  # int32 (d,) scratch: a vector in sparse form
    values: np.ndarray  # (d,) scratch
    cells: np.ndarray  # int32 (slots,) scratch: cells of the tables
    tables: np.ndarray  # streamcut.passes.merging.merging_tables


class SparseRows(NamedTuple):
    """Rows in CSR form (data None: every value is 1), their labels ±1, C u_i, and the number of row 0 in the data set."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    signs: np.ndarray
    costs: np.ndarray
    first: int


@fused_inlined
def _exp(x):
    """exp of x ≤ 0 without branches or calls, so that loops over it become vector instructions; e⁻⁷⁰⁸ below −708.

    x = n ln 2 + r; a polynomial through e^r at the Chebyshev points of |r| ≤ ln 2 / 2, then n is added to the exponent's bits.
    """
    x = max(x, -708.0)
    shifted = x * 1.4426950408889634 + 6755399441055744.0  # 1.5 · 2⁵²: the lowest bits are n
    n = shifted - 6755399441055744.0
    r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10  # ln 2 in two parts
    e = 2.762635725527078e-07
    e = e * r + 2.7640180812804505e-06
    e = e * r + 2.480150434696448e-05
    e = e * r + 0.00019841170270400204
    e = e * r + 0.0013888888932488625
    e = e * r + 0.008333333385667814
    e = e * r + 0.04166666666657314
    e = e * r + 0.16666666666554406
    e = e * r + 0.5000000000000006
    e = e * r + 1.0000000000000067
    e = e * r + 1.0
    return np.int64(np.float64(e).view(np.int64) + (np.float64(shifted).view(np.int64) << np.int64(52))).view(np.float64)


@fused
def exponentials(x, out):
    """out = exp(x) for x ≤ 0, to EXP_ERROR."""
    for j in range(np.uint64(len(x))):
        out[j] = _exp(x[j])


@inlined
def _entry(data, t):
    """Value t of a chunk's entries; None: all are 1."""
    if data is None:
        return 1.0
    return np.float64(data[t])


@fused
def _products(first, stop, indices, data, V, n, p):
    """p[j] = ⟨x, x̃_j⟩ for j < n; returns ‖x‖². Four entries at a time: p is read and written once for them."""
    square = 0.0
    for j in range(n):
        p[j] = 0.0
    four = np.uint64(4)
    whole = first + (stop - first) // four * four
    for t in range(first, whole, four):
        t1, t2, t3 = t + np.uint64(1), t + np.uint64(2), t + np.uint64(3)
        a0, a1, a2, a3 = _entry(data, t), _entry(data, t1), _entry(data, t2), _entry(data, t3)
        f0, f1, f2, f3 = np.uint64(indices[t]), np.uint64(indices[t1]), np.uint64(indices[t2]), np.uint64(indices[t3])
        square += (a0 * a0 + a1 * a1) + (a2 * a2 + a3 * a3)
        for j in range(n):
            p[j] += (a0 * V[f0, j] + a1 * V[f1, j]) + (a2 * V[f2, j] + a3 * V[f3, j])
    for t in range(whole, stop):
        a, f = _entry(data, t), np.uint64(indices[t])
        square += a * a
        for j in range(n):
            p[j] += a * V[f, j]
    return square


@fused_inlined
def _value(product, square, other, parameters):
    """k(x, x′) from ⟨x, x′⟩, ‖x‖², ‖x′‖²."""
    code, gamma, degree, coef0 = parameters
    if code == _RBF:
        return _exp(-gamma * max(square + other - 2.0 * product, 0.0))
    return product if code == _LINEAR else (gamma * product + coef0) ** degree


@fused
def _values(p, square, squares, n, parameters, k):
    """k[j] = k(x, x̃_j) for j < n from the products of x and ‖x‖² = `square`."""
    code, gamma = parameters[0], parameters[1]
    if code == _RBF:
        for j in range(n):
            k[j] = _exp(-gamma * max(square + squares[j] - 2.0 * p[j], 0.0))
    else:
        for j in range(n):
            k[j] = _value(p[j], square, squares[j], parameters)


@reordered
def _dot(a, b, n):
    """Σ_{j < n} a[j] b[j]."""
    total = 0.0
    for j in range(np.uint64(n)):
        total += a[j] * b[j]
    return total


@fused
def kernel_rows(indptr, indices, data, V, squares, parameters, p, out):
    """out[i, j] = k(x_i, x̃_j); `V` (d, vectors) feature-major, `squares` their norms, p (vectors,) scratch."""
    n = np.uint64(len(squares))
    for i in range(len(out)):
        square = _products(np.uint64(indptr[i]), np.uint64(indptr[i + 1]), indices, data, V, n, p)
        _values(p, square, squares, n, parameters, out[i])


@fused_inlined
def _row_value(i, rows, parameters, m):
    """(Σ_j β_j k(x_i, x̃_j), ‖x_i‖²); fills m.k."""
    used = m.counts[USED]
    n = np.uint64(used)
    squared = _products(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), rows.indices, rows.data, m.V, n, m.p)
    _values(m.p, squared, m.square, n, parameters, m.k)
    m.counts[EVALUATIONS] += used
    return _dot(m.beta, m.k, used), squared


@fused
def _slot_of(row, source, used):
    """The slot whose vector is this row, or −1."""
    for j in range(used):
        if source[j] == row:
            return j
    return -1


@fused_inlined
def _add(i, change, squared, rows, parameters, m):
    """A new slot for row i with coefficient `change`; m.k holds its kernel values. Returns the slot."""
    counts = m.counts
    slot = counts[HOLE]
    if slot < 0:
        slot = counts[USED]
        counts[USED] += 1
    counts[HOLE] = -1
    counts[ADDED] += 1
    row_major = len(m.R) > 0
    if row_major:
        vector = m.R[slot]
        for f in range(len(vector)):
            if vector[f] != 0.0:
                vector[f] = 0.0
                m.V[f, slot] = 0.0
    for t in range(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1])):
        value, f = _entry(rows.data, t), np.uint64(rows.indices[t])
        m.V[f, slot] = value
        if row_major:
            m.R[slot, f] = value
    m.beta[slot], m.square[slot], m.source[slot] = change, squared, rows.first + i
    m.k[slot] = _value(squared, squared, squared, parameters)
    if len(m.K) > 0:
        for j in range(counts[USED]):
            m.K[slot, j] = m.k[j]
            m.K[j, slot] = m.k[j]
    return slot


@fused
def _smallest(values, n):
    """The index of the smallest |value|, the first of equals; eight minima at once, so that they are vectors."""
    m0, m1, m2, m3, m4, m5, m6, m7 = np.inf, np.inf, np.inf, np.inf, np.inf, np.inf, np.inf, np.inf
    n, one = np.uint64(n), np.uint64(1)
    whole = n // np.uint64(8) * np.uint64(8)
    for j in range(np.uint64(0), whole, np.uint64(8)):
        j1, j2, j3 = j + one, j + np.uint64(2), j + np.uint64(3)
        j4, j5, j6, j7 = j + np.uint64(4), j + np.uint64(5), j + np.uint64(6), j + np.uint64(7)
        m0, m1, m2, m3 = min(m0, abs(values[j])), min(m1, abs(values[j1])), min(m2, abs(values[j2])), min(m3, abs(values[j3]))
        m4, m5, m6, m7 = min(m4, abs(values[j4])), min(m5, abs(values[j5])), min(m6, abs(values[j6])), min(m7, abs(values[j7]))
    least = min(min(min(m0, m1), min(m2, m3)), min(min(m4, m5), min(m6, m7)))
    for j in range(whole, n):
        least = min(least, abs(values[j]))
    for j in range(n):
        if abs(values[j]) == least:
            return np.int64(j)
    return -1


@fused_inlined
def _lookup(table, width, m, kappa):
    """Bilinear interpolation of a table (width²,) at 1/2 ≤ m ≤ 1 and 0 ≤ κ ≤ 1."""
    grid = np.float64(width - np.int32(2))
    x, y = (2.0 * m - 1.0) * grid, kappa * grid
    i, j = np.int32(x), np.int32(y)
    a, b = x - np.float64(i), y - np.float64(j)
    here = i * width + j
    below = here + width
    low, low1 = table[np.uint64(here)], table[np.uint64(here + np.int32(1))]
    high, high1 = table[np.uint64(below)], table[np.uint64(below + np.int32(1))]
    low, high = low + b * (low1 - low), high + b * (high1 - high)
    return low + a * (high - low)


@fused
def best_h(tables, m, kappa):
    """(h, s(h)) of streamcut.passes.merging for 0 ≤ m ≤ 1, 0 ≤ κ ≤ 1: from the table, then by Newton steps.

    With u = 2h − 1, v = 2m − 1, L = −ln κ the maximum solves atanh(u) − L u / 2 = atanh(v).
    """
    if m < 0.5:
        h, s = best_h(tables, 1.0 - m, kappa)
        return 1.0 - h, s
    if kappa <= 0.0 or m >= 1.0:
        return 1.0, m
    h = _lookup(tables[0], np.int32(math.sqrt(tables.shape[1] - 1)), m, kappa)
    half, goal = -0.5 * math.log(kappa), math.atanh(2.0 * m - 1.0)
    if m > 0.5 or half > 1.0:  # else h is 1/2, where the equation can be flat
        u = 2.0 * h - 1.0
        for _ in range(_NEWTON):
            u = min(max(u, 1e-12), 1.0 - 1e-15)
            u -= (math.atanh(u) - half * u - goal) / (1.0 / (1.0 - u * u) - half)
        h = 0.5 + 0.5 * min(max(u, 0.0), 1.0)
    return h, m * kappa ** ((1.0 - h) * (1.0 - h)) + (1.0 - m) * kappa ** (h * h)


@fused
def _partner(least, beta, k, used, tables, cells):
    """The slot whose merging with `least` degrades the weights least, or −1 when no other has its sign; k = k(x̃_least, ·).

    First every slot's cell of the tables, which are vector instructions; then one number of each cell tells whether it can hold
    the best, and those few are looked at exactly. (Bilinear interpolation for all took three times as long.)
    """
    a, sign = abs(beta[least]), (1.0 if beta[least] > 0.0 else -1.0)
    least_of, nowhere = tables[2], np.int32(tables.shape[1] - 1)
    width = np.int32(math.sqrt(nowhere))
    grid = np.float64(width - np.int32(2))
    for j in range(np.uint64(used)):
        signed = beta[j] * sign
        b = max(signed, a)
        cell = np.int32((b - a) / (b + a) * grid) * width + np.int32(k[j] * grid)
        cells[j] = cell if signed > 0.0 else nowhere
    cells[least] = nowhere
    found, lowest, bound = -1, np.inf, np.inf
    for j in range(np.uint64(used)):
        if least_of[np.uint64(cells[j])] < bound:
            b = abs(beta[j])
            s = (a + b) * best_h(tables, b / (a + b), k[j])[1]
            degradation = a * a + b * b + 2.0 * a * b * k[j] - s * s
            if degradation < lowest:
                found, lowest, bound = np.int64(j), degradation, degradation / (a * a)
    return found


@fused_inlined
def _merge(least, fresh, parameters, m):
    """Replace slot `least` and its partner by their best single vector; False when it has none. m.k is that of slot `fresh`."""
    used, d, mine = m.counts[USED], m.R.shape[1], m.R[least]
    if least != fresh:
        length = 0
        for f in range(d):
            if mine[f] != 0.0:
                m.entries[length] = f
                m.values[length] = mine[f]
                length += 1
        _products(np.uint64(0), np.uint64(length), m.entries, m.values, m.V, np.uint64(used), m.p)
        _values(m.p, m.square[least], m.square, np.uint64(used), parameters, m.k)
        m.counts[EVALUATIONS] += used
    other = _partner(least, m.beta, m.k, used, m.tables, m.cells)
    if other < 0:
        return False
    a, b, kappa = m.beta[least], m.beta[other], m.k[other]
    h, s = best_h(m.tables, a / (a + b), kappa)
    merged = (a + b) * s
    m.sums[DEGRADATION] += max(a * a + b * b + 2.0 * a * b * kappa - merged * merged, 0.0)
    squared, theirs = 0.0, m.R[other]
    for f in range(d):
        if mine[f] != 0.0 or theirs[f] != 0.0:
            z = h * mine[f] + (1.0 - h) * theirs[f]
            theirs[f] = z
            m.V[f, other] = z
            squared += z * z
    m.beta[other], m.square[other], m.source[other] = merged, squared, -1
    return True


@fused
def _project(least, m):
    """Add to the other coefficients what brings them nearest to β_least φ(x̃_least): K c = β_least k_least by conjugate gradients.

    Every step lowers the weight degradation, so one that stops early is still better than removal. K may be singular.
    """
    n, beta, K = m.counts[USED], m.beta, m.K
    c, r = np.zeros(n), np.empty(n)
    for j in range(n):
        r[j] = beta[least] * K[least, j]
    r[least] = 0.0
    direction, moved = r.copy(), np.empty(n)
    rho = _dot(r, r, n)
    enough = _CG_TOLERANCE * _CG_TOLERANCE * rho
    for _ in range(_CG_STEPS):
        if rho <= enough:
            break
        for j in range(n):
            moved[j] = _dot(K[j], direction, n) if j != least else 0.0
        curvature = _dot(direction, moved, n)
        if curvature <= 0.0:
            break
        step = rho / curvature
        for j in range(n):
            c[j] += step * direction[j]
            r[j] -= step * moved[j]
        before, rho = rho, _dot(r, r, n)
        for j in range(n):
            direction[j] = r[j] + rho / before * direction[j]
    gained = 0.0
    for j in range(n):
        gained += c[j] * (beta[least] * K[least, j] + r[j])  # cᵀ (2 β k − K c)
        beta[j] += c[j]
    m.sums[DEGRADATION] += max(beta[least] * beta[least] * K[least, least] - gained, 0.0)


@fused_inlined
def _maintain(mode, fresh, parameters, m):
    """Give up one slot; `fresh` is the one just filled, whose kernel values m.k holds."""
    least = _smallest(m.beta, m.counts[USED])
    b, square, kept = m.beta[least], m.square[least], False
    if b != 0.0 and mode == MERGE:
        kept = _merge(least, fresh, parameters, m)
    elif b != 0.0 and mode == PROJECT:
        _project(least, m)
        kept = True
    if not kept:
        m.sums[DEGRADATION] += b * b * _value(square, square, square, parameters)
        m.counts[REMOVED] += 1
    m.counts[MAINTAINED] += 1
    m.beta[least], m.source[least] = 0.0, -1
    m.counts[HOLE] = least


@fused_inlined
def _enter(i, change, squared, rows, parameters, mode, m):
    """A new slot for row i, and budget maintenance when that was the last one."""
    slot = _add(i, change, squared, rows, parameters, m)
    if mode != KEEP and m.counts[USED] == len(m.beta):
        _maintain(mode, slot, parameters, m)


@fused
def ascend(order, rows, alpha, damping, parameters, mode, m):
    """Steps of coordinate ascent (BSCA, Algorithm 2) on the rows `order`, in place on their α (n,) and the model.

    `damping` (first, last): from step number `first` on steps are only a part of what is best, falling to 0 at step `last`.
    """
    counts, sums = m.counts, m.sums
    for i in order:
        y, C = rows.signs[i], rows.costs[i]
        f, squared = _row_value(i, rows, parameters, m)
        margin = y * f
        counts[STEPS] += 1
        counts[CORRECT] += margin > 0.0
        sums[LOSS] += C * max(0.0, 1.0 - margin)
        diagonal = _value(squared, squared, squared, parameters)
        # φ(x) = 0 (an empty row under the linear kernel): its best α is C, and moves nothing
        target = C if diagonal <= 0.0 else min(max(alpha[i] + (1.0 - margin) / diagonal, 0.0), C)
        if counts[STEPS] > damping[0]:
            target = alpha[i] + (damping[1] - counts[STEPS] + 1) / (damping[1] - damping[0]) * (target - alpha[i])
        change = target - alpha[i]
        if change == 0.0:
            continue
        slot = _slot_of(rows.first + i, m.source, counts[USED]) if alpha[i] > 0.0 else -1
        alpha[i] = target
        sums[ALPHA] += change
        counts[UPDATES] += 1
        if slot >= 0:
            m.beta[slot] += y * change
        elif diagonal > 0.0:
            _enter(i, y * change, squared, rows, parameters, mode, m)


@fused
def descend(order, rows, n_rows, parameters, mode, m):
    """Steps of stochastic gradient descent (BSGD, equation 4) on the rows `order`, in place on the model.

    β ← (1 − 1/t) β, and + n C u_i y_i / t where y_i f(x_i) < 1. m.beta holds t β, which no step has to scale.
    """
    counts = m.counts
    for i in order:
        y, C = rows.signs[i], rows.costs[i]
        f, squared = _row_value(i, rows, parameters, m)
        margin = y * f / max(counts[STEPS], 1)
        counts[STEPS] += 1
        counts[CORRECT] += margin > 0.0
        m.sums[LOSS] += C * max(0.0, 1.0 - margin)
        if margin >= 1.0 or C == 0.0:
            continue
        counts[UPDATES] += 1
        slot = _slot_of(rows.first + i, m.source, counts[USED])
        if slot >= 0:
            m.beta[slot] += n_rows * C * y
        else:
            _enter(i, n_rows * C * y, squared, rows, parameters, mode, m)
