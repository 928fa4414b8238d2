"""Kernel columns: k(x_i, s) of many rows x_i with one row s, or summed over a block of rows s with coefficients.

Conventions: CSR arrays as in streamcut.foundation.chunk (`data` None when every value is 1); kernels as (code, γ, degree, coef0),
see streamcut.kernels.kernel; `squares` are ‖x_i‖². A value depends on its two rows alone, to the last bit: it is the same in a
column and in a block, and k(x, s) = k(s, x). `dense` and `slots` have a place for every feature, tables at most one row per entry
of their block of rows. (Features common to both rows are added in the same order, others add 0.)
"""

import numpy as np

from streamcut.compiled.records import entry
from streamcut.compiler.jit import allocating, inlined, kernel

WIDTH = 16  # rows of a block: an entry of x_i multiplies 16 consecutive numbers
_STRIP = 512  # values turned from inner products to kernel values while in L1 cache
_LINEAR, _RBF = 0, 1


@inlined
def _values(products, squares, square, code, gamma, degree, coef0, bits):
    """Inner products become kernel values, in place; `bits` is scratch for as many int64.

    exp is written out so that the compiler vectorises it: x = n log 2 + r, a Taylor polynomial of r, and n is added to the
    exponent bits. The result is within 2 units of the last place; below e⁻⁷⁰⁸ it is e⁻⁷⁰⁸.
    """
    n = len(products)
    if code == _LINEAR:
        return
    if code != _RBF:
        for i in range(n):
            products[i] = (gamma * products[i] + coef0) ** degree
        return
    for i in range(n):
        x = max(-gamma * max(squares[i] + square - 2.0 * products[i], 0.0), -708.0)
        whole = np.floor(x * 1.4426950408889634 + 0.5)
        r = (x - whole * 6.93145751953125e-1) - whole * 1.42860682030941723212e-6
        p = 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        products[i] = p * r + 1.0
        bits[i] = (np.int64(whole) + 1023) << 52
    powers = bits.view(np.float64)
    for i in range(n):
        products[i] *= powers[i]


@kernel
def squared_norms(indptr, indices, data, out):
    """out[i] = ‖x_i‖²."""
    for i in range(len(indptr) - 1):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        total = np.float64(stop - start) if data is None else 0.0
        if data is not None:
            for t in range(start, stop):
                value = np.float64(data[t])
                total += value * value
        out[i] = total


@kernel
def scatter(indices, data, out):
    """out[indices] = data (None: 1)."""
    for t in range(len(indices)):
        out[np.uint64(indices[t])] = 1.0 if data is None else data[t]


@allocating
def column(rows, indptr, indices, data, squares, dense, square, code, gamma, degree, coef0, out):
    """out[p] = k(x_i, s) for i = rows[p] (None: i = p), where `dense` (d,) holds s and `square` is ‖s‖²."""
    n = len(indptr) - 1 if rows is None else len(rows)
    near, bits = np.empty(_STRIP), np.empty(_STRIP, np.int64)
    for first in range(0, n, _STRIP):
        last = min(first + _STRIP, n)
        for p in range(first, last):
            i = p if rows is None else rows[p]
            total = 0.0
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                if data is None:
                    total += dense[np.uint64(indices[t])]
                else:
                    total += data[t] * dense[np.uint64(indices[t])]
            out[p] = total
            near[p - first] = squares[i]
        _values(out[first:last], near, square, code, gamma, degree, coef0, bits)


@kernel
def fill_table(indptr, indices, data, slots, table, first, count):
    """Rows first:first + count as columns of `table` (u, WIDTH), zero before; features get slots (d,) (−1: none). Returns u."""
    used = 0
    for column in range(count):
        i = first + column
        for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[t])
            if slots[j] < 0:
                slots[j] = used
                used += 1
            table[np.uint64(slots[j]), column] = 1.0 if data is None else data[t]
    return used


@allocating
def add_block(rows, csr, squares, slots, table, others, coefficients, code, gamma, degree, coef0, out):
    """out[p] += Σ_k coefficients[k] k(x_i, s_k), k in order, for i = rows[p] (None: i = p).

    `csr` are records.Csr. The rows s_k are the first columns of `table`, found through `slots` (see fill_table); `others` (WIDTH)
    are ‖s_k‖².
    """
    width = np.uint64(WIDTH)
    sums, bits = np.empty(WIDTH), np.empty(WIDTH, np.int64)
    flat = table.ravel()
    for p in range(len(out)):
        i = p if rows is None else rows[p]
        for k in range(width):
            sums[k] = 0.0
        for t in range(np.uint64(csr.indptr[i]), np.uint64(csr.indptr[i + 1])):
            slot = slots[np.uint64(csr.indices[t])]
            if slot < 0:
                continue
            at = np.uint64(slot) * width
            value = entry(csr.data, t)
            for k in range(width):
                sums[k] += value * flat[at + k]
        _values(sums, others, squares[i], code, gamma, degree, coef0, bits)
        total = out[p]
        for k in range(len(coefficients)):
            total += coefficients[k] * sums[k]
        out[p] = total


@kernel
def follow(sign, change, coefficient, scale, c, c_sum):
    """c_j ← scale·(c_j + coefficient·sign_j·change_j) and, unless c_sum is None, c_sum_j += c_j; in place."""
    for j in range(len(c)):
        c[j] = scale * (c[j] + sign[j] * (coefficient * change[j]))
        if c_sum is not None:
            c_sum[j] += c[j]


@kernel
def subtract(indptr, indices, data, index, value, out_indptr, out_indices, out_data):
    """The rows less the sparse point (`index` int64 increasing, `value`), as CSR without zeros.

    out_indptr (n + 1); out_indices and out_data hold up to all entries plus len(index) per row.
    """
    at = 0
    out_indptr[0] = 0
    for i in range(len(indptr) - 1):
        t, stop, k = indptr[i], indptr[i + 1], 0
        while t < stop or k < len(index):
            if k == len(index) or (t < stop and indices[t] < index[k]):
                feature, difference = np.int64(indices[t]), entry(data, t)
                t += 1
            elif t == stop or index[k] < indices[t]:
                feature, difference = index[k], -value[k]
                k += 1
            else:
                feature, difference = index[k], entry(data, t) - value[k]
                t, k = t + 1, k + 1
            if difference != 0.0:
                out_indices[at], out_data[at] = feature, difference
                at += 1
        out_indptr[i + 1] = at
