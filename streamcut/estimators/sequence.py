"""SequenceSVM: labels the rows of sequences together, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from streamcut.config import LINEAR
from streamcut.estimators.base import StreamedClassifier, is_stored
from streamcut.estimators.declared import attribute, declared, parameter
from streamcut.estimators.parameters import BundleDca
from streamcut.prediction import predict
from streamcut.solver_table import solvers_of


@declared
class SequenceSVM(StreamedClassifier, BundleDca):
    """Linear chain: the score of a labelling is that of its rows, and of each label after the one before it.

    `groups` says which rows form a sequence, in their order; without it every row is its own sequence.
    """

    _solvers: ClassVar = ("auto", *(name for name in LINEAR if name in solvers_of("sequence")))
    _fixed: ClassVar[dict[str, Any]] = {"task": "sequence"}
    C: float = parameter("Loss of a row whose label is wrong.", default=1.0, kw_only=False)
    solver: str = parameter('"auto" is bundle-dca.', default="auto", choices=_solvers)
    coef_: np.ndarray = attribute("ndarray of shape (classes, features)", of=lambda model: model.weights.T)
    intercept_: np.ndarray = attribute("ndarray of shape (classes,)", of=lambda model: model.intercepts)
    transitions_: np.ndarray = attribute(
        "ndarray of shape (classes, classes)",
        "[j, k]: what label k after label j adds to the score.",
        of=lambda model: model.transitions,
    )

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Train on `X` (n × d), `y` (n) and the sequence of each row (n), or on a store."""
        if groups is None and not is_stored(X):
            groups = np.arange(_num_samples(X))
        data, _ = self._classification(X, y, None, groups)
        return self._keep(self._train(data))

    def emissions(self, X: Any) -> np.ndarray:
        """Scores of the rows for each class, float64 (n, classes), without transitions."""
        return self._scores(X)

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """The classes of the rows of an array or a store."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            labels: np.ndarray = predict(self.model_, self._narrow(X))
        else:
            X = self._checked(X)
            sequence = np.arange(X.shape[0]) if groups is None else column_or_1d(groups)
            check_consistent_length(X, sequence)
            order = np.argsort(sequence, kind="stable")
            labels = np.empty(X.shape[0])
            labels[order] = self.model_.predict(X[order], sequence[order])  # type: ignore[call-arg]
        return self.classes_[np.searchsorted(self._labels, labels)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> float:
        """Fraction of rows labelled correctly, of an array with labels or of a store."""
        if is_stored(X):
            return float(self.evaluate(X).accuracy)
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))
