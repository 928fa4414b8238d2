"""Training with a proof, in NumPy: what `streamcut.train(..., solver="ocas", max_cuts=2)` does, pass by pass.

The problem is min F(w) = ½‖w‖² + C Σ max(0, 1 − y_i⟨w, x_i⟩). Rows lie on disk and are read in blocks; what is kept in memory
is a number for each row, and a few vectors as long as w. Run it: each pass prints the objective and a bound that no w can beat.

    python docs/algorithm.py
"""

import numpy as np

ROWS = 500  # of a block
AHEAD = 0.1  # of the way from the best point to the next one: where cuts are taken (Franc & Sonnenburg 2008)


def blocks(X, y):
    """The rows in their order, as if read from disk: which rows they are, and y_i x_i of each."""
    for first in range(0, len(y), ROWS):
        part = slice(first, first + ROWS)
        yield part, X[part] * y[part, None]


def one_pass(X, y, w, best, step):
    """Read all rows once: margins z of w, and the cut at the point `step` of the way from the best point to w.

    `best` (n,) are the margins of the best point. The loss is convex, so its tangent at any point lies below it everywhere:
    Σ max(0, 1 − z_i) ≥ ⟨a, w⟩ + b for all w. That is a cut.
    """
    z, a, b = np.empty(len(y)), np.zeros(X.shape[1]), 0.0
    for part, rows in blocks(X, y):
        z[part] = rows @ w
        short = best[part] + step * (z[part] - best[part]) < 1.0  # rows with a loss at that point
        a -= rows[short].sum(axis=0)
        b += np.count_nonzero(short)
    return z, (a, b)


def search(w_best, w, best, z, C):
    """The k ≥ 0 where F is nearly least along w_best + k(w − w_best). It needs margins alone: no row is read."""
    ahead, change = w - w_best, z - best

    def slope(k):
        now = best + k * change
        loses = (now < 1.0) | ((now == 1.0) & (change < 0.0))
        return (w_best + k * ahead) @ ahead - C * change[loses].sum()

    low, at_low = 0.0, slope(0.0)
    if at_low >= 0.0:
        return 0.0
    flat, high, at_high = -1e-3 * at_low, 1.0, slope(1.0)
    while at_high < 0.0:
        low, at_low, high, at_high = high, at_high, 2.0 * high, slope(2.0 * high)
    k = high if at_high <= min(flat, -at_low) else low
    wide = at_high > flat and at_low < -flat
    while wide:  # regula falsi, the Illinois variant
        k = (low * at_high - high * at_low) / (at_high - at_low)
        if at_high > -16.0 * at_low:
            k = 0.5 * (low + high) if low > 0.0 else high / 16.0
        at = slope(k)
        if at < 0.0:
            low, at_low, at_high = k, at, 0.5 * at_high
        else:
            high, at_high, at_low = k, at, 0.5 * at_low
        wide = abs(at) > flat and high - low > 1e-4 * high
    return k


def mix(old, new, C):
    """The mixture p·old + q·new of two cuts, p, q ≥ 0, p + q ≤ 1, that bounds F best: (p, q, bound, w).

    For a cut, F(w) ≥ ½‖w‖² + C(⟨a, w⟩ + b), which is least at w = −C a: its value there is C b − ½C²‖a‖². As Σ max(0, …) ≥ 0
    is a cut, too, p + q may be below 1. The maximum is inside the triangle of p and q or on one of its edges.
    """
    (G, c), (U, b) = old, new
    gg, gu, uu, lp, lq = C * C * (G @ G), C * C * (G @ U), C * C * (U @ U), C * c, C * b

    def value(p, q):
        bound = p * lp + q * lq - 0.5 * (p * p * gg + 2.0 * p * q * gu + q * q * uu)
        return bound if p >= 0.0 and q >= 0.0 and p + q <= 1.0 else -np.inf

    with np.errstate(divide="ignore", invalid="ignore"):
        edge = np.clip((lp - lq - gu + uu) / (gg - 2.0 * gu + uu), 0.0, 1.0)
        inside = np.array([lp * uu - lq * gu, lq * gg - lp * gu]) / (gg * uu - gu * gu)
        tried = [(1.0, 0.0), (0.0, 1.0), (min(1.0, lp / gg), 0.0), (0.0, min(1.0, lq / uu)), (edge, 1.0 - edge), inside]
    p, q = max(tried, key=lambda each: value(*each))
    return p, q, value(p, q), -C * (p * G + q * U)


def train(X, y, C, tol=0.01, max_passes=100):
    """(w, [(objective, bound) after each pass]), until the gap is at most `tol` of the objective."""
    n, d = X.shape
    w_best, best, k = np.zeros(d), np.zeros(n), 1.0  # all margins of w = 0 are 0
    _, old = one_pass(X, y, w_best, best, 0.0)
    p, q, bound, w = mix(old, old, C)
    history = [(C * n, bound)]
    while history[-1][0] - bound > tol * history[-1][0] and len(history) < max_passes:
        z, new = one_pass(X, y, w, best, k + AHEAD * (1.0 - k))  # the cut is where the last step suggests
        k = search(w_best, w, best, z, C)
        w_best, best = w_best + k * (w - w_best), best + k * (z - best)
        p, q, value, w = mix(old, new, C)
        if p + q > 0.0:
            share = q / (p + q)
            old = old[0] + share * (new[0] - old[0]), old[1] + share * (new[1] - old[1])  # a mixture of cuts is a cut
        bound = max(bound, value)
        history.append((0.5 * (w_best @ w_best) + C * np.maximum(0.0, 1.0 - best).sum(), bound))
    return w_best, history


def example(rows=4000, features=30, seed=0):
    """Rows of two classes that overlap: X (rows, features), y ±1."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, features)) / np.sqrt(features)
    return X, np.where(X @ random.normal(size=features) + random.normal(size=rows) > 0.0, 1.0, -1.0)


if __name__ == "__main__":
    for number, (objective, least) in enumerate(train(*example(), C=0.1)[1], 1):
        print(f"pass {number:3}: objective {objective:.6f}, no w reaches less than {least:.6f}")
