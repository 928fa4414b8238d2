"""What all trained models have in common: scoring, the record of their training, and storage in a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk, csr_arrays
from streamcut.foundation.fields import by_name
from streamcut.foundation.shown import Shown
from streamcut.io.recipe.recipe import Recipe
from streamcut.models.certificate import Certificate, StopReason
from streamcut.models.few_rows import Row, few_rows
from streamcut.models.link import Link, OwnLink

BEGUN = "certified"  # the parameter that names the model from which certify found this one, and its distance from the optimum


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model(Shown, ABC):
    """Scores rows, and records its training.

    task         "binary", "multiclass", …; solver: the one that trained it
    history      one dict per iteration; parameters: arguments of the training (JSON types), with `data` if that is on disk
    fingerprint  of the training data (Manifest.fingerprint)
    resources    bytes of memory: budget, planned, peak (resident, of this training; beyond Linux, of the process so far), and
                 `plan`, the (what, bytes) it adds up from; also `readings`
    link         probabilities from scores, None unless they were fitted (streamcut.calibration)
    recipe       how rows become the model's features; None: features are plain numbers
    """

    task: str = "binary"
    solver: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    resources: dict[str, Any] = field(default_factory=dict)
    link: Link | None = None
    recipe: Recipe | None = None

    kind: ClassVar[str]
    whole_groups: ClassVar[bool] = False  # rows of one qid are scored and labelled together

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of features."""

    @property
    def readings(self) -> float | None:
        """How often training read its rows, from the store or from memory: rows read ÷ rows of the data.

        This includes passes for kernel features, groups of classes and earlier models of a path, but not the passes before a
        resumed checkpoint. None where it is not known.
        """
        return self.resources.get("readings")

    @property
    def scores_per_row(self) -> int:
        """Numbers that score_chunk gives for each row: 1 stands for an array (n,), K for (n, K)."""
        return 1

    @property
    @abstractmethod
    def converged(self) -> bool:
        """Whether training reached its tolerance."""

    @property
    @abstractmethod
    def stop_reason(self) -> StopReason:
        """Why training ended."""

    @abstractmethod
    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        """Scores, float64 (n,) or (n, scores_per_row), of rows with no features unknown to the model."""

    def score_few(self, rows: list[Row]) -> np.ndarray | None:
        """The same scores, bit for bit, of a few rows without compiled code; None: not offered by this model."""
        return None

    def without_proof(self) -> Self:
        """The model without the parts that only prove its certificate."""
        return self

    @abstractmethod
    def labels_of(self, scores: np.ndarray) -> np.ndarray:
        """The predictions, float64 (n,), for rows with these scores."""

    def labels_of_chunk(self, chunk: Chunk, scores: np.ndarray) -> np.ndarray:
        """The predictions for the rows of `chunk` with these scores, where they depend on more than a row's own scores."""
        return self.labels_of(scores)

    @property
    def label_names(self) -> dict[float, str]:
        """{label: word} where labels are words, else empty."""
        return {} if self.recipe is None or self.task in ("ranking", "roc-area") else self.recipe.labels.names

    def label_word(self, label: float) -> str | float:
        """The word of a label, or the label where it has none."""
        return self.label_names.get(label, label)

    def feature_name(self, feature: int) -> str:
        """The name of a feature (0-based), "" where it has none."""
        names = () if self.recipe is None else self.recipe.names or ()
        return names[feature] if feature < len(names) else ""

    def in_label_words(self, labels: np.ndarray) -> np.ndarray:
        """Labels, float64 (n,), as words (object, n) where they are words; a label without a word is written as a number."""
        names = self.label_names
        if not names:
            return labels
        distinct, codes = np.unique(labels, return_inverse=True)
        return np.array([names.get(label, f"{label:g}") for label in distinct.tolist()], dtype=object)[codes]

    @abstractmethod
    def in_words(self) -> str:
        """The result of training, in two sentences."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The result of training, in numbers."""

    def shown(self) -> dict[str, Any]:
        """What a console or a notebook shows."""
        result, several = self.result(), self.scores_per_row > 1
        return {
            "task": self.task,
            "solver": self.solver,
            "features": self.n_features,
            "classes": self.scores_per_row if several else None,
            **{name: result.get(name) for name in ("n_support", "primal", "lower_bound", "gap")},
            "converged": self.converged,
            "stop_reason": None if self.converged else self.stop_reason,
        }

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<p>{escape(self.in_words())}</p>"

    def save(self, path: str | os.PathLike, *, replace: bool = True) -> None:
        """Write the model to `path`, a file or a URL, as `streamcut.save_model` does; `streamcut.load_model` reads it.

        >>> import numpy as np
        >>> model = streamcut.train((np.array([[0.0, 1.0], [1.0, 0.0]]), [1.0, -1.0]))
        >>> model.save("small.npz")
        >>> streamcut.load_model("small.npz").predict([[0.0, 2.0]]).tolist()
        [1.0]
        """
        import streamcut  # loads its parts on first use

        streamcut.save_model(self, path, replace=replace)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What `streamcut info` shows, in JSON types."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the rows of `X` (n × n_features, NumPy or SciPy sparse), as `score_chunk`; or of raw rows.

        Raw rows are what `streamcut.predict` takes: frames (pandas, polars, Arrow, DuckDB), one row or several as dicts, files
        and stores, prepared by the model's recipe. Values that training did not see are counted in a warning and in `unseen` of
        the result.

        Raises BadInputError for a wrong number of features, for missing columns, and for values that are not finite.
        """
        if self._speaks_of(X):
            return self._told(X, "scores")
        rows = few_rows(X, self.n_features)
        scores = None if rows is None else self.score_few(rows)
        if scores is None:
            scores = self.score_chunk(self._rows(X))
        finite = np.isfinite(scores)
        if finite.all():
            return scores
        finite = finite.reshape(len(scores), -1).all(axis=1)
        raise BadInputError(f"row {int(np.argmin(finite))} (0-based) of X gives a score that is not finite")

    def predict(self, X: Any) -> np.ndarray:
        """Labels of the rows of `X`, float64 (n,), or words (object, n) where labels are words.

        `X` and errors are those of `decision_function`.
        """
        return self._told(X, "labels") if self._speaks_of(X) else self.in_label_words(self.labels_of(self.decision_function(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the positive label, float64 (n,), or of all classes, (n, K), of the rows of `X`.

        `X` and errors are those of `decision_function`; UsageError where the model has no probabilities.
        """
        self.expected_link()
        return self._told(X, "probabilities") if self._speaks_of(X) else self.probabilities_of(self.decision_function(X))

    def explain(self, X: Any, **options: Any) -> list[Any]:
        """What each feature adds to the score of each row of `X`: see `streamcut.explain` for options and errors."""
        import streamcut

        return streamcut.explain(self, X, **options)

    def _speaks_of(self, X: Any) -> bool:
        """Whether `X` holds raw rows, from which features are made first."""
        if isinstance(X, str | os.PathLike | Mapping) or hasattr(X, "manifest"):
            return True
        if isinstance(X, list):
            return bool(X) and isinstance(X[0], Mapping)
        return hasattr(X, "__arrow_c_stream__") and self.recipe is not None and self.recipe.table is not None

    def _told(self, X: Any, output: str) -> np.ndarray:
        import streamcut  # loads readers on first use

        return streamcut.predict(self, X, answer=output)

    def probabilities_of(self, scores: np.ndarray) -> np.ndarray:
        """Probabilities of the positive label, float64 (n,), for scores (n,); of all classes, (n, K), for scores (n, K).

        Raises UsageError when the loss implies none and they were never fitted.
        """
        return self.expected_link()(scores)

    def expected_link(self) -> OwnLink:
        """The link from scores to probabilities; raises UsageError if there is none."""
        link = self.link or self.own_link
        if link is None:
            raise UsageError("the model has no probabilities; fit them with `streamcut calibrate MODEL DATA`")
        return link

    @property
    def own_link(self) -> OwnLink | None:
        """The link that the loss implies; None: it implies none."""
        return None

    @property
    def has_probabilities(self) -> bool:
        """Whether the model has probabilities."""
        return (self.link or self.own_link) is not None

    def _rows(self, X) -> Chunk:
        if not hasattr(X, "indptr") and not hasattr(X, "tocsr"):
            X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise BadInputError(f"X has shape {X.shape}, but the model has {self.n_features} features")
        indptr, indices, data, _ = csr_arrays(X)
        return Chunk(indptr, indices, data, np.zeros(len(indptr) - 1))


