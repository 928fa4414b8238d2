"""An interior point method in the dual variables of cached rows, all others as they are: the hinge loss, few features.

    max over 0 ≤ f ≤ 1   Σ c_i f_i − ½‖rest + Σ c_i f_i a_i‖²,    c_i = C u_i,  a_i = y_i x_i (with the bias feature)

Its optimum has, with what a margin z_i = ⟨w, a_i⟩ has above 1, s_i, or lacks, l_i,

    w = rest + Σ c_i f_i a_i,    z_i − 1 = s_i − l_i,    s_i f_i = 0,    l_i (1 − f_i) = 0,    s, l ≥ 0.

Interior points have s_i f_i = l_i (1 − f_i) = μ instead, and μ falls (Wright 1997, chapters 5 and 10; Fine & Scheinberg 2001 for
kernels of low rank). Of Newton's step for these equations only Δw takes a system to solve:

    θ_i = s_i / f_i + l_i / (1 − f_i),    h_i = ((μ − p_i) / f_i − (μ − q_i) / (1 − f_i) + 1 − z_i) / θ_i,
    (I + Σ c_i / θ_i a_i a_iᵀ) Δw = rest + Σ c_i (f_i + h_i) a_i − w,    Δf_i = h_i − ⟨a_i, Δw⟩ / θ_i,

with p = q = 0, or the products Δs Δf and −Δl Δf of a step that was predicted, for μ = 0 (Mehrotra 1992).
"""

import numpy as np

from streamcut.compiled.records import entry
from streamcut.jit import inlined, kernel

_SMALLEST = 1e-30  # what is above 0, but for rounding


@inlined
def _inside(f):
    """f where neither it nor 1 − f is 0."""
    return min(max(f, _SMALLEST), 1.0 - 2.0**-53)


@kernel
def begin(cached, C, bias, w, mu, path, rest, moved):
    """Dual variables, s and l of cached rows become those that the margins of w have for `mu`.

    Takes Σ c f a as it was off `rest` (D), and adds its change to `moved` (D). Returns Σ c.
    """
    last, total = len(w) - 1, 0.0
    for i in range(len(cached.number)):
        sign, weight = 1.0 if cached.weight[i] > 0.0 else -1.0, C * cached.weight[i]
        first, stop = np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])
        score = bias * w[last] if bias != 0.0 else 0.0
        for t in range(first, stop):
            score += entry(cached.data, t) * w[np.uint64(cached.indices[t])]
        lacks = 1.0 - sign * score
        root = np.sqrt(lacks * lacks + 4.0 * mu * mu)
        if lacks > 0.0:
            path.above[i] = mu + 2.0 * mu * mu / (root + lacks)
            path.below[i] = path.above[i] + lacks
        else:
            path.below[i] = mu + 2.0 * mu * mu / (root - lacks)
            path.above[i] = path.below[i] - lacks
        taken, change = weight * cached.share[i], weight * (_inside(mu / path.above[i]) - cached.share[i])
        cached.share[i] = _inside(mu / path.above[i])
        total += abs(weight)
        for t in range(first, stop):
            value, j = entry(cached.data, t), np.uint64(cached.indices[t])
            rest[j] -= taken * value
            moved[j] += change * value
        if bias != 0.0:
            rest[last] -= taken * bias
            moved[last] += change * bias
    return total


@inlined
def _affine(f, above, below, change):
    """(θ, Δf, Δs, Δl) of the step for μ = 0 where the margin changes by `change`."""
    left = 1.0 - f
    theta = above / f + below / left
    moved = (below - above - change) / theta
    return theta, moved, -above * moved / f - above, below * moved / left - below


@inlined
def _corrected(f, above, below, mu, predicted, change):
    """(Δf, Δs, Δl) of the step for μ, which makes up for the products of what `predicted` changes, the step for μ = 0."""
    left = 1.0 - f
    theta, moved, more, less = _affine(f, above, below, predicted)
    upper, lower = (mu - more * moved) / f, (mu + less * moved) / left
    moved = (upper - lower + below - above - change) / theta
    return moved, upper - above - above * moved / f, lower - below + below * moved / left


@inlined
def _reaches(f, above, below, moved, more, less):
    """The longest part of a step on which f stays in (0, 1) and s, l above 0."""
    longest = np.inf
    if moved < 0.0:
        longest = f / -moved
    if moved > 0.0:
        longest = (1.0 - f) / moved
    if more < 0.0:
        longest = min(longest, above / -more)
    if less < 0.0:
        longest = min(longest, below / -less)
    return longest


@inlined
def _products(f, above, below, moved, more, less, c, sums):
    """Adds to sums (3) what c (s f + l (1 − f)) is, and how it changes with the part of a step and its square."""
    sums[0] += c * (above * f + below * (1.0 - f))
    sums[1] += c * (above * moved + f * more + (1.0 - f) * less - below * moved)
    sums[2] += c * (more * moved - less * moved)


