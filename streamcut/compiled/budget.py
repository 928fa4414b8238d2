"""Training on a budget: coordinate and gradient steps, budget maintenance.

The kernels of streamcut.solvers.bsca and streamcut.papers.bsgd. The model is Σ_j β_j φ(x̃_j) over slots j < counts[USED],
one of which may be empty (counts[HOLE], β = 0).

Slots never run out. A row is looked up by `source` before it gets a slot, so it has one at most. Without a budget there is a slot
for every row and every initial vector (streamcut.solvers.budget.BudgetProblem.slots); with a budget, maintenance frees a slot as
soon as the last one is taken.
"""

from typing import NamedTuple

import numpy as np

from streamcut.compiled.kernel_rows import dot, inner_products, kernel_value, kernel_values
from streamcut.compiled.merging import best_partner, smallest
from streamcut.compiled.records import entry
from streamcut.compiler.jit import fused, fused_allocating_helper, fused_inlined, helper, inlined

USED, HOLE, STEPS, UPDATES, ADDED, MAINTAINED, REMOVED, EVALUATIONS, CORRECT, COUNTS = range(10)
ALPHA, LOSS, DEGRADATION, SUMS = range(4)  # Σ yα − ε|α|; Σ C u · losses of rows when visited; Σ weight degradation
KEEP, MERGE, REMOVE, PROJECT = range(4)  # how the model is kept within its budget; KEEP: it may grow
_CG_STEPS, _CG_TOLERANCE = 200, 1e-8


class Slots(NamedTuple):
    """The model; arrays are float64 unless said otherwise.

    Vectors are held twice: feature-major, so that an entry of a sparse row is multiplied with all of them in one contiguous
    sweep, and row-major, so that a vector can be read and written without striding.
    """

    V: np.ndarray  # (d, slots)
    R: np.ndarray  # (slots, d), or (0, d) when nothing is ever merged or replaced
    beta: np.ndarray  # (slots,)
    square: np.ndarray  # (slots,): ‖x̃_j‖²
    source: np.ndarray  # int64 (slots,): row number of x̃_j, −1: merged
    K: np.ndarray  # (slots, slots): kernel values between the vectors; (0, 0) unless maintenance projects
    counts: np.ndarray  # int64 (COUNTS,)
    sums: np.ndarray  # (SUMS,)
    p: np.ndarray  # (slots,) scratch: inner products of the current row
    k: np.ndarray  # (slots,) scratch: its kernel values
    entries: np.ndarray  # int32 (d,) scratch: a vector in sparse form
    values: np.ndarray  # (d,) scratch
    cells: np.ndarray  # int32 (slots,) scratch: cells of the table
    table: np.ndarray  # (merging.CELLS,): least degradations


