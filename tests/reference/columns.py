"""Dual ascent for columns, one column, one row and one feature vector at a time, dense: what streamcut.compiled.columns does.

x (n, D) has the bias feature last; y are ±1 or numbers; `inside` says which rows are the column's. A loss is asked for its
methods one share at a time (tests/losses/test_losses.py holds these against their definition).
"""

from __future__ import annotations

import numpy as np

FAR = 1.0


def shrunk(v, l1):
    """S(v, l1)."""
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)


def z_of(loss, x, y, w):
    return loss.sign(y) * float(x @ w) - loss.offset(y)


def coded(loss, f, y, limit, u):
    """The share that rows remember for f."""
    return loss.decode(loss.encode(loss.limited(f, limit, u)), y)


def ascend(loss, x, y, u, inside, f, W, w, l1, cost, batches, visits, limit):
    """One pass over one column, shares `f` (n,) and running weights w (D,) in place.

    batches  [(rows that are scored together, those rows in the order of their steps)]
    Returns (z (n,), keys (n,), the rise of C Σ u constant(f) − R*(w)).
    """
    n = len(x)
    z, keys, rise = np.empty(n), np.full(n, np.inf), 0.0
    for scored, turns in batches:
        waiting = set()
        for i in scored:
            z[i] = z_of(loss, x[i], y[i], W)
            if not inside[i]:
                continue
            if visits == 0:
                f[i] = coded(loss, loss.dual(z[i], y[i]), y[i], limit, u[i])
            elif not loss.stays(f[i], z[i], 0.0, y[i]):
                waiting.add(i)
            elif loss.violation(f[i], z[i], y[i]) < FAR:
                keys[i] = loss.priority(f[i], z[i], 0.0, y[i])
        for _ in range(visits):
            for i in turns:
                if i not in waiting:
                    continue
                here, norm = z_of(loss, x[i], y[i], shrunk(w, l1)), float(x[i] @ x[i])
                square = bent_along(loss, x[i], y[i], f[i], w, l1, cost, u[i], limit)
                q = cost * u[i] * square
                after = coded(loss, loss.step(f[i], here, q, y[i]) if q > 0.0 else loss.dual(here, y[i]), y[i], limit, u[i])
                keys[i] = min(keys[i], loss.priority(after, here, u[i] * norm, y[i]))
                rise += move(loss, x[i], y[i], cost * u[i], f, i, after, w, l1)
                if not loss.free(after, y[i]):
                    waiting.discard(i)
    return z, keys, rise


def bent_along(loss, x, y, f, w, l1, cost, u, limit):
    """The curvature of a step of a row's share: ‖x‖², or less where thresholds leave w few features and a longer one gains."""
    square, scale, here = float(x @ x), cost * u, z_of(loss, x, y, shrunk(w, l1))
    if not (l1 > 0.0 and square > 0.0 and scale > 0.0):
        return square

    def step(curvature):
        after = coded(loss, loss.step(f, here, scale * curvature, y), y, limit, u)
        return after, scale * loss.sign(y) * (after - f)

    after, far = step(square)
    score = float(x @ shrunk(w, l1))
    least = scale * (loss.constant(after, y) - loss.constant(f, y)) - far * score - 0.5 * far * far * square
    if after == f:
        return square
    bent = max(float(x[np.abs(w) > l1] @ x[np.abs(w) > l1]), 1e-3 * square)
    for _ in range(4):
        if bent > 0.9 * square:
            break
        after, far = step(bent)
        moved = shrunk(w + far * x, l1)
        longer = 0.5 * float(moved @ moved) - 0.5 * float(shrunk(w, l1) @ shrunk(w, l1))
        if scale * (loss.constant(after, y) - loss.constant(f, y)) - longer > least:
            return bent
        bent = max(2.0 * bent, (float(x @ moved) - score) / far if far != 0.0 else 0.0)
    return square


def move(loss, x, y, scale, f, i, after, w, l1):
    """Row i's share becomes `after`, the weights follow in place; by how much the dual for them rises."""
    before = scale * loss.constant(f[i], y) - 0.5 * float(shrunk(w, l1) @ shrunk(w, l1))
    w += scale * loss.sign(y) * (after - f[i]) * x
    f[i] = after
    return scale * loss.constant(after, y) - 0.5 * float(shrunk(w, l1) @ shrunk(w, l1)) - before


def sweep(loss, x, y, u, f, listed, turns, w, l1, cost, slack, limit):
    """A sweep over the `listed` (bool, n) rows in the order of `turns`; f, listed and w in place.

    Returns (the rise of the dual, the largest violation of rows that moved, the rows visited)."""
    rise, largest, visited = 0.0, 0.0, []
    for i in turns:
        if not listed[i]:
            continue
        visited.append(i)
        here = z_of(loss, x[i], y[i], shrunk(w, l1))
        if loss.stays(f[i], here, slack, y[i]):
            listed[i] = False
            continue
        after = coded(
            loss,
            loss.step(f[i], here, cost * u[i] * bent_along(loss, x[i], y[i], f[i], w, l1, cost, u[i], limit), y[i]),
            y[i],
            limit,
            u[i],
        )
        if after != f[i]:
            largest = max(largest, loss.violation(f[i], here, y[i]))
            rise += move(loss, x[i], y[i], cost * u[i], f, i, after, w, l1)
    return rise, largest, visited


def sums(loss, x, y, u, f):
    """(U (D,), [Σ u constant, Σ u |f|, Σ u size]) of shares."""
    signs = np.array([loss.sign(t) for t in y])
    constants, sizes = (
        sum(weight * method(share, t) for weight, share, t in zip(u, f, y, strict=True)) for method in (loss.constant, loss.size)
    )
    return x.T @ (u * signs * f), np.array([constants, u @ np.abs(f), sizes])


def loss_along(loss, y, u, inside, z_b, z, k):
    """Σ u ℓ at z_b + k (z − z_b)."""
    rows = zip(y, u, inside, z_b + k * (z - z_b), strict=True)
    return sum(weight * loss.value(here, t) for t, weight, own, here in rows if own)


def slope_along(loss, y, u, inside, z_b, z, k):
    """Its right derivative."""
    total = 0.0
    for t, weight, own, start, end in zip(y, u, inside, z_b, z, strict=True):
        delta = end - start
        here = start + k * delta
        if not own or delta == 0.0:
            continue
        at_kink = not loss.smooth and any(here == loss.kink(j) for j in range(loss.kinks()))
        share = loss.dual(here, t) + (1.0 if delta < 0.0 and at_kink else 0.0)
        total -= weight * share * delta
    return total


def dual_of_priced(U, G, b, b_G, C, l1, p, q, middle, half):
    """As `dual_of_mixture`, of cuts whose last numbers pull at an intercept, the worst one within `half` of `middle`."""
    pull = C * (p * G[-1] + q * U[-1])
    return dual_of_mixture(U[:-1], G[:-1], b, b_G, C, l1, p, q) - max(pull * (middle - half), pull * (middle + half))


def dual_of_mixture(U, G, b, b_G, C, l1, p, q):
    """C (p b_G + q b) − ½‖S(C (p G + q U), l1)‖²."""
    w = shrunk(C * (p * G + q * U), l1)
    return C * (p * b_G + q * b) - 0.5 * float(w @ w)
