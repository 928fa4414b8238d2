"""The sandwich H⁻¹BH⁻¹ at the exact optimum: the roots of its diagonal, at least and at most.

    H = ∇²F(w*),    B = C² Σ_g s_g s_gᵀ,    s_g = Σ u_i ℓ_i′(w*) x_i over the rows of a cluster g, or of a single row

One pass makes the factors at the model's weights w_b. With G the curvature that is proved from below on the way to w* and K the
most that it is, H ⪯ K ⪯ κG, and Q ⪰ H⁻¹ of `locate`: a_j = G⁻¹e_j is within (1 − 1/κ)√(e_jᵀG⁻¹e_j) of H⁻¹e_j in the norm of G.
The slope of a row moves by h m_i, m_i = |⟨w_b − w*, x_i⟩|, h ≤ h_i, so with S, whose rows are C s_g at w_b, and σ² the largest
eigenvalue of SᵀS in the norm of G,

    |‖S a_j‖ − √V_jj| ≤ σ(1 − 1/κ)√(e_jᵀG⁻¹e_j) + t√Q_jj,    t² = κ max over g of C Σ u_i h_i m_i²,

as ‖(S* − S)a‖² = Σ_g (aᵀH_g(w_b − w*))², each at most aᵀH_g a times (w_b − w*)ᵀH_g(w_b − w*), and Σ_g H_g ⪯ K.

White 1980 (HC0); for clusters times G/(G − 1) · (n − 1)/(n − D), G clusters, n rows, D weights (Liang and Zeger 1986).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.rounding import gamma
from streamcut.io.dataset import Dataset
from streamcut.locating import factor
from streamcut.locating.problem import Located
from streamcut.locating.regions import Ellipsoid
from streamcut.locating.sums import SHRUNK, Curvature, Rows, magnitudes, margins_within, rows_of
from streamcut.models.optimum import Optimum

_SPARE = 64
MATRICES = 10 + factor.MATRICES  # D × D, of float64


class Sandwich:
    """The sandwich of a problem with its optimum in the ellipsoid `known`; `codes`, int64 (n,): each row's cluster, from 0."""

    def __init__(self, problem: Located, known: Optimum, codes: np.ndarray | None) -> None:
        self._problem, self._known, self._codes = problem, known, codes
        self._groups = 0 if codes is None else int(codes.max(initial=-1)) + 1
        self._sums = np.zeros((self._groups, len(problem.at)))
        self._roots = np.sqrt(known.diagonal) * (1.0 + gamma(8.0))
        self._moved = np.zeros(max(self._groups, 1))  # C Σ u h m² of each cluster, or the maximum over rows
        self._doubt = np.zeros(self._groups)  # rounding in S, in the norm of H, per cluster
        self._squares = 0.0  # the same of single rows, squared

    def errors(self, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
        """(low, high), float64 (D,) each; not finite if the rows do not determine them."""
        problem, statistics = self._problem, data.manifest.statistics
        region = Ellipsoid(problem.at, problem.bias, self._known)
        G, K = Curvature(problem, statistics), Curvature(problem, statistics)
        B = Curvature(replace(problem, ridge=np.zeros(len(problem.at))), statistics)
        at = 0
        for rows in rows_of(problem, data):
            low, high = region.within(rows.chunk, rows.s)
            least, most = problem.risk.loss.curvature_within(*margins_within(problem, rows, low, high))
            G.add(rows, least * SHRUNK)
            K.add(rows, most / SHRUNK)
            signed = problem.risk.duals(rows.chunk.y, rows.s)[0]
            sizes = np.abs(signed) + (np.abs(rows.chunk.y) if problem.risk.loss.targets == "numbers" else 0.0)
            Cu = problem.model.C * rows.u
            moved = Cu * most / SHRUNK * np.maximum(high - rows.s, rows.s - low) ** 2
            near = most / SHRUNK * rows.doubt + sizes * gamma(_SPARE)
            doubt = Cu * near * magnitudes(rows.chunk, self._roots, problem.bias)
            if self._codes is None:
                B.add(rows, Cu * signed * signed)
                self._moved[0] = max(self._moved[0], float(moved.max(initial=0.0)))
                self._squares += float(doubt @ doubt)
            else:
                codes = self._codes[at : at + len(moved)]
                self._moved += np.bincount(codes, moved, self._groups)
                self._add(rows, codes, Cu * signed, doubt)
            at += len(moved)
        squares, part = (B.total, B.part) if self._codes is None else (self._sums.T @ self._sums, gamma(self._groups + _SPARE))
        below = factor.inverse(G.total, G.part, below=True)
        if below is None or not np.isfinite(K.total).all():
            return np.zeros(len(problem.at)), np.full(len(problem.at), np.inf)
        low, high = self._between(below, K.total, K.part, squares, part)
        if self._codes is not None:
            n, D = statistics.n_rows, len(problem.at)
            correction = math.sqrt(self._groups / (self._groups - 1) * (n - 1) / (n - D))
            low, high = low * correction * (1.0 - gamma(8.0)), high * correction * (1.0 + gamma(8.0))
        return low, high

    def _add(self, rows: Rows, codes: np.ndarray, slopes: np.ndarray, doubt: np.ndarray) -> None:
        """Add rows of clusters: their slopes, and the errors of the slopes and the sums."""
        import scipy.sparse as sp

        problem, chunk = self._problem, rows.chunk
        n, D = chunk.n_rows, len(problem.at)
        which = sp.csr_matrix((slopes, (codes, np.arange(n))), shape=(self._groups, n))
        found = (which @ _matrix(chunk, D)).tocoo()
        found.sum_duplicates()
        self._sums[found.row, found.col] += found.data
        if problem.bias:
            self._sums[:, -1] += problem.bias * np.bincount(codes, slopes, self._groups)
        own = gamma(len(self._codes if self._codes is not None else codes) + _SPARE)
        doubt = doubt + own * np.abs(slopes) * magnitudes(chunk, self._roots, problem.bias)
        self._doubt += np.bincount(codes, doubt, self._groups)

    def _between(
        self, G: factor.Inverse, K: np.ndarray, part_of_K: float, B: np.ndarray, part: float
    ) -> tuple[np.ndarray, np.ndarray]:
        own = gamma(4 * len(K) + _SPARE)
        most = max(1.0, G.largest(G.scaled(K), part_of_K))
        sigma = math.sqrt(G.largest(G.scaled(B), part))
        A = G.T.T @ G.T  # G⁻¹, of scaled coordinates
        found = np.einsum("ij,ij->j", A, B @ A)
        doubt = (2.0 * own + part) * (G.column * G.spread(B)) ** 2
        apart = max(1.0 / (1.0 - G.eta) ** 2 - 1.0, 1.0 - 1.0 / most) * (1.0 + own)
        rough = math.sqrt(self._squares if self._codes is None else float(self._doubt @ self._doubt))
        t = math.sqrt(most * float(self._moved.max())) / (1.0 - G.eta) + rough
        off = sigma * apart * G.column * G.scale + t * (1.0 + gamma(self._known.rows + _SPARE)) * self._roots
        low = np.sqrt(np.maximum(found - doubt, 0.0)) * G.scale - off
        high = np.sqrt(found + doubt) * G.scale + off
        return np.maximum(low, 0.0) * (1.0 - gamma(_SPARE)), high * (1.0 + gamma(_SPARE))


def _matrix(chunk: Chunk, D: int):
    """Its rows, (n, D), without the bias feature."""
    import scipy.sparse as sp

    first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
    data = np.ones(last - first) if chunk.data is None else np.asarray(chunk.data[first:last], np.float64)
    return sp.csr_matrix((data, chunk.indices[first:last], chunk.indptr - first), shape=(chunk.n_rows, D))
