"""max_β ⟨b, β⟩ − ½ βᵀGβ over a simplex: β ≥ 0, Σ β = `total`. An active set method.

    repeat
        the gradient g = b − Gβ; the dual gap total·max g − ⟨β, g⟩ bounds the optimum less the present value
        the face: all β > 0, and the one with the largest g
        repeat
            a Newton step on the face: the largest β balances the changes of the others
            an entering β that would decrease leaves again; the step ends where a β > 0 reaches 0, which leaves too
        until a step is whole

Each inner turn removes one from the face, each outer turn raises the value: a face is never solved twice (Wolfe 1976 does this
for the point of least norm of one simplex). A system is solved for each β that enters or leaves, mostly fewer than ten, where
pairwise steps zigzag by the thousand if G is nearly singular. G may be singular: a direction without curvature gets next to none,
and a step along it goes to where a β is 0.
"""

from typing import NamedTuple

import numpy as np

from streamcut.compiler.jit import helper, kernel

_FLAT = 2.0**-50  # relative to the entries of G whose difference a pivot is: less is rounding, so the pivot is dependent
_CLOSES = 0.9  # of the gap: a turn that leaves more makes little progress
_RISES = 0.01  # of the tolerance: a turn that gains less makes little progress
_PATIENCE = 8  # consecutive turns with neither progress: rounding


class Space(NamedTuple):
    """Workspace of `solve` for n numbers: moving int64 (n), face, flat bool (n), H (n, n)."""

    moving: np.ndarray
    face: np.ndarray
    flat: np.ndarray
    gradient: np.ndarray
    direction: np.ndarray
    newton: np.ndarray
    H: np.ndarray


def space(n: int) -> Space:
    """A workspace for n numbers."""
    numbers = np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n, np.bool_)
    return Space(*numbers, np.empty(n), np.empty(n), np.empty(n), np.empty((n, n)))


@kernel
def solve(G, b, total, beta, tolerance, most, space):
    """Improves the feasible `beta` (n) in place until the dual gap is at most `tolerance`, or rounding or `most` turns end it.

    G (n, n) symmetric positive semidefinite, b (n). Returns the gap.
    """
    n, gradient, face = len(b), space.gradient, space.face
    gap, least, value, late = np.inf, np.inf, -np.inf, 0
    for _ in range(most):
        _gradient(G, b, beta, gradient)
        gap, before, value, first = 0.0, value, 0.0, 0
        for t in range(n):
            gap -= beta[t] * gradient[t]
            value += 0.5 * beta[t] * (b[t] + gradient[t])
            if gradient[t] > gradient[first]:
                first = t
        gap += total * gradient[first]
        late = late + 1 if gap > _CLOSES * least and value - before <= _RISES * tolerance else 0  # the gap may rise in between
        if gap <= tolerance or late == _PATIENCE:
            break
        least = min(least, gap)
        for t in range(n):
            face[t] = beta[t] > 0.0 or first == t
        _finish(G, beta, space)
    return gap


@helper
def _gradient(G, b, beta, gradient):
    """Fills `gradient` (n) with b − Gβ."""
    for t in range(len(b)):  # `gradient[:] = b` takes seconds to compile, for its error message on different lengths
        gradient[t] = b[t]
    for s in range(len(b)):
        if beta[s] != 0.0:
            for t in range(len(b)):
                gradient[t] -= beta[s] * G[s, t]


@helper
def _finish(G, beta, space):
    """Newton steps on the face until one is whole; β, the gradient on the face and the face change in place."""
    n, face = len(beta), space.face
    free, gradient, direction, step = space.moving, space.gradient, space.direction, space.newton
    while True:
        largest = -1
        for t in range(n):
            if face[t] and (largest < 0 or beta[t] > beta[largest]):
                largest = t
        m = 0
        for t in range(n):
            if face[t] and largest != t:
                free[m] = t
                m += 1
        if m == 0:
            return
        _newton(G, free[:m], largest, space)  # `m` alone is at first a literal 0 to Numba, which would be compiled separately
        wanted = True
        for j in range(m):
            if beta[free[j]] == 0.0 and step[j] <= 0.0:
                face[free[j]] = False
                wanted = False
        if not wanted:
            continue
        direction[largest] = 0.0
        for j in range(m):
            direction[free[j]] = step[j]
            direction[largest] -= step[j]
        reach, last = 1.0, -1
        for t in range(n):
            if face[t] and beta[t] + reach * direction[t] < 0.0:
                reach, last = beta[t] / -direction[t], t
        for t in range(n):
            if face[t] and direction[t] != 0.0:
                before = beta[t]
                beta[t] = 0.0 if t == last else max(0.0, before + reach * direction[t])
                for s in range(n):
                    gradient[s] -= (beta[t] - before) * G[t, s]
        if last < 0:
            return
        for t in range(n):
            if beta[t] <= 0.0:
                face[t] = False


@helper
def _newton(G, free, p, space):
    """The step of the β at `free` (m) to where their gradient equals that of β_p, the largest, which balances the step."""
    m, gradient = len(free), space.gradient
    H, step, flat = space.H, space.newton, space.flat
    for i in range(m):
        t = free[i]
        step[i] = gradient[t] - gradient[p]
        for j in range(i + 1):
            s = free[j]
            H[i, j] = (G[t, s] - G[p, s]) - (G[t, p] - G[p, p])
    for i in range(m):  # Cholesky, row by row, and the forward substitution
        s = free[i]
        least = max(_FLAT * (G[s, s] + G[p, p]), 1e-300)
        for j in range(i + 1):
            left = H[i, j]
            for t in range(j):
                left -= H[i, t] * H[j, t]
            if j < i:
                H[i, j] = 0.0 if flat[j] else left / H[j, j]
            else:
                flat[i] = left <= least
                H[i, i] = np.sqrt(least if flat[i] else left)
        for t in range(i):
            step[i] -= H[i, t] * step[t]
        step[i] /= H[i, i]
    for i in range(m - 1, -1, -1):
        step[i] /= H[i, i]
        for t in range(i):
            step[t] -= H[i, t] * step[i]
