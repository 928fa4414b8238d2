"""A kernel model: support vectors with coefficients for one score, or for one score per class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.errors import UsageError
from streamcut.foundation.chunk import Chunk
from streamcut.kernels.kernel import Kernel
from streamcut.kernels.vectors import Vectors, dense_bytes
from streamcut.models.certificate import Certificate, DualPoint, StopReason
from streamcut.models.labels import class_numbers, positive_rows
from streamcut.models.model import Model, certificate_result, expect_shape
from streamcut.solver_table import SOLVER_TABLE

if TYPE_CHECKING:
    import scipy.sparse as sp

_KEPT = 64 << 20  # bytes of support vectors that stay in memory


@dataclass(frozen=True, eq=False, repr=False)
class KernelModel(Model):
    """score(x) = Σ_j coefficients[j] k(x, support_j) + intercept.

    support       CSR float64 (n_support, n_features)
    coefficients  float64 (n_support,) for two classes, (n_support, K) for K scores, of which the largest gives the label
    intercept     float64: a number, or (K,)
    labels        (negative, positive) as the user wrote them, or all K; empty for a regression
    rest          two classes: the negative label stands for every label that is not the positive one
    certificate   what is proved about the answer; None: nothing
    point         the feasible point of the dual behind the certificate's bound; None: that of `coefficients`
    reason        why training ended
    facts         other results of training, numbers by name (JSON types)
    """

    support: sp.csr_array
    coefficients: np.ndarray
    kernel: Kernel
    labels: tuple[float, ...]
    C: float
    intercept: float | np.ndarray = 0.0
    positive_weight: float = 1.0
    rest: bool = False
    reason: StopReason = StopReason.EPOCHS
    certificate: Certificate | None = None
    point: DualPoint | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "kernel"

    def __post_init__(self) -> None:
        several = self.coefficients.ndim > 1
        expect_shape("coefficients", self.coefficients, self.n_support, *([len(self.labels)] if several else []))
        if np.ndim(self.intercept):
            expect_shape("intercept", self.intercept, len(self.labels))
        if self.point is not None:
            expect_shape("dual coefficients", self.point.coefficients, *self.coefficients.shape)

    @property
    def n_features(self) -> int:
        return self.support.shape[1]

    @property
    def n_support(self) -> int:
        return self.support.shape[0]

    @property
    def scores_per_row(self) -> int:
        return 1 if self.coefficients.ndim == 1 else self.coefficients.shape[1]

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return () if self.certificate is None else (self.certificate,)

    @property
    def converged(self) -> bool:
        """With a certificate: whether it was reached; without: whether training ran to its end."""
        if self.certificate is not None:
            return self.certificate.converged
        return self.reason in (StopReason.CONVERGED, StopReason.EPOCHS, StopReason.SETTLED)

    @property
    def stop_reason(self) -> StopReason:
        return self.reason if self.certificate is None else self.certificate.stop_reason

    def in_words(self) -> str:
        vectors = f"{self.n_support:,} support vectors ({self.kernel.name} kernel)"
        if self.certificate is not None:
            return f"{self.certificate.in_words()} The model has {vectors}."
        return f"Training ended: {self.reason.because}. The model has {vectors}; nothing is proved about its objective."

    def result(self) -> dict[str, Any]:
        proved = {} if self.certificate is None else certificate_result(self.certificate)
        return {"stop_reason": self.stop_reason, "n_support": self.n_support, **proved, **self.facts}

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        """Scores, float64 (n,) or (n, K), in memory bounded by a tile of support vectors and a block of kernel values."""
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
        return Vectors(self.near, rows, self.n_features, kept=size <= _KEPT)

    @cached_property
    def near(self) -> Kernel:
        """`kernel` as computed near the support vectors, determined by the model file alone."""
        return self.kernel.centred_on(self.support_rows)

    @property
    def support_rows(self) -> Chunk:
        """The support vectors as rows without labels."""
        X = self.support
        return Chunk(X.indptr.astype(np.int64), X.indices, X.data, np.zeros(self.n_support))

    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The labels, float64; for two classes the negative one at a score of exactly 0, for K the first of the largest.

        A regression predicts the scores.
        """
        if not self.labels:
            return scores
        if scores.ndim == 2:
            return np.asarray(self.labels)[np.argmax(scores, axis=1)]
        negative, positive = self.labels
        return np.where(scores > 0, positive, negative)

    def is_positive(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Which of the labels `y` are the positive one of two, bool (n,). Raises BadInputError for a label unknown here."""
        if not self.labels:
            raise UsageError(f"a model of task {self.task} has no labels to compare with")
        negative, positive = self.labels
        return positive_rows(y, (negative, positive), self.rest, first_row)

    @property
    def strategy(self) -> str:
        """Several classes: sampled cuts train all as one problem, other solvers each against the rest."""
        return SOLVER_TABLE[self.solver].strategy

    def classes_of(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """The class 0 … K − 1 of each label, int64 (n,). Raises BadInputError for a label unknown here."""
        return class_numbers(y, self.labels, first_row)

    def describe(self) -> dict[str, Any]:
        names = ("n_features", "n_support", "labels", "C", "positive_weight", "rest", "facts")
        proved = None if self.certificate is None else certificate_result(self.certificate)
        own = {name: getattr(self, name) for name in names}
        return {**own, "kernel": self.kernel.as_dict(), "certificate": proved, **self.result()}


def joined(models: Sequence[KernelModel], labels: tuple[float, ...]) -> KernelModel:
    """Model k of `models`, all with the same kernel, scores `labels[k]`; a row that several models keep is stored once.

    Each certificate is about its own problem, so the joined model has none. Its stop reason is that of
    the first class that did not converge, and `history` is the longest.
    """
    import scipy.sparse as sp

    support = sp.vstack([model.support for model in models], format="csr")
    places: dict[bytes, int] = {}
    bounds = support.indptr
    first: list[int] = []
    where = np.empty(support.shape[0], np.int64)
    for row in range(support.shape[0]):
        inside = slice(bounds[row], bounds[row + 1])
        key = support.indices[inside].tobytes() + b"|" + support.data[inside].tobytes()
        where[row] = places.setdefault(key, len(places))
        if where[row] == len(first):
            first.append(row)
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
        labels=labels,
        intercept=np.array([model.intercept for model in models], dtype=np.float64),
        rest=False,
        task="multiclass",
        reason=reasons[0] if reasons else models[0].stop_reason,
        certificate=None,
        point=None,
        facts={name: sum(model.facts[name] for model in models) for name in ("evaluations", "steps") if name in models[0].facts},
    )
