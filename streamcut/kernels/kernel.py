"""Kernels as functions of inner products and squared norms: linear, Gaussian (rbf), polynomial."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.rounding import gamma
from streamcut.foundation.shown import unknown

if TYPE_CHECKING:
    from streamcut.foundation.chunk import Chunk
    from streamcut.kernels.centre import Centre

LINEAR, RBF, POLY = 0, 1, 2  # codes for compiled code
_OTHERS = 64  # roundings of a kernel value besides those of its inner product: differences, exp
_CODES = {"linear": LINEAR, "rbf": RBF, "poly": POLY}


@dataclass(frozen=True, slots=True)
class Kernel:
    """k(x, x′): linear ⟨x, x′⟩; rbf exp(−γ‖x − x′‖²); poly (γ⟨x, x′⟩ + coef0)^degree.

    A kernel ignores parameters it does not use. `centre` is subtracted from rows before products are taken (`moved`): rbf does
    not change, but is accurate far from the origin. It is not part of the kernel's identity.

    Raises UsageError for an unknown name, γ ≤ 0, a degree that is not a whole number above 0, or coef0 < 0 (such a polynomial
    need not be positive definite).
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    centre: Centre | None = field(default=None, compare=False, repr=False)

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
        """(code, γ, degree, coef0) for compiled code."""
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

    def centred_on(self, rows: Chunk) -> Kernel:
        """The same kernel with the centre of these rows, or without one if none helps."""
        if self.code != RBF:
            return self
        from streamcut.kernels.centre import centre_of_rows  # Numba, which models without a kernel do not need

        return replace(self, centre=centre_of_rows(rows))

    def moved(self, rows: Chunk) -> Chunk:
        """The rows to take products of: these rows, less the centre if there is one."""
        return rows if self.centre is None else self.centre.moved(rows)

    def rounding(
        self, squares: np.ndarray, others: np.ndarray, weights: np.ndarray, entries: int, constant: float = 0.0
    ) -> np.ndarray:
        """Error bound of each computed Σ_j c_j (k(x_i, x_j) + constant), in any order of summation: float64 (n,).

        squares    ‖x_i‖², float64 (n,), of moved rows, at most `entries` entries each
        others     ‖x_j‖², float64 (m,)
        weights    |c_j|, float64 (m,) or (m, K); then the worst of K sums

        With γ_n as in streamcut.foundation.rounding a product of two such rows is off by γ_n ‖x‖‖x′‖, ‖x − x′‖² by less than
        4 γ_n (‖x‖² + ‖x′‖²), including the rounding of centring; exp does not amplify an error. A polynomial of non-negative
        coefficients is off by its increase to (1 + γ_n) ‖x‖‖x′‖, and its value is at most √(k(x, x) k(x′, x′)).
        """
        weights = np.abs(weights if weights.ndim == 2 else weights[:, None])
        one, total = gamma(entries + _OTHERS), gamma(len(others) + _OTHERS)
        A = weights.sum(axis=0).max(initial=0.0)
        if self.code == RBF:
            B = (others @ weights).max(initial=0.0)
            out = (one + total) * A + one * 4.0 * self.gamma * (A * squares + B)
        else:
            one = gamma(max(self.degree, 1) * (entries + _OTHERS)) if self.code != LINEAR else one
            norms, other = np.sqrt(self.diagonal(squares)), np.sqrt(self.diagonal(others))
            out = (one + total) * norms * (other @ weights).max(initial=0.0)
        return (1.0 + 1e-6) * (out + total * constant * A)

    def as_dict(self) -> dict[str, Any]:
        """JSON types; Kernel(**of_it) is the same kernel."""
        return {"name": self.name, "gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
