"""Kernel values: rows with the vectors of a model, many rows with one (kernel columns), and what else kernels need of rows."""

import numpy as np

from streamcut.compiled.records import entry
from streamcut.compiler.jit import fused, fused_inlined, kernel, reordered

_LINEAR, _RBF = 0, 1


@fused_inlined
def exponential(x):
    """exp of x ≤ 0 to 1e-15 of it, without branches or calls, so that loops over it vectorise; e⁻⁷⁰⁸ below −708.

    x = n ln 2 + r; a polynomial through e^r at the Chebyshev points of |r| ≤ ln 2 / 2, then n is added to the exponent bits.
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
def inner_products(first, stop, indices, data, V, n, p):
    """p[j] = ⟨x, x̃_j⟩ for j < n; returns ‖x‖². Four entries at a time: p is read and written once for them."""
    square = 0.0
    for j in range(n):
        p[j] = 0.0
    four = np.uint64(4)
    whole = first + (stop - first) // four * four
    for t in range(first, whole, four):
        t1, t2, t3 = t + np.uint64(1), t + np.uint64(2), t + np.uint64(3)
        a0, a1, a2, a3 = entry(data, t), entry(data, t1), entry(data, t2), entry(data, t3)
        f0, f1, f2, f3 = np.uint64(indices[t]), np.uint64(indices[t1]), np.uint64(indices[t2]), np.uint64(indices[t3])
        square += (a0 * a0 + a1 * a1) + (a2 * a2 + a3 * a3)
        for j in range(n):
            p[j] += (a0 * V[f0, j] + a1 * V[f1, j]) + (a2 * V[f2, j] + a3 * V[f3, j])
    for t in range(whole, stop):
        a, f = entry(data, t), np.uint64(indices[t])
        square += a * a
        for j in range(n):
            p[j] += a * V[f, j]
    return square


@fused_inlined
def kernel_value(product, square, other, parameters):
    """k(x, x′) from ⟨x, x′⟩, ‖x‖², ‖x′‖²."""
    code, gamma, degree, coef0 = parameters
    if code == _RBF:
        return exponential(-gamma * max(square + other - 2.0 * product, 0.0))
    return product if code == _LINEAR else (gamma * product + coef0) ** degree


@fused
def kernel_values(p, square, squares, n, parameters, k):
    """k[j] = k(x, x̃_j) for j < n from the products of x and ‖x‖² = `square`."""
    code, gamma = parameters[0], parameters[1]
    if code == _RBF:
        for j in range(n):
            k[j] = exponential(-gamma * max(square + squares[j] - 2.0 * p[j], 0.0))
    else:
        for j in range(n):
            k[j] = kernel_value(p[j], square, squares[j], parameters)


@reordered
def dot(a, b, n):
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
        square = inner_products(np.uint64(indptr[i]), np.uint64(indptr[i + 1]), indices, data, V, n, p)
        kernel_values(p, square, squares, n, parameters, out[i])


@fused
def add_sums(indptr, indices, data, V, squares, factors, parameters, p, k, out):
    """out[i] += Σ_j factors[j] k(x_i, x̃_j), in place; `V` (d, vectors) feature-major, `squares` their norms.

    p and k (vectors,) are scratch: values are used while in L1 cache.
    """
    n = np.uint64(len(squares))
    for i in range(len(out)):
        square = inner_products(np.uint64(indptr[i]), np.uint64(indptr[i + 1]), indices, data, V, n, p)
        kernel_values(p, square, squares, n, parameters, k)
        out[i] += dot(k, factors, n)


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
