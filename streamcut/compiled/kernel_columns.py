"""Kernel columns: k(x_i, s) of many rows x_i with one row s; and what else kernels need of sparse rows.

Conventions: CSR arrays as in streamcut.foundation.chunk (`data` None when every value is 1); kernels as (code, γ, degree, coef0),
see streamcut.kernels.kernel; `squares` are ‖x_i‖². In a column a value depends on its two rows alone, to the last bit, and
k(x, s) = k(s, x). `dense` has a place for every feature. (Features of both rows are added in the same order, others add 0.)
"""

import numpy as np

from streamcut.compiled.kernel_rows import kernel_values
from streamcut.compiled.records import entry
from streamcut.compiler.jit import fused, kernel

STRIP = 512  # inner products turned to kernel values while in L1 cache


@kernel
def squared_norms(indptr, data, out):
    """out[i] = ‖x_i‖²."""
    for i in range(len(indptr) - 1):
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        total = np.float64(stop - start) if data is None else 0.0
        if data is not None:
            for t in range(start, stop):
                value = np.float64(data[t])
                total += value * value
        out[i] = total


@fused
def column(rows, indptr, indices, data, squares, dense, square, parameters, products, out):
    """out[p] = k(x_i, s) for i = rows[p] (None: i = p), where `dense` (d,) holds s and `square` is ‖s‖².

    `squares` are those of the rows, in the order of `out`; products (STRIP,) is scratch.
    """
    n = len(out)
    for first in range(0, n, STRIP):
        last = min(first + STRIP, n)
        for p in range(first, last):
            i = p if rows is None else rows[p]
            total = 0.0
            for t in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
                total += entry(data, t) * dense[np.uint64(indices[t])]
            products[p - first] = total
        kernel_values(products, square, squares[first:last], np.uint64(last - first), parameters, out[first:last])


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
