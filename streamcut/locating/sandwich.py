"""The sandwich H⁻¹BH⁻¹ at the exact optimum: the roots of its diagonal, at least and at most.

    H = ∇²F(w*),    B = C² Σ_g s_g s_gᵀ,    s_g = Σ u_i ℓ_i′(w*) x_i over the rows of a cluster g, or of each row by itself

One pass makes both factors near w*. With G the curvature that is proved from below there, H ⪯ κG, and Q ⪰ H⁻¹ of `locate`:
a_j = G⁻¹e_j is within (1 − 1/κ)√(e_jᵀG⁻¹e_j) of H⁻¹e_j in the norm of G, and the slope of row i within δ_i of that at w*. So with
S, whose rows are C s_g at the model's weights,

    |‖S a_j‖ − √V_jj| ≤ √(tr SG⁻¹Sᵀ) (1 − 1/κ) √(e_jᵀG⁻¹e_j) + ‖t‖ √Q_jj,    t_g = C Σ u_i δ_i √(x_iᵀQx_i).

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
from streamcut.locating.sums import SHRUNK, Curvature, Rows, magnitudes, margins_within, rows_of, widths
from streamcut.models.optimum import Optimum

_SPARE = 64
MATRICES = 6 + factor.MATRICES  # D × D, of float64


class Sandwich:
    """Of a problem whose optimum is in the ellipsoid `known`; `codes`, int64 (n,), are the clusters of the rows, from 0."""

    def __init__(self, problem: Located, known: Optimum, codes: np.ndarray | None) -> None:
        self._problem, self._known, self._codes = problem, known, codes
        self._groups = 0 if codes is None else int(codes.max(initial=-1)) + 1
        self._sums = np.zeros((self._groups, len(problem.at)))
        self._roots = np.sqrt(known.diagonal) * (1.0 + gamma(8.0))
        self._off = np.zeros(self._groups)  # t, of clusters
        self._squares = 0.0  # ‖t‖², of single rows
        self._bent = 1.0  # κ, but for rounding

    def errors(self, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
        """(low, high), float64 (D,) each; not finite where the rows say too little."""
        problem, statistics = self._problem, data.manifest.statistics
        region = Ellipsoid(problem.at, problem.bias, self._known)
        H = Curvature(problem, statistics)
        B = Curvature(replace(problem, ridge=np.zeros(len(problem.at))), statistics)
        at = 0
        for rows in rows_of(problem, data):
            low, high = region.within(rows.chunk, rows.s)
            least, most = problem.risk.loss.curvature_within(*margins_within(problem, rows, low, high))
            signed = problem.risk.duals(rows.chunk.y, rows.s)[0]
            sizes = np.abs(signed) + (np.abs(rows.chunk.y) if problem.risk.loss.targets == "numbers" else 0.0)
            moved = most / SHRUNK * np.maximum(high - rows.s, rows.s - low) + sizes * gamma(_SPARE)
            counts = rows.u > 0.0
            self._bent = max(self._bent, float(np.max(most[counts] / least[counts], initial=1.0)))
            H.add(rows, least * SHRUNK)
            off = problem.model.C * rows.u * moved * widths(rows.chunk, self._known.spread, self._known.diagonal, problem.bias)
            if self._codes is None:
                B.add(rows, problem.model.C * rows.u * signed * signed)
                self._squares += float(off @ off)
            else:
                self._add(rows, self._codes[at : at + len(off)], problem.model.C * rows.u * signed, off)
            at += len(off)
        squares, part = (B.total, B.part) if self._codes is None else (self._sums.T @ self._sums, gamma(self._groups + _SPARE))
        below = factor.inverse(H.total, H.part, below=True)
        if below is None or not math.isfinite(self._bent):
            return np.zeros(len(problem.at)), np.full(len(problem.at), np.inf)
        low, high = self._between(below, squares, part)
        if self._codes is not None:
            n, D = statistics.n_rows, len(problem.at)
            correction = math.sqrt(self._groups / (self._groups - 1) * (n - 1) / (n - D))
            low, high = low * correction * (1.0 - gamma(8.0)), high * correction * (1.0 + gamma(8.0))
        return low, high

    def _add(self, rows: Rows, codes: np.ndarray, slopes: np.ndarray, off: np.ndarray) -> None:
        """Rows of clusters: their slopes, and how far these and the sums may be off."""
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
        off = off + own * np.abs(slopes) * magnitudes(chunk, self._roots, problem.bias)
        self._off += np.bincount(codes, off, self._groups)

    def _between(self, G: factor.Inverse, B: np.ndarray, part: float) -> tuple[np.ndarray, np.ndarray]:
        D, own = len(G.scale), gamma(4 * len(G.scale) + _SPARE)
        lower = np.tril_indices(D, -1)
        B.T[lower] = B[lower]
        B *= G.scale
        B *= G.scale[:, None]
        A = G.T.T @ G.T  # G⁻¹, of scaled coordinates
        roots = np.sqrt(B[np.diag_indices(D)]) * (1.0 + part)
        every = float(G.column @ roots)
        found = np.einsum("ij,ij->j", A, B @ A)
        doubt = (2.0 * own + part) * (G.column * every) ** 2
        trace = (float((B * A).sum()) + (2.0 * own + part) * every * every) * (1.0 + own)
        bent = self._bent * (1.0 + 2.0 * G.guard * (G.size / (1.0 - G.eta)) ** 2) * (1.0 + G.eta) ** 2 * (1.0 + own)
        apart = max(1.0 / (1.0 - G.eta) ** 2 - 1.0, 1.0 - 1.0 / bent) * (1.0 + own)
        t = math.sqrt(self._squares if self._codes is None else float(self._off @ self._off)) * (1.0 + gamma(_SPARE))
        off = math.sqrt(trace) * apart * G.column * G.scale + t * (1.0 + gamma(self._known.rows + _SPARE)) * self._roots
        low = np.sqrt(np.maximum(found - doubt, 0.0)) * G.scale - off
        high = np.sqrt(found + doubt) * G.scale + off
        return np.maximum(low, 0.0) * (1.0 - gamma(_SPARE)), high * (1.0 + gamma(_SPARE))


def _matrix(chunk: Chunk, D: int):
    """Its rows, (n, D), without the bias feature."""
    import scipy.sparse as sp

    first, last = int(chunk.indptr[0]), int(chunk.indptr[-1])
    data = np.ones(last - first) if chunk.data is None else np.asarray(chunk.data[first:last], np.float64)
    return sp.csr_matrix((data, chunk.indices[first:last], chunk.indptr - first), shape=(chunk.n_rows, D))
