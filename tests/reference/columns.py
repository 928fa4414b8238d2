"""The dual of columns whose cuts are mixed, dense, one at a time."""

from __future__ import annotations

import numpy as np


def shrunk(v, l1):
    """S(v, l1)."""
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0.0)


def dual_of_priced(U, G, b, b_G, C, l1, p, q, middle, half):
    """As `dual_of_mixture`, of cuts whose last numbers pull at an intercept, the worst one within `half` of `middle`."""
    pull = C * (p * G[-1] + q * U[-1])
    return dual_of_mixture(U[:-1], G[:-1], b, b_G, C, l1, p, q) - max(pull * (middle - half), pull * (middle + half))


def dual_of_mixture(U, G, b, b_G, C, l1, p, q):
    """C (p b_G + q b) − ½‖S(C (p G + q U), l1)‖²."""
    w = shrunk(C * (p * G + q * U), l1)
    return C * (p * b_G + q * b) - 0.5 * float(w @ w)
