"""The slow obvious version of streamcut.compiled.ovr_dual: one class after the other, dense rows, shares as plain numbers."""

import numpy as np

ONE = 65535


def coded(share):
    """The nearest share that has a code."""
    return (np.floor(np.sqrt(share) * ONE + 0.5) / ONE) ** 2


def ascend(x, sign, u, z_b, kappa, share, C, order, visits, w):
    """For one class: rows x (n, D), ±1, weights, margins at w_b, κ, shares to start from; groups of len(order) rows in order.

    Returns (margins of w, which rows are in the predicted cut, shares after ascent, the running w′).
    """
    z, running, share = sign * (x @ w), w.copy(), share.copy()
    for start in range(0, len(x), len(order)):
        rows = [start + at for at in order if start + at < len(x)]
        rows = [i for i in rows if not ((share[i] == 0.0 and z[i] > 1.0) or (share[i] == 1.0 and z[i] < 1.0))]
        for _ in range(visits):
            for i in rows:
                room, before = C * u[i] * (x[i] @ x[i]), share[i]
                ahead = 1.0 - sign[i] * (x[i] @ running)
                share[i] = coded(min(1.0, max(0.0, before + ahead / room))) if room > 0.0 else 1.0
                running += C * u[i] * (share[i] - before) * sign[i] * x[i]
            rows = [i for i in rows if 0.0 < share[i] < 1.0]
    return z, z_b + kappa * (z - z_b) < 1.0, share, running


def cut(x, sign, u, share):
    """(Σ −u_i y_i f_i x_i, Σ u_i f_i)."""
    return -(u * sign * share) @ x, u @ share
