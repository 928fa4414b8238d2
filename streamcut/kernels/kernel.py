"""Kernels as inner products and squared norms give them: linear, Gaussian (rbf), polynomial."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.rounding import gamma
from streamcut.suggestions import unknown

LINEAR, RBF, POLY = 0, 1, 2  # the codes that compiled code takes
_OTHERS = 64  # roundings of a kernel value beside those of its inner product: of exp, and of sums of such values
_CODES = {"linear": LINEAR, "rbf": RBF, "poly": POLY}


@dataclass(frozen=True, slots=True)
class Kernel:
    """k(x, x′): linear ⟨x, x′⟩; rbf exp(−γ‖x − x′‖²); poly (γ⟨x, x′⟩ + coef0)^degree.

    What a kernel does not use is ignored by it. Raises UsageError for an unknown name, γ ≤ 0, a degree that is no whole number
    above 0, or coef0 < 0 (such a polynomial need not be positive definite).
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _CODES:
            raise UsageError(f"kernel: {unknown(self.name, _CODES)}")
        if not 0.0 < self.gamma < math.inf:
            raise UsageError(f"gamma: {self.gamma!r} is not a number above 0")
        if self.degree < 1 or self.degree != int(self.degree):
            raise UsageError(f"degree: {self.degree!r} is not a whole number, 1 or above")
        if not 0.0 <= self.coef0 < math.inf:
            raise UsageError(f"coef0: {self.coef0!r} is not a number that is 0 or above")

    @property
    def code(self) -> int:
        return _CODES[self.name]

    @property
    def compiled(self) -> tuple[int, float, int, float]:
        """(code, γ, degree, coef0): what compiled code takes."""
        return self.code, float(self.gamma), int(self.degree), float(self.coef0)

    def values(self, products: np.ndarray, squares: np.ndarray, other_squares: np.ndarray) -> np.ndarray:
        """k from ⟨x, x′⟩, ‖x‖² and ‖x′‖², float64, broadcast together.

        Rounding can leave ‖x‖² + ‖x′‖² − 2⟨x, x′⟩ a little below 0; it counts as 0, so an rbf value is never above 1.
        """
        products = np.asarray(products, np.float64)
        if self.code == RBF:
            return np.exp(-self.gamma * np.maximum(squares + other_squares - 2.0 * products, 0.0))
        return products.copy() if self.code == LINEAR else (self.gamma * products + self.coef0) ** self.degree

    def diagonal(self, squares: np.ndarray) -> np.ndarray:
        """k(x, x) from ‖x‖², float64."""
        return self.values(squares, squares, squares)

    def rounding(self, square: float, entries: int) -> float:
        """About as far a computed value may be from k(x, x′), where ‖x‖² and ‖x′‖² are `square` at most, of `entries` each."""
        n = entries + _OTHERS
        if self.code == RBF:
            return gamma(n) * (1.0 + 8.0 * self.gamma * square)
        if self.code == LINEAR:
            return gamma(n) * square
        return gamma(self.degree * n) * (self.gamma * square + self.coef0) ** self.degree

    def matrix(self, X, Z) -> np.ndarray:
        """k of every row of `X` (n × d) with every row of `Z` (m × d), NumPy or SciPy sparse: float64 (n, m)."""
        products = X @ Z.T
        products = products.toarray() if hasattr(products, "toarray") else np.asarray(products)
        return self.values(products, squared_norms(X)[:, None], squared_norms(Z)[None, :])

    def as_dict(self) -> dict[str, Any]:
        """JSON types; Kernel(**of_it) is the same kernel."""
        return asdict(self)


def squared_norms(X) -> np.ndarray:
    """‖x‖² of the rows of `X` (n × d), NumPy or SciPy sparse: float64 (n,)."""
    if hasattr(X, "tocsr"):
        return np.asarray(X.astype(np.float64).multiply(X.astype(np.float64)).sum(axis=1)).ravel()
    X = np.asarray(X, np.float64)
    return np.einsum("ij,ij->i", X, X)