class SparseRows(NamedTuple):
    """Rows in CSR form (data None: every value is 1), their targets y, and the number of row 0 in the data set.

    A row costs max over low ≤ α ≤ high of α (y − f(x)) − ε|α|, low ≤ 0 ≤ high, and α is its coefficient. For two classes y = ±1,
    ε = 0 and α is between 0 and C u y: the hinge loss.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray
    epsilon: float
    first: int


@fused_inlined
def _row_value(i, rows, parameters, m):
    """(Σ_j β_j k(x_i, x̃_j), ‖x_i‖²); fills m.k."""
    used = m.counts[USED]
    n = np.uint64(used)
    squared = inner_products(np.uint64(rows.indptr[i]), np.uint64(rows.indptr[i + 1]), rows.indices, rows.data, m.V, n, m.p)
    kernel_values(m.p, squared, m.square, n, parameters, m.k)
    m.counts[EVALUATIONS] += used
    return dot(m.beta, m.k, used), squared


@helper
def _slot_of(row, source, used):
    """The slot whose vector is this row, or −1. There is one at most, so a vectorised scan reads all of them."""
    found = np.int64(-1)
    for j in range(np.uint64(used)):
        found = max(found, np.int64(j) if source[j] == row else np.int64(-1))
    return found


@inlined
def _add(i, change, squared, rows, parameters, m):
    """A new slot for row i, which has none, with coefficient `change`; m.k holds its kernel values. Returns the slot."""
    counts = m.counts
    slot = counts[HOLE]
    if slot < 0:
        slot = counts[USED]
        if slot == len(m.beta):
            raise IndexError("no slot is left")  # reached only from a forged checkpoint
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
        value, f = entry(rows.data, t), np.uint64(rows.indices[t])
        m.V[f, slot] = value
        if row_major:
            m.R[slot, f] = value
    m.beta[slot], m.square[slot], m.source[slot] = change, squared, rows.first + i
    m.k[slot] = kernel_value(squared, squared, squared, parameters)
    if len(m.K) > 0:
        for j in range(counts[USED]):
            m.K[slot, j] = m.k[j]
            m.K[j, slot] = m.k[j]
    return slot


@fused_inlined
def _merge(least, fresh, parameters, m):
    """Merge slot `least` and its partner into the best single vector, in the partner's slot. Returns that slot, −1: no partner.

    m.k holds the kernel values of slot `fresh`, afterwards those of `least`.
    """
    used, d, mine = m.counts[USED], m.R.shape[1], m.R[least]
    if least != fresh:
        length = 0
        for f in range(d):
            if mine[f] != 0.0:
                m.entries[length] = f
                m.values[length] = mine[f]
                length += 1
        inner_products(np.uint64(0), np.uint64(length), m.entries, m.values, m.V, np.uint64(used), m.p)
        kernel_values(m.p, m.square[least], m.square, np.uint64(used), parameters, m.k)
        m.counts[EVALUATIONS] += used
    other, degradation, h, merged = best_partner(least, m.beta, m.k, used, m.table, m.cells, m.p)
    if other < 0:
        return np.int64(-1)
    m.sums[DEGRADATION] += degradation
    merged = merged if m.beta[least] > 0.0 else -merged
    squared, theirs = 0.0, m.R[other]
    for f in range(d):
        if mine[f] != 0.0 or theirs[f] != 0.0:
            z = h * mine[f] + (1.0 - h) * theirs[f]
            theirs[f] = z
            m.V[f, other] = z
            squared += z * z
    m.beta[other], m.square[other], m.source[other] = merged, squared, -1
    return other


@fused_allocating_helper
def _project(least, m):
    """Project β_least φ(x̃_least) on the other vectors, and add the coefficients: K c = β_least k_least by conjugate gradients.

    Every step lowers the weight degradation, so even stopping early is better than removal. K may be singular.
    """
    n, beta, K = m.counts[USED], m.beta, m.K
    c, r = np.zeros(n), np.empty(n)
    for j in range(n):
        r[j] = beta[least] * K[least, j]
    r[least] = 0.0
    direction, moved = r.copy(), np.empty(n)
    rho = dot(r, r, n)
    enough = _CG_TOLERANCE * _CG_TOLERANCE * rho
    for _ in range(_CG_STEPS):
        if rho <= enough:
            break
        for j in range(n):
            moved[j] = dot(K[j], direction, n) if j != least else 0.0
        curvature = dot(direction, moved, n)
        if curvature <= 0.0:
            break
        step = rho / curvature
        for j in range(n):
            c[j] += step * direction[j]
            r[j] -= step * moved[j]
        before, rho = rho, dot(r, r, n)
        for j in range(n):
            direction[j] = r[j] + rho / before * direction[j]
    gained = 0.0
    for j in range(n):
        gained += c[j] * (beta[least] * K[least, j] + r[j])  # cᵀ (2 β k − K c)
        beta[j] += c[j]
    m.sums[DEGRADATION] += max(beta[least] * beta[least] * K[least, least] - gained, 0.0)


@fused_inlined
def _lose(coefficient, square, parameters, m):
    """Count a vector that is removed without replacement, ‖x̃‖² being `square`."""
    m.sums[DEGRADATION] += coefficient * coefficient * kernel_value(square, square, square, parameters)
    m.counts[REMOVED] += 1


@inlined
def _maintain(mode, fresh, parameters, m):
    """Free a slot; `fresh` is the one just filled, whose kernel values m.k holds."""
    least = smallest(m.beta, m.counts[USED])
    b, square, kept = m.beta[least], m.square[least], False
    if b != 0.0 and mode == MERGE:
        other = _merge(least, fresh, parameters, m)
        kept = other >= 0
    elif b != 0.0 and mode == PROJECT:
        _project(least, m)
        kept = True
    if not kept:
        _lose(b, square, parameters, m)
    m.counts[MAINTAINED] += 1
    m.beta[least], m.source[least] = 0.0, -1
    m.counts[HOLE] = least


@inlined
def _enter(i, change, squared, rows, parameters, mode, m):
    """A new slot for row i, and budget maintenance if it was the last free one."""
    slot = _add(i, change, squared, rows, parameters, m)
    if mode != KEEP and m.counts[USED] == len(m.beta):
        _maintain(mode, slot, parameters, m)


@fused_inlined
def _met(i, f, rows, m):
    """Count row i, whose score is `f`, as visited; returns y − f."""
    residual = rows.y[i] - f
    m.counts[STEPS] += 1
    m.counts[CORRECT] += rows.y[i] * f > 0.0
    m.sums[LOSS] += rows.high[i] * max(0.0, residual - rows.epsilon) - rows.low[i] * max(0.0, -residual - rows.epsilon)
    return residual


@fused_inlined
def _best(alpha, residual, diagonal, i, rows):
    """The best α for row i alone: a coordinate ascent step from `alpha`."""
    if diagonal <= 0.0:  # φ(x) = 0 (an empty row under the linear kernel): α does not change f, so its other terms decide
        y = rows.y[i]
        return rows.high[i] if y > rows.epsilon else (rows.low[i] if -y > rows.epsilon else 0.0)
    free = alpha + residual / diagonal
    shrunk = max(abs(free) - rows.epsilon / diagonal, 0.0)
    return min(max(shrunk if free > 0.0 else -shrunk, rows.low[i]), rows.high[i])


@fused
def ascend(order, rows, alpha, damping, parameters, mode, m):
    """Coordinate ascent steps (BSCA, Algorithm 2) on the rows `order`; updates their α (n,) and the model in place.

    `damping` (first, last): from step number `first` on, steps are scaled by a factor that falls to 0 at step `last`.
    """
    counts, sums = m.counts, m.sums
    for i in order:
        f, squared = _row_value(i, rows, parameters, m)
        residual = _met(i, f, rows, m)
        diagonal = kernel_value(squared, squared, squared, parameters)
        target = _best(alpha[i], residual, diagonal, i, rows)
        if counts[STEPS] > damping[0]:
            target = alpha[i] + (damping[1] - counts[STEPS] + 1) / (damping[1] - damping[0]) * (target - alpha[i])
        change = target - alpha[i]
        if change == 0.0:
            continue
        slot = _slot_of(rows.first + i, m.source, counts[USED])  # a returning row may have a slot although its α is 0
        sums[ALPHA] += rows.y[i] * change - rows.epsilon * (abs(target) - abs(alpha[i]))
        alpha[i] = target
        counts[UPDATES] += 1
        if slot >= 0:
            m.beta[slot] += change
        elif diagonal > 0.0:
            _enter(i, change, squared, rows, parameters, mode, m)


@fused
def descend(order, rows, n_rows, parameters, mode, m):
    """Stochastic gradient descent steps (BSGD, equation 4) on the rows `order`; updates the model in place.

    β ← (1 − 1/t) β, plus n α / t with the α that attains the row's loss. m.beta holds t β, so no step has to scale it.
    """
    counts = m.counts
    for i in order:
        f, squared = _row_value(i, rows, parameters, m)
        residual = _met(i, f / max(counts[STEPS], 1), rows, m)
        steepest = rows.high[i] if residual > rows.epsilon else (rows.low[i] if -residual > rows.epsilon else 0.0)
        if steepest == 0.0:
            continue
        counts[UPDATES] += 1
        slot = _slot_of(rows.first + i, m.source, counts[USED])
        if slot >= 0:
            m.beta[slot] += n_rows * steepest
        else:
            lost = m.sums[DEGRADATION]
            _enter(i, n_rows * steepest, squared, rows, parameters, mode, m)
            m.sums[DEGRADATION] = lost + (m.sums[DEGRADATION] - lost) / np.float64(counts[STEPS]) ** 2
