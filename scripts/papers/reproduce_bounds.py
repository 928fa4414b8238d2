"""What the theorems of the five papers allow, next to what happens: facts for the table of reproduce.py.

A bound that is met with more than a hundred times to spare predicts nothing: its line says "vacuous", and by how much.

Cutting planes (Joachims 2006, Lemma 2; Franc & Sonnenburg 2008, Theorem 1; Yu & Joachims 2008, Theorem 1) need at most
max{2Δ/ε, 8CΔR²/ε²} iterations, with C that of the mean loss, ε in mean loss, Δ = 1, R the greatest norm of a row. Teo et al.
(JMLR 2010) later proved 8CR²/ε and a logarithm, which is what OCAS's paper leaves for the future. Sampled cuts in linear time
(Theorem 2) are within ε + √(4CΔR² log(T/δ) / r) of the optimum with probability 1 − δ, in mean loss, T the bound above; w = 0 is
within 1. Dual ascent on a budget (Qaadan 2019, Theorem 1) loses at best 2κ/((1 + κ)n) of the distance a step, κ the least
eigenvalue of the kernel matrix. Of SBP's Lemma 3.2 the constant is not given: there is nothing to compute.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from reproduce_tools import fact

SPARE = 100.0  # times: from here on a bound is vacuous


def iterations(c_bar: float, square: float, epsilon: float) -> float:
    """The most iterations of cutting planes; `square` is R²."""
    return max(2.0 / epsilon, 8.0 * c_bar * square / epsilon**2)


def iterations_later(c_bar: float, square: float, epsilon: float) -> float:
    """The same by Teo et al. 2010."""
    return max(math.log2(1.0 / (4.0 * c_bar * square)), 0.0) + 8.0 * c_bar * square / epsilon


def sampled_excess(c_bar: float, square: float, epsilon: float, samples: int, delta: float = 0.05) -> float:
    """By how much F/C̄ may be above the optimum after sampled cuts in linear time."""
    most = iterations(c_bar, square, epsilon)
    return epsilon + math.sqrt(4.0 * c_bar * square * math.log(most / delta) / samples)


def epochs_to_halve(kappa: float) -> float:
    """Epochs in which the distance of the dual from its optimum is halved for sure, if the matrix has no eigenvalue below κ."""
    return math.inf if kappa <= 0.0 else math.log(2.0) * (1.0 + kappa) / (2.0 * kappa)


def greatest_square(X: sp.csr_array) -> float:
    """R² of rows."""
    return float(np.max(X.multiply(X).sum(axis=1)))


def cutting_planes(
    paper: str, theorem: str, name: str, done: int, c_bar: float, square: float, epsilon: float
) -> list[dict[str, Any]]:
    """Both bounds by the iterations that were `done`."""
    bounds = {theorem: iterations(c_bar, square, epsilon), "Teo 2010": iterations_later(c_bar, square, epsilon)}
    return [
        fact(paper, f"{source}: bound on iterations / iterations, {name}", "> 1", bound / done, spare(bound / done))
        for source, bound in bounds.items()
    ]


def spare(ratio: float) -> str:
    """How a bound is to be read that is so many times what happened."""
    return "near" if ratio < SPARE else f"vacuous: 10^{math.log10(ratio):.0f} times"