@kernel
def assemble(cached, C, bias, part, mu, path, matrix, vector):
    """Goes the `part` of the last step, for `mu`; adds Σ c/θ a aᵀ to `matrix` (D, D) and Σ c (f + h) a for μ = 0 to `vector`."""
    last = len(vector) - 1
    for i in range(len(cached.number)):
        f, above, below = cached.share[i], path.above[i], path.below[i]
        if part > 0.0:
            moved, more, less = _corrected(f, above, below, mu, path.predicted[i], path.change[i])
            f, above, below = f + part * moved, above + part * more, below + part * less
            f, above, below = _inside(f), max(above, _SMALLEST), max(below, _SMALLEST)
            cached.share[i], path.above[i], path.below[i] = f, above, below
        theta = above / f + below / (1.0 - f)
        weight = C * cached.weight[i]
        curved, held = abs(weight) / theta, weight * (f + (below - above) / theta)
        first, stop = np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])
        for t in range(first, stop):
            value, j = entry(cached.data, t), np.uint64(cached.indices[t])
            vector[j] += held * value
            value *= curved
            for r in range(first, t + np.uint64(1)):
                matrix[j, np.uint64(cached.indices[r])] += value * entry(cached.data, r)
        if bias != 0.0:
            vector[last] += held * bias
            for t in range(first, stop):
                matrix[last, np.uint64(cached.indices[t])] += curved * bias * entry(cached.data, t)
            matrix[last, last] += curved * bias * bias


@inlined
def _margin(cached, i, bias, delta):
    """⟨a_i, Δw⟩."""
    score = bias * delta[-1] if bias != 0.0 else 0.0
    for t in range(np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])):
        score += entry(cached.data, t) * delta[np.uint64(cached.indices[t])]
    return score if cached.weight[i] > 0.0 else -score


@kernel
def predict(cached, C, bias, delta, path, sums, vectors):
    """Margins would change by those of `delta` (D), the step for μ = 0. Returns the part of it on which all stay inside.

    Adds to sums (3) as _products does, and to `vectors` (2, D) what `vector` of the step gets for each μ, and for products.
    """
    last, longest = len(delta) - 1, np.inf
    for i in range(len(cached.number)):
        f, above, below, weight = cached.share[i], path.above[i], path.below[i], C * cached.weight[i]
        path.predicted[i] = _margin(cached, i, bias, delta)
        theta, moved, more, less = _affine(f, above, below, path.predicted[i])
        longest = min(longest, _reaches(f, above, below, moved, more, less))
        _products(f, above, below, moved, more, less, abs(weight), sums)
        centred = weight * (1.0 / f - 1.0 / (1.0 - f)) / theta
        corrected = -weight * (more * moved / f + less * moved / (1.0 - f)) / theta
        for t in range(np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])):
            value, j = entry(cached.data, t), np.uint64(cached.indices[t])
            vectors[0, j] += centred * value
            vectors[1, j] += corrected * value
        if bias != 0.0:
            vectors[0, last] += centred * bias
            vectors[1, last] += corrected * bias
    return longest


@kernel
def reach(cached, C, bias, delta, mu, path, sums):
    """Margins change by those of `delta` (D), the step for `mu`. Returns the part of it on which all stay inside.

    Adds to sums (3) as _products does.
    """
    longest = np.inf
    for i in range(len(cached.number)):
        f, above, below = cached.share[i], path.above[i], path.below[i]
        path.change[i] = _margin(cached, i, bias, delta)
        moved, more, less = _corrected(f, above, below, mu, path.predicted[i], path.change[i])
        longest = min(longest, _reaches(f, above, below, moved, more, less))
        _products(f, above, below, moved, more, less, C * abs(cached.weight[i]), sums)
    return longest


@kernel
def finish(cached, C, bias, part, mu, path, before, delta):
    """Goes the `part` of the last step; adds Σ c (f − before) a to `delta` (D), returns Σ c (f − before)."""
    last, gain = len(delta) - 1, 0.0
    for i in range(len(cached.number)):
        f = cached.share[i]
        if part > 0.0:
            moved, _, _ = _corrected(f, path.above[i], path.below[i], mu, path.predicted[i], path.change[i])
            f = min(1.0, max(0.0, f + part * moved))
        if not np.isfinite(f):
            f = before[i]
        cached.share[i] = f
        step = C * cached.weight[i] * (f - before[i])
        gain += abs(C * cached.weight[i]) * (f - before[i])
        for t in range(np.uint64(cached.indptr[i]), np.uint64(cached.indptr[i + 1])):
            delta[np.uint64(cached.indices[t])] += step * entry(cached.data, t)
        if bias != 0.0:
            delta[last] += step * bias
    return gain


@kernel
def factor(matrix):
    """`matrix` (D, D), of which the lower triangle counts, becomes R with RᵀR = I + itself, in the upper triangle.

    Returns whether it is positive definite, in floating point.
    """
    n = len(matrix)
    for i in range(n):
        matrix[i, i] += 1.0
        for j in range(i):
            matrix[j, i] = matrix[i, j]
    for k in range(n):
        if not (matrix[k, k] > 0.0 and np.isfinite(matrix[k, k])):
            return False
        root = np.sqrt(matrix[k, k])
        for j in range(k, n):
            matrix[k, j] /= root
        for i in range(k + 1, n):
            times = matrix[k, i]
            if times != 0.0:
                for j in range(i, n):
                    matrix[i, j] -= times * matrix[k, j]
    return True


@kernel
def solve(matrix, vector):
    """`vector` (D) becomes x with RᵀR x = vector, R as `factor` left it."""
    n = len(vector)
    for k in range(n):
        vector[k] /= matrix[k, k]
        for j in range(k + 1, n):
            vector[j] -= matrix[k, j] * vector[k]
    for k in range(n - 1, -1, -1):
        total = vector[k]
        for j in range(k + 1, n):
            total -= matrix[k, j] * vector[j]
        vector[k] = total / matrix[k, k]