class CertifiedModel(Model):
    """A model whose results are all in its `certificate`."""

    certificate: Certificate

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return (self.certificate,)

    @property
    def converged(self) -> bool:
        return self.certificate.converged

    @property
    def stop_reason(self) -> StopReason:
        return self.certificate.stop_reason

    def in_words(self) -> str:
        return self.certificate.in_words()

    def result(self) -> dict[str, Any]:
        return certificate_result(self.certificate)


def expect_shape(name: str, array: Any, *shape: int) -> None:
    """Raise ValueError unless `array` has this shape: compiled code checks no bounds."""
    if np.shape(array) != shape:
        raise ValueError(f"{name} has shape {np.shape(array)}, expected {shape}")


def common_parts(model: Model) -> dict[str, Any]:
    """The fields common to all models."""
    return {each.name: getattr(model, each.name) for each in fields(Model)}


def certificate_result(certificate: Certificate) -> dict[str, Any]:
    """A certificate in numbers, its gap included."""
    return {**by_name(certificate), "gap": certificate.gap}


def weights_in_words(l1: float, weights: np.ndarray, parameters: dict[str, Any]) -> str:
    """A sentence on how many weights an elastic net left nonzero; empty without one."""
    if not l1:
        return ""
    most = parameters.get("l1_max")
    part = "" if most is None else f", {100.0 * l1 / most:.3g} % of λmax,"
    return f" With l1 = {l1:g}{part} {np.count_nonzero(weights):,} of {weights.size:,} weights are not 0."
