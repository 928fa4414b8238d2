"""A trained model: a scorer, what is proved of it, the record of its training; scoring, decisions, storage in a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamcut.errors import BadInputError, UsageError
from streamcut.foundation.chunk import Chunk, csr_arrays, group_starts
from streamcut.foundation.shown import Shown, by_name, expect_shape, html
from streamcut.io.dataset import is_dataset
from streamcut.io.recipe.recipe import Recipe
from streamcut.losses import row_loss
from streamcut.models.certificate import Certificate, StopReason, certificate_of
from streamcut.models.few_rows import Row, few_rows
from streamcut.models.link import Link, OwnLink
from streamcut.problem import Problem

if TYPE_CHECKING:
    from streamcut.kernels.maps import FeatureMap

_OF_FRAMES = ("__arrow_c_stream__", "collect_batches", "scanner")  # each kind of frame has one of these
BEGUN = "certified"  # the parameter that names the model from which certify found this one, and its distance from the optimum


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Model(Shown, ABC):
    """Scores rows, decides by its task, and records its training. A subclass is a way to score.

    problem          what it minimises; solver: the one that trained it
    certificates     what is proved, of the problem or, one-vs-rest, of the problem of each class in the order of `labels`; none:
                     nothing is
    transitions      of sequences, rows of equal qid: float64 (K, K), [j, k] for labels[k] after labels[j]; scores of rows become
                     labels by the best path; None: each row by itself
    map              features of a kernel, which rows pass through before they are scored; None: their own features
    history          one dict per iteration; parameters: the record of the arguments (JSON types), with `data` if that is on disk
    fingerprint      of the training data (Manifest.fingerprint)
    resources        bytes of memory: budget, planned, peak (resident, of this training; beyond Linux, of the process so far), and
                     `plan`, the (what, bytes) it adds up from; also `readings`
    link             probabilities from scores, None unless they were fitted (streamcut.calibration)
    recipe           how rows become the model's features; None: features are plain numbers
    """

    problem: Problem
    solver: str = ""
    certificates: tuple[Certificate, ...] = ()
    transitions: np.ndarray | None = None
    map: FeatureMap | None = None
    history: list[dict[str, Any]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    resources: dict[str, Any] = field(default_factory=dict)
    link: Link | None = None
    recipe: Recipe | None = None

    kind: ClassVar[str]

    def __post_init__(self) -> None:
        if self.transitions is not None:
            expect_shape("transitions", self.transitions, self.scores_per_row, self.scores_per_row)
        if self.scores_per_row > 1 and len(self.labels or ()) != self.scores_per_row:
            raise ValueError(f"{self.scores_per_row} scores per row for {len(self.labels or ())} labels")
        if self.map is not None and self.map.n_features != self._width:
            raise ValueError(f"a model of {self._width} features does not fit a map to {self.map.n_features}")

    @property
    def task(self) -> str:
        """Of its problem: "binary", "multiclass", …"""
        return self.problem.task

    @property
    def labels(self) -> tuple[float, ...] | None:
        """Of its problem, as the user wrote them: (negative, positive), or all classes, increasing; None or none: it has none."""
        return self.problem.labels

    @property
    def C(self) -> float:  # noqa: N802
        """Of its problem."""
        return self.problem.C

    @property
    @abstractmethod
    def _width(self) -> int:
        """The number of features of the rows that are scored, after `map`."""

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self._width if self.map is None else self.map.dimension

    @property
    @abstractmethod
    def scores_per_row(self) -> int:
        """Numbers that score_chunk gives for each row: 1 stands for an array (n,), K for (n, K)."""

    @property
    def of_features(self) -> bool:
        """Whether a score is a weighted sum of the row's features."""
        return False

    @property
    def whole_groups(self) -> bool:
        """Whether rows of one qid are labelled together."""
        return self.transitions is not None

    @property
    def readings(self) -> float | None:
        """How often training read its rows, from the store or from memory: rows read ÷ rows of the data.

        This includes passes for kernel features, groups of classes and earlier models of a path, but not the passes before a
        resumed checkpoint. None where nothing recorded it.
        """
        return self.resources.get("readings")

    # -- what is proved ---------------------------------------------------------------------------------------------------------

    @property
    def certificate(self) -> Certificate | None:
        """What is proved of the problem, or of the sum of the problems; None: nothing."""
        return certificate_of(self.certificates) if self.certificates else None

    @property
    def converged(self) -> bool:
        """Whether training reached its tolerance."""
        return all(certificate.converged for certificate in self.certificates)

    @property
    def stop_reason(self) -> StopReason:
        """Why training ended; for the first class that did not converge, if any."""
        return next((c.stop_reason for c in self.certificates if not c.converged), StopReason.CONVERGED)

    def in_words(self) -> str:
        """The result of training, in two sentences."""
        proved = self.certificates
        if len(proved) == 1:
            return proved[0].in_words()
        done, labels = sum(c.converged for c in proved), self.labels or ()
        worst = max(range(len(proved)), key=lambda k: proved[k].gap_per_c_bar)
        return (
            f"{done} of {len(proved)} classes converged. The farthest from its optimum is {labels[worst]:g} against the rest. "
            f"{proved[worst].in_words()}"
        )

    def result(self) -> dict[str, Any]:
        """The result of training, in numbers."""
        results = [{**by_name(c), "gap": c.gap} for c in self.certificates]
        if len(results) == 1:
            return results[0]
        by_label = dict(zip((f"{label:.17g}" for label in self.labels or ()), results, strict=False))
        return {"converged": self.converged, "stop_reason": self.stop_reason, "classes": by_label}

    def shown(self) -> dict[str, object]:
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
        return f"{super()._repr_html_()}<p>{html(self.in_words())}</p>"

    def describe(self) -> dict[str, Any]:
        """What `streamcut info` shows, with NumPy's numbers."""
        return {
            "kind": self.kind, "task": self.task, "solver": self.solver, "n_features": self.n_features, **self._described(),
            **({} if self.map is None else self.map.describe()),
            "labels": self.labels,
            "C": self.C, "positive_weight": self.problem.positive_weight, "rest": self.problem.rest, "certificate": self.result(),
            **({} if self.link is None else {f"probabilities_{name}": value for name, value in by_name(self.link).items()}),
            "iterations": len(self.history),
            "parameters": self.parameters, "fingerprint": self.fingerprint, "resources": self.resources,
        }  # fmt: skip

    @abstractmethod
    def _described(self) -> dict[str, object]:
        """What `describe` says of the scorer."""

    def save(self, path: str | os.PathLike[str], *, replace: bool = True) -> None:
        """Write the model to `path`, a file or a URL, as `streamcut.save_model` does; `streamcut.load_model` reads it.

        >>> import numpy as np
        >>> model = streamcut.train((np.array([[0.0, 1.0], [1.0, 0.0]]), [1.0, -1.0]))
        >>> model.save("small.npz")
        >>> streamcut.load_model("small.npz").predict([[0.0, 2.0]]).tolist()
        [1.0]
        """
        import streamcut  # loads its parts on first use

        streamcut.save_model(self, path, replace=replace)

    # -- scores -----------------------------------------------------------------------------------------------------------------

    def score_chunk(self, chunk: Chunk) -> np.ndarray:
        """Scores, float64 (n,) or (n, scores_per_row), of rows with no features unknown to the model."""
        return self._scores(chunk if self.map is None else self.map.mapped(chunk))

    @abstractmethod
    def _scores(self, chunk: Chunk) -> np.ndarray:
        """The same of rows after `map`."""

    def score_few(self, rows: list[Row]) -> np.ndarray | None:
        """The same scores, bit for bit, of a few rows without compiled code; None: not offered by this model."""
        return None

    def decision_function(self, X: object) -> np.ndarray:
        """Scores of the rows of `X` (n × n_features, NumPy or SciPy sparse), as `score_chunk`; or of raw rows.

        Raw rows are what `streamcut.predict` takes: frames (pandas, polars, Arrow, DuckDB), one row or several as dicts, files
        and stores, prepared by the model's recipe. Values that training did not see are counted in a warning and in `unseen` of
        the result.

        Raises BadInputError for a wrong number of features, for missing columns, and for values that are not finite.
        """
        if (answers := self._of_raw_rows(X, "scores")) is not None:
            return answers
        rows = few_rows(X, self.n_features)
        scores = None if rows is None else self.score_few(rows)
        if scores is None:
            scores = self.score_chunk(self._rows(X))
        if (finite := np.isfinite(scores)).all():
            return scores
        row = int(np.argmin(finite.reshape(len(scores), -1).all(axis=1)))
        raise BadInputError(f"row {row} (0-based) of X gives a score that is not finite")

    def _rows(self, X: Any) -> Chunk:
        if not any(hasattr(X, name) for name in ("indptr", "tocsr")):
            X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise BadInputError(f"X has shape {X.shape}, but the model has {self.n_features} features")
        indptr, indices, data, _ = csr_arrays(X)
        return Chunk(indptr, indices, data, np.zeros(len(indptr) - 1))

    def _of_raw_rows(self, X: object, answer: str) -> np.ndarray | None:
        """The answers for raw rows, from which features are made first; None: `X` holds features."""
        raw = isinstance(X[0] if isinstance(X, list) and X else X, str | os.PathLike | Mapping) or is_dataset(X)
        if not raw and self.recipe is not None and self.recipe.table is not None:
            raw = isinstance(X, Iterator) or any(hasattr(X, name) for name in _OF_FRAMES)
        if not raw:
            return None
        import streamcut  # loads readers on first use

        return streamcut.predict(self, X, answer=answer)

    # -- labels -----------------------------------------------------------------------------------------------------------------

    def labels_of(self, scores: np.ndarray, starts: np.ndarray | None = None) -> np.ndarray:
        """The predictions, float64 (n,), for rows with these scores; of sequences that begin at `starts` (one, if None).

        A score of exactly 0 is negative, as in LIBLINEAR and scikit-learn; of several classes the highest score wins, the first
        among equals. A ranking predicts the scores, a regression what its loss makes of them.
        """
        if self.transitions is not None:
            return self._of_best_paths(scores, np.array([0, len(scores)]) if starts is None else starts)
        if self.task == "regression":
            return row_loss(self.problem.loss, dict(self.problem.options)).prediction(scores)
        if not self.labels:
            return scores
        if scores.ndim == 2:
            return np.asarray(self.labels)[scores.argmax(axis=1)]
        negative, positive = self.labels
        return np.where(scores > 0, positive, negative)

    def _of_best_paths(self, scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
        from streamcut.losses.sequence import SequenceRisk

        if len(scores) == 0:
            return np.empty(0)
        labels, transitions = self.labels or (), self.transitions
        assert transitions is not None
        return np.asarray(labels)[SequenceRisk(labels).best(starts, np.ascontiguousarray(scores), transitions)]

    def labels_of_chunk(self, chunk: Chunk, scores: np.ndarray) -> np.ndarray:
        """The predictions for the rows of `chunk` with these scores; rows of one qid are a sequence."""
        return self.labels_of(scores, self.starts(chunk) if self.whole_groups else None)

    def starts(self, chunk: Chunk) -> np.ndarray:
        """int64 (S + 1): the first row of each sequence of `chunk`, then the number of rows; without qid all rows are one."""
        return np.array([0, chunk.n_rows]) if chunk.qid is None else group_starts(chunk)

    def is_positive(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """Which of the labels `y` are the positive one of two, bool (n,).

        Raises BadInputError for a label unknown here, counting rows from `first_row`.
        """
        if not self.labels:
            raise UsageError(f"a model of task {self.task} has no labels to compare with")
        negative, positive = self.labels
        matches = y == positive
        if not self.problem.rest:
            self._refuse(~matches & (y != negative), y, first_row, f"{negative:g} and {positive:g}")
        return matches

    def classes_of(self, y: np.ndarray, first_row: int = 0) -> np.ndarray:
        """The class 0 … K − 1 of each label, int64 (n,). Raises as `is_positive`."""
        labels = np.asarray(self.labels)
        classes = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
        some = ", ".join(f"{label:g}" for label in labels[:10])
        more = f" and {len(labels) - 10} more" if len(labels) > 10 else ""
        self._refuse(labels[classes] != y, y, first_row, some + more)
        return classes

    @staticmethod
    def _refuse(unknown: np.ndarray, y: np.ndarray, first_row: int, labels: str) -> None:
        if unknown.any():
            row = int(np.argmax(unknown))
            raise BadInputError(f"row {first_row + row} (0-based) has label {y[row]:g}, but the model knows only {labels}")

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

    def predict(self, X: object, qid: object = None) -> np.ndarray:
        """Labels of the rows of `X`, float64 (n,), or words (object, n) where labels are words.

        `X` and errors are those of `decision_function`. `qid` (n,) tells sequences apart; without it the rows are one.
        """
        if (answers := self._of_raw_rows(X, "labels")) is not None:
            return answers
        scores, starts = self.decision_function(X), None
        if qid is not None:
            if not self.whole_groups:
                raise UsageError(f"qid: only models of sequences take it, not one of task {self.task}")
            qid = np.asarray(qid)
            if qid.shape != (len(scores),):
                raise BadInputError(f"qid has shape {qid.shape}, but X has {len(scores)} rows")
            starts = np.concatenate(([0], np.flatnonzero(qid[1:] != qid[:-1]) + 1, [len(qid)]))
        return self.in_label_words(self.labels_of(scores, starts))

    def predict_proba(self, X: object) -> np.ndarray:
        """Probabilities of the positive label, float64 (n,), or of all classes, (n, K), of the rows of `X`.

        `X` and errors are those of `decision_function`; UsageError where the model has no probabilities.
        """
        self.expected_link()
        answers = self._of_raw_rows(X, "probabilities")
        return self.probabilities_of(self.decision_function(X)) if answers is None else answers

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

    def explain(self, X: object, **options: Any) -> list[Any]:
        """What each feature adds to the score of each row of `X`: see `streamcut.explain` for options and errors."""
        import streamcut

        return streamcut.explain(self, X, **options)
