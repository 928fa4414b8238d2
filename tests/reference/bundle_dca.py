"""Bundle-accelerated dual coordinate ascent without a row cache: dense NumPy, one row after the other, shares never rounded."""

import numpy as np
from reference.svm import _simplex_qp, line_search_by_sorting, primal


def sweep(X, sign, C, u, w, shares, groups, visits=2):
    """Dual coordinate ascent from `shares`, whose primal point is w, by groups of rows in order; returns (shares, w) after it.

    Rows at a bound that w keeps there are at rest; a row takes another step as long as it is at none.
    """
    f, start, w = shares.copy(), sign * (X @ w), w.copy()
    rest = ((f == 0.0) & (start > 1.0)) | ((f == 1.0) & (start < 1.0))
    for group in groups:
        waiting = [i for i in group if not rest[i]]
        for _ in range(visits):
            for i in waiting:
                room = C * u[i] * (X[i] @ X[i])
                new = np.clip(f[i] + (1.0 - sign[i] * (X[i] @ w)) / room, 0.0, 1.0) if room > 0.0 else 1.0
                w += (new - f[i]) * C * u[i] * sign[i] * X[i]
                f[i] = new
            waiting = [i for i in waiting if 0.0 < f[i] < 1.0]
    return f, w


def cut(X, sign, u, shares):
    """The cutting plane of the mean risk that given shares stand for."""
    return -(X.T @ (u * sign * shares)) / u.sum(), (u @ shares) / u.sum()


def curvature(X, C, u, bias):
    """C·(mean u)·‖x‖² of a row like most, by its mean Σ |x|, as if all its values were equal."""
    entries = np.count_nonzero(X[:, :-1] if bias else X)
    return C * u.sum() * (u @ np.abs(X).sum(axis=1) / u.sum()) ** 2 / max(entries, len(X))


def bundle_dca(X, sign, C, u, tol, orders, mu=0.1, accelerated=True):
    """`orders` gives the groups of rows of each pass; all cuts are kept. Returns (F(w_b), lower bound, passes).

    The last column of X is the bias.
    """
    first, sigma, gaps = (min(1.0, 4.0 / curvature(X, C, u, True)) if accelerated else 1.0), None, []
    n, c_bar = len(sign), C * u.sum()
    w = w_b = np.zeros(X.shape[1])
    F, k, base = c_bar, 1.0, np.zeros(n)
    shares, cuts, beta = [], [], np.zeros(0)
    for passes, order in enumerate(orders, 1):
        kappa = k + mu * (1.0 - k) if passes > 1 else 0.0
        active = sign * (X @ (w_b + kappa * (w - w_b))) < 1.0
        stretch = 1.0 if sigma is None else sigma
        f, reached = sweep(X, sign, stretch * C, u, w, base, order, 2)
        shares += [active.astype(float), f]
        cuts += [cut(X, sign, u, f) for f in shares[-2:]]
        if passes > 1:
            step = w - w_b
            k = line_search_by_sorting(step @ step, w_b @ step, C, sign * (X @ w_b), sign * (X @ w), u)
            w_b = w_b + k * step
            F = primal(w_b, X, sign, C, u)
        A, b = np.array([a for a, _ in cuts]), np.array([b for _, b in cuts])
        beta = _simplex_qp(A @ A.T, b, c_bar, np.append(beta, [0.0, 0.0]))
        w = w_master = -beta @ A
        base = beta @ np.array(shares) / c_bar
        base[base > 1.0 - 1e-9] = 1.0
        bound = b @ beta - 0.5 * w_master @ w_master
        if F - bound <= tol * c_bar:
            break
        if first == 1.0:
            continue
        if passes == 1:
            sigma = first
            continue
        gaps.append(F - bound)
        if len(gaps) >= 8 and gaps[-1] > (1.0 - 4.0 / len(gaps)) * gaps[-5]:  # the other kind of passes, from the mixture
            first = min(1.0, 4.0 * first) if sigma is None else first
            sigma, gaps = (first if sigma is None and first < 1.0 else None), [F - bound]
        elif sigma is not None:
            amounts_to = C * X.T @ (sign * u * f)
            w = reached + (1.0 - np.exp(-sigma)) * (amounts_to - reached)
            base, sigma = f, 2.0 * sigma / (2.0 + sigma)
    return F, bound, passes
