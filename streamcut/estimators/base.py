"""What the scikit-learn estimators share: rows from arrays or stores, options, and what training leaves behind."""

from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from streamcut.calibration import calibrate
from streamcut.errors import UsageError
from streamcut.evaluation import Evaluation, evaluate
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.models.model import Model
from streamcut.prediction import predict
from streamcut.training import opened

_DTYPES = (np.float64, np.float32)
_RESULTS = {"primal": "primal_objective_", "objective": "primal_objective_", "lower_bound": "lower_bound_", "gap": "gap_"}


def is_stored(X: Any) -> bool:
    """Whether `X` is the path of a store or an opened data set, which brings its own labels."""
    return isinstance(X, str | os.PathLike) or hasattr(X, "manifest")


class StreamedEstimator(BaseEstimator):
    """Trains on arrays (NumPy, SciPy sparse) or on a store: `fit("train.zarr")`.

    Subclasses have a constructor whose parameters are options of `streamcut.train` but for `_own`, which they handle themselves.
    """

    _own: ClassVar[tuple[str, ...]] = ()
    _fixed: ClassVar[dict[str, Any]] = {}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _options(self) -> dict[str, Any]:
        chosen = {name: value for name, value in self.get_params(deep=False).items() if name not in self._own}
        if "random_state" in chosen:
            seed = chosen.pop("random_state")
            chosen["seed"] = seed if isinstance(seed, int) else int(check_random_state(seed).randint(2**31 - 1))
        return {**chosen, **self._fixed}

    def _keep(self, model: Model) -> Self:
        """Take the attributes that users know from `model`; warn when it did not converge."""
        self.model_ = model
        self.history_ = model.history
        self.n_iter_ = max(1, len(model.history) - 1)
        self.converged_ = model.converged
        result = model.result()
        for name, attribute in _RESULTS.items():
            if name in result:
                setattr(self, attribute, result[name])
        if not model.converged:
            warnings.warn(f"not converged ({model.stop_reason}): {model.in_words()}", ConvergenceWarning, stacklevel=3)
        return self

    def _arrays(
        self, X: Any, y: Any, sample_weight: Any = None, *, numeric: bool, reset: bool = True
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        checks: Any = {"accept_sparse": "csr", "dtype": _DTYPES, "accept_large_sparse": True}
        X, y = validate_data(self, X, y, y_numeric=numeric, reset=reset, **checks)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        return X, y, sample_weight

    def _stored(self, X: Any, **given: Any) -> Dataset:
        """The store `X`, to which nothing can be added."""
        too_much = [name for name, value in given.items() if value is not None]
        if too_much:
            raise UsageError(f"a store has its own {', '.join(too_much)}: leave the argument out")
        data = opened(X)
        self.n_features_in_ = data.manifest.statistics.n_features
        return data

    def evaluate(self, X: Any) -> Evaluation:
        """All measures of `streamcut.evaluate` on a store (of a model that was trained on a store: labels must agree)."""
        check_is_fitted(self, "model_")
        return evaluate(self.model_, X)

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "model_")
        if is_stored(X):
            return predict(self.model_, X, output="scores")
        return self.model_.decision_function(self._checked(X))

    def _checked(self, X: Any) -> Any:
        """The rows, if they have the features that fit saw."""
        return validate_data(self, X, accept_sparse="csr", dtype=_DTYPES, reset=False, accept_large_sparse=True)


class StreamedClassifier(ClassifierMixin, StreamedEstimator):
    """A classifier: labels of any kind, `class_weight` for arrays."""

    _own: ClassVar[tuple[str, ...]] = ("class_weight",)

    def _classification(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> tuple[Dataset, bool]:
        """(the data, with labels 0, 1, … when they come as an array; whether there are more than two classes); sets classes_."""
        if is_stored(X):
            data = self._stored(X, y=y, sample_weight=sample_weight, groups=groups, class_weight=self.class_weight)
            labels = data.manifest.statistics.labels
            if labels is None:
                raise UsageError("the store has too many different labels for classes")
            self.classes_ = np.array(sorted(labels))
            self._labels = self.classes_
            return data, len(labels) > 2
        X, y, sample_weight = self._arrays(X, y, sample_weight, numeric=False)
        y = column_or_1d(y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._labels = np.arange(len(self.classes_), dtype=np.float64)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes or more, but the data has one class only: {self.classes_[0]!r}"
            )
        if self.class_weight is not None:
            by_class = compute_sample_weight(self.class_weight, y)
            sample_weight = by_class if sample_weight is None else sample_weight * by_class
        if sample_weight is not None and len(np.unique(codes[sample_weight > 0])) < 2:
            raise ValueError(f"{type(self).__name__} needs two classes or more with weights above 0")
        return grouped(X, codes, sample_weight, groups), len(self.classes_) > 2

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean accuracy on an array with labels, or on a store."""
        if is_stored(X):
            return float(self.evaluate(X).accuracy)
        return super().score(X, y, sample_weight)


class ScoringClassifier(StreamedClassifier):
    """A classifier whose scores decide row by row; probabilities once `calibrate` has been called."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, float64 (n,) for two classes or (n, classes), of the rows of an array or a store."""
        return self._scores(X)

    def predict(self, X: Any) -> np.ndarray:
        """The classes of the rows of an array or a store."""
        labels = self.model_.labels_of(self.decision_function(X)) if hasattr(self, "model_") else self._scores(X)
        return self.classes_[np.searchsorted(self._labels, labels)]

    def calibrate(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit probabilities (two classes, Platt scaling) on rows that were held out: arrays, or a store."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            self.model_ = calibrate(self.model_, opened(X))
            return self
        X = self._checked(X)
        y = column_or_1d(y)
        if unknown := sorted(set(np.unique(y).tolist()) - set(self.classes_.tolist())):
            raise ValueError(f"y holds labels that fit did not see: {unknown[:5]}")
        codes = self._labels[np.searchsorted(self.classes_, y)]
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.model_ = calibrate(self.model_, MemoryDataset(X, codes, weight=weight))
        return self

    @available_if(lambda self: getattr(getattr(self, "model_", None), "sigmoid", None) is not None)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the two classes, float64 (n, 2); there is no such method before `calibrate`."""
        positive = self.model_.probabilities_of(self.decision_function(X))
        return np.column_stack([1.0 - positive, positive])


def grouped(X: Any, y: np.ndarray, weight: np.ndarray | None, groups: Any) -> MemoryDataset:
    """The rows, those of a group together and else in their order. `groups` (n) may hold anything that can be sorted."""
    if groups is None:
        return MemoryDataset(X, y, weight=weight)
    groups = column_or_1d(groups)
    check_consistent_length(X, groups)
    _, qid = np.unique(groups, return_inverse=True)
    order = np.argsort(qid, kind="stable")
    return MemoryDataset(X[order], y[order], weight=None if weight is None else weight[order], qid=qid[order])
