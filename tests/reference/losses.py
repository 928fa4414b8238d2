"""min F for any loss of single rows by general-purpose solvers: a dual value below it, and a primal value above it."""

import numpy as np
from scipy.optimize import minimize

_EXACTLY = {"ftol": 1e-16, "gtol": 1e-11, "maxiter": 20_000, "maxfun": 200_000}


def enclosed(loss, X, y, C, u):
    """(dual, primal) around min ½‖w‖² + C Σ u ℓ over dense X (n, d): near each other, each true whatever the solver left."""
    sign, offset = (np.array([method(t) for t in y]) for method in (loss.sign, loss.offset))
    signed = X * sign[:, None]
    f = _by_the_primal(loss, signed, offset, y, C * u) if loss.smooth else _by_the_dual(loss, signed, offset, y, C * u)
    w = signed.T @ (C * u * f)
    constants = np.array([loss.constant(share, t) for share, t in zip(f, y, strict=True)])
    return (C * u) @ constants - 0.5 * w @ w, _primal(loss, signed, offset, y, C * u, w)


def _primal(loss, signed, offset, y, weight, w):
    return 0.5 * w @ w + weight @ [loss.value(z, t) for z, t in zip(signed @ w - offset, y, strict=True)]


def _by_the_primal(loss, signed, offset, y, weight):
    """Shares at the minimum of a smooth loss."""

    def shares(w):
        return np.array([loss.dual(z, t) for z, t in zip(signed @ w - offset, y, strict=True)])

    def objective(w):
        return _primal(loss, signed, offset, y, weight, w), w - signed.T @ (weight * shares(w))

    start = np.zeros(signed.shape[1])
    return shares(minimize(objective, start, jac=True, method="L-BFGS-B", options=_EXACTLY).x)


def _by_the_dual(loss, signed, offset, y, weight):
    """Shares f = p − m, p, m ≥ 0, of a piecewise linear loss, whose conjugate is linear on either side of 0."""
    high, low = (np.array([bound(t) for t in y]) for bound in (loss.highest, loss.lowest))

    def rate(most):
        return np.array([loss.conjugate(f, t) / abs(f) if f != 0.0 else 0.0 for f, t in zip(most, y, strict=True)])

    gain = np.append(weight * (offset - rate(high)), weight * (-offset - rate(low)))
    both = np.vstack([signed * weight[:, None], -signed * weight[:, None]])

    def objective(pair):
        w = both.T @ pair
        return 0.5 * w @ w - gain @ pair, both @ w - gain

    bounds = [(0.0, most) for most in high] + [(0.0, -least) for least in low]
    found = minimize(objective, np.zeros(len(both)), jac=True, method="L-BFGS-B", bounds=bounds, options=_EXACTLY).x
    return found[: len(y)] - found[len(y) :]
