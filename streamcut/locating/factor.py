"""Upper and lower bounds on the inverse of a matrix that is known up to rounding.

Given     the lower triangle of a sum M̃ of squares h x xᵀ and a diagonal, |M̃ − M|_jk ≤ γ √(M_jj M_kk).
Returns   T, lower triangular, and η < 1 with   vᵀM⁻¹v ≤ ‖Tv‖² / (1 − η)²   for every v (`below`: M is at least LLᵀ),
          or                                    vᵀM⁻¹v ≥ ‖Tv‖² / (1 + η)²   (`above`: M is at most LLᵀ).
          None if M is not certainly positive definite.

Rows and columns are multiplied by powers of two first, so that the diagonal is from ¼ to 1: that is exact, and errors that are
parts of √(M_jj M_kk) are then at most γ tr M as a matrix. Cholesky's L satisfies |LLᵀ − A|_jk ≤ γ √(A_jj A_kk) for the A that
it is given (Higham 2002, Theorem 10.3), so with A = M̃ ∓ 2γ tr M̃ · I the factor L, as it stands in memory, is on the right
side of M. T ≈ L⁻¹ is checked against L: with R = TL − I, ‖R‖ ≤ η, T = (I + R)L⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamcut.foundation.rounding import EPSILON, gamma

_SPARE = 32  # roundings counted as one allowance
_LEAST = 1e-200  # of a diagonal: smaller sums may have underflowed, which no relative bound covers
_WORST = 0.05  # of η
MATRICES = 4  # D × D, in memory at a time, in addition to the one given


@dataclass(frozen=True, slots=True, eq=False)
class Inverse:
    """`T` (D, D) float64 lower triangular and `eta` as above, in coordinates v′ = v · scale.

    column   float64 (D,): at least ‖T e_j‖ ; size: their root of squares
    """

    T: np.ndarray
    eta: float
    scale: np.ndarray
    column: np.ndarray

    @property
    def size(self) -> float:
        return float(np.sqrt(self.column @ self.column))

    def most(self, v: np.ndarray, error: np.ndarray) -> float:
        """At least √(vᵀM⁻¹v) for the true v, |v − true| ≤ `error` number by number; of an inverse from `below`."""
        from scipy.linalg import blas

        scaled = v * self.scale
        length = float(np.linalg.norm(blas.dtrmv(self.T, scaled, lower=1)))
        doubt = gamma(len(v) + _SPARE) * float(np.abs(scaled) @ self.column) + float((error * self.scale) @ self.column)
        return (length * (1.0 + gamma(len(v) + _SPARE)) + doubt) / (1.0 - self.eta) * (1.0 + gamma(_SPARE))

    def half_step(self, v: np.ndarray, most: float, error: np.ndarray) -> tuple[np.ndarray, float]:
        """(p ≈ ½M⁻¹v, r): any y with ‖y‖²_M ≤ ⟨v, y⟩ for the true v has ‖y − p‖_M ≤ r, M being LLᵀ; `most` of the same v.

        ‖y − ½M⁻¹v‖_M ≤ ½√(vᵀM⁻¹v) by completing the square; TᵀT is M⁻¹ up to η, and v and the products have errors of their own.
        """
        from scipy.linalg import blas

        scaled = v * self.scale
        p = 0.5 * blas.dtrmv(self.T, blas.dtrmv(self.T, scaled, lower=1), lower=1, trans=1)
        own = gamma(2 * len(v) + _SPARE) * float(np.abs(scaled) @ self.column) * float(self.column.sum())
        off = (self.eta * 1.2 + gamma(_SPARE)) * most + float((error * self.scale) @ self.column) + 4.0 * own
        return p * self.scale, (0.5 * most + off) * (1.0 + gamma(_SPARE))

    def above(self) -> np.ndarray:
        """The lower triangle, row after row, of a Q ⪰ M⁻¹, float64 (D(D + 1)/2,); of an inverse from `below`."""
        from scipy.linalg import blas

        D = len(self.scale)
        P = blas.dsyrk(1.0, self.T, trans=1, lower=1)
        P[np.diag_indices(D)] += (gamma(D + _SPARE) + 8.0 * EPSILON) * self.size**2
        P *= (1.0 + gamma(_SPARE)) / (1.0 - self.eta) ** 2
        P *= self.scale
        P *= self.scale[:, None]
        return np.concatenate([P[j, : j + 1] for j in range(D)])

    def scaled(self, M: np.ndarray) -> np.ndarray:
        """M (D, D) in these coordinates, in place: the lower triangle is read, all of it written."""
        lower = np.tril_indices(len(M), -1)
        M.T[lower] = M[lower]
        M *= self.scale
        M *= self.scale[:, None]
        return M

    def largest(self, M: np.ndarray, part: float) -> float:
        """A λ with M ⪯ λ(TᵀT)⁻¹, of an M ⪰ 0 that is `scaled` and off by `part` · √(M_jj M_kk)."""
        from scipy.linalg import eigvalsh

        D, own = len(M), gamma(4 * len(M) + _SPARE)
        found = float(eigvalsh(self.T @ M @ self.T.T, subset_by_index=[D - 1, D - 1])[0])
        return max(found, 0.0) * (1.0 + own) + (4.0 * own + part) * self.spread(M) ** 2

    def spread(self, M: np.ndarray) -> float:
        """At least Σ ‖T e_j‖ √M_jj: sums of |T||M||Tᵀ| are less than its square."""
        return float(self.column @ np.sqrt(M[np.diag_indices(len(M))])) * (1.0 + gamma(len(M) + _SPARE))

    def diagonal(self, *, most: bool) -> np.ndarray:
        """At least, or at most, the diagonal of M⁻¹, float64 (D,)."""
        D = len(self.scale)
        squares = np.einsum("ij,ij->j", self.T, self.T) * self.scale**2
        own = gamma(D + _SPARE)
        return squares * ((1.0 + own) / (1.0 - self.eta) ** 2 if most else (1.0 - own) / (1.0 + self.eta) ** 2)


def inverse(M: np.ndarray, part: float, *, below: bool) -> Inverse | None:
    """The inverse of the matrix whose lower triangle is M (D, D), overwritten, up to `part` = γ; bounds by `below`."""
    from scipy.linalg import blas, lapack

    D, diagonal = len(M), np.diag_indices(len(M))
    there = M[diagonal]
    if not (np.isfinite(there).all() and there.min(initial=1.0) > _LEAST):
        return None
    scale = np.ldexp(1.0, -np.frexp(np.sqrt(there))[1])
    M *= scale
    M *= scale[:, None]
    trace = float(M[diagonal].sum()) * (1.0 + gamma(D))
    guard = (2.0 * part + 2.0 * gamma(D + _SPARE)) * trace
    M[diagonal] += -guard if below else guard
    L, failed = lapack.dpotrf(np.asfortranarray(M), lower=1, clean=1, overwrite_a=1)
    if failed:
        return None
    T, failed = lapack.dtrtri(L, lower=1)
    if failed or not np.isfinite(T).all():
        return None
    own = gamma(D + _SPARE)
    sizes = float(np.linalg.norm(T)) * float(np.linalg.norm(L)) * (1.0 + own)
    R = blas.dtrmm(1.0, T, L, lower=1)
    R[diagonal] -= 1.0
    eta = (float(np.linalg.norm(R)) + own * sizes) * (1.0 + own)
    if not eta < _WORST:
        return None
    column = np.sqrt(np.einsum("ij,ij->j", T, T)) * (1.0 + own)
    return Inverse(T, eta, scale, column)
