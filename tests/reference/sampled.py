"""Kernel machines solved slowly on a full kernel matrix."""

import numpy as np


def hinge_optimum(K, sign, C, sweeps=3000):
    """(coefficients, F) of min ½‖w‖² + C Σ max(0, 1 − sign f) without bias, by dual coordinate ascent."""
    alpha = np.zeros(len(K))
    for _ in range(sweeps):
        for i in range(len(K)):
            step = (1.0 - sign[i] * (K[i] @ (alpha * sign))) / K[i, i]
            alpha[i] = min(max(alpha[i] + step, 0.0), C)
    coefficients = alpha * sign
    return coefficients, hinge_primal(K, sign, C, coefficients)


def hinge_primal(K, sign, C, coefficients):
    f = K @ coefficients
    return 0.5 * coefficients @ f + C * np.maximum(0.0, 1.0 - sign * f).sum()
