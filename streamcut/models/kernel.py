"""A kernel model: support vectors with coefficients for one score, or for one score per class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.foundation.chunk import Chunk
from streamcut.foundation.shown import expect_shape
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors, dense_bytes
from streamcut.models.certificate import DualPoint, StopReason
from streamcut.models.model import Model

if TYPE_CHECKING:
    import scipy.sparse as sp

_KEPT = 64 << 20  # bytes of support vectors that stay in memory
_BLOCK = 1 << 18  # kernel values at a time; with `_squares` it decides the last bits of scores, which model files keep


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KernelModel(Model):
    """score(x) = Σ_j coefficients[j] k(x, support_j) + intercept.

    support       CSR float64 (n_support, n_features)
    coefficients  float64 (n_support,) for one score, (n_support, K) for K
    intercept     float64: a number, or (K,)
    point         the feasible point of the dual behind the certificate's bound; None: that of `coefficients`
    reason        why training ended
    facts         other results of training, numbers by name (JSON types)
    """

    support: sp.csr_array
    coefficients: np.ndarray
    kernel: Kernel
    intercept: float | np.ndarray = 0.0
    reason: StopReason = StopReason.EPOCHS
    point: DualPoint | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        expect_shape("coefficients", self.coefficients, self.n_support, *self.coefficients.shape[1:2])
        if np.ndim(self.intercept):
            expect_shape("intercept", self.intercept, self.scores_per_row)
        if self.point is not None:
            expect_shape("dual coefficients", self.point.coefficients, *self.coefficients.shape)
        super().__post_init__()

    @property
    def _width(self) -> int:
        return self.support.shape[1]

    @property
    def n_support(self) -> int:
        return self.support.shape[0]

    @property
    def scores_per_row(self) -> int:
        return 1 if self.coefficients.ndim == 1 else self.coefficients.shape[1]

    @property
    def converged(self) -> bool:
        """With a certificate: whether it was reached; without: whether training ran to its end."""
        return super().converged if self.certificates else self.reason in (
            StopReason.CONVERGED, StopReason.EPOCHS, StopReason.SETTLED,
        )  # fmt: skip

    @property
    def stop_reason(self) -> StopReason:
        return super().stop_reason if self.certificates else self.reason

    def in_words(self) -> str:
        vectors = f"{self.n_support:,} support vectors ({self.kernel.name} kernel)"
        if self.certificates:
            return f"{super().in_words()} The model has {vectors}."
        return f"Training ended: {self.reason.because}. The model has {vectors}; nothing is proved about its objective."

    def result(self) -> dict[str, Any]:
        proved = super().result() if self.certificates else {}
        return {"stop_reason": self.stop_reason, "n_support": self.n_support, **proved, **self.facts}

    def _scores(self, chunk: Chunk) -> np.ndarray:
        """In memory bounded by a tile of support vectors and a block of kernel values."""
        coefficients = self.coefficients.reshape(self.n_support, -1)
        scores = np.zeros((chunk.n_rows, coefficients.shape[1]))
        for i, j, values in self._vectors.values(chunk):
            scores[i : i + len(values)] += values @ coefficients[j : j + values.shape[1]]
        scores += self.intercept
        return scores[:, 0] if self.coefficients.ndim == 1 else scores

    @cached_property
    def _vectors(self) -> Vectors:
        rows = self.support_rows
        size = dense_bytes(self.n_support, float(np.diff(rows.indptr).max(initial=0)), self.n_features)
        return Vectors(self.near, rows, self.n_features, block=_BLOCK, squares=self._squares(), kept=size <= _KEPT)

    def _squares(self) -> np.ndarray:
        """‖support_j‖² less the centre, float64 (n_support,)."""
        X, centre = self.support, self.near.centre
        if centre is None:
            return np.asarray(X.multiply(X).sum(axis=1)).ravel()
        rows = (centre.moved_there(X[j : j + 8].toarray()) for j in range(0, self.n_support, 8))  # dense, a few at a time
        return np.concatenate([np.einsum("ij,ij->i", few, few) for few in rows])

    @cached_property
    def near(self) -> Kernel:
        """`kernel` as computed near the support vectors, determined by the model file alone."""
        return self.kernel.centred_on(self.support_rows)

    @property
    def support_rows(self) -> Chunk:
        """The support vectors as rows without labels."""
        X = self.support
        return Chunk(X.indptr.astype(np.int64), X.indices, X.data, np.zeros(self.n_support))

    def _described(self) -> dict[str, object]:
        return {"kernel": self.kernel.as_dict(), "facts": self.facts, **self.result()}


def row_keys(rows: Chunk | sp.csr_array) -> Iterator[tuple[bytes, bytes]]:
    """The features and values of each row of a chunk or a CSR array, equal for equal rows."""
    columns = np.ascontiguousarray(rows.indices, np.int64)
    values = np.ones(len(columns)) if rows.data is None else np.ascontiguousarray(rows.data, np.float64)
    for start, stop in pairwise(rows.indptr.tolist()):
        yield columns[start:stop].tobytes(), values[start:stop].tobytes()


def joined(models: Sequence[KernelModel], labels: tuple[float, ...]) -> KernelModel:
    """Model k of `models`, all with the same kernel, scores `labels[k]`; a row that several models keep is stored once.

    Each certificate is about its own problem, so the joined model has none. Its stop reason is that of
    the first class that did not converge, and `history` is the longest.
    """
    import scipy.sparse as sp

    support = sp.vstack([model.support for model in models], format="csr")
    keys = list(row_keys(support))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    where = np.array([numbers[key] for key in keys], np.int64)
    first = np.unique(where, return_index=True)[1]
    coefficients = np.zeros((len(first), len(models)))
    start = 0
    for k, model in enumerate(models):
        np.add.at(coefficients[:, k], where[start : start + model.n_support], model.coefficients)
        start += model.n_support
    reasons = [model.stop_reason for model in models if not model.converged]
    return replace(
        max(models, key=lambda model: len(model.history)),
        support=sp.csr_array(support[first]),
        coefficients=coefficients,
        problem=replace(models[0].problem, labels=labels, rest=False, task="multiclass"),
        intercept=np.array([model.intercept for model in models], dtype=np.float64),
        reason=reasons[0] if reasons else models[0].stop_reason,
        certificates=(),
        point=None,
        facts={name: sum(model.facts[name] for model in models) for name in ("evaluations", "steps") if name in models[0].facts},
    )
