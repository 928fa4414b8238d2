"""SequenceSVM: labels the rows of sequences together, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from streamcut.config import LINEAR
from streamcut.estimators.base import StreamedClassifier, is_stored
from streamcut.prediction import predict
from streamcut.training import train


class SequenceSVM(StreamedClassifier):
    """Linear chain: the score of a labelling is that of its rows, and of each label after the one before it.

    C              loss of a row whose label is wrong
    bias           value of a constant, regularised feature; 0 = none
    random_state   seed of the order in which bundle-dca takes the sequences; the other solvers draw nothing
    others         as in `streamcut.train`

    `groups` says which rows are one sequence, in their order; without it every row is one of its own.

    coef_ (classes, features), intercept_ (classes), transitions_ (classes, classes: [j, k] for k after j), classes_, n_iter_,
    primal_objective_, lower_bound_, gap_, converged_, history_, model_.
    """

    _solvers: ClassVar = ("auto", *LINEAR)
    _fixed: ClassVar[dict[str, Any]] = {"task": "sequence"}
    class_weight = None  # sequences have no weights

    def __init__(
        self,
        C: float = 1.0,
        *,
        bias: float = 1.0,
        solver: str = "auto",
        cut: str = "predicted",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_passes: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
        random_state: Any = 0,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
        lanes: int | None = None,
        scheduler: Any = "threads",
        deadline: float = 120.0,
    ) -> None:
        self.C = C
        self.bias = bias
        self.solver = solver
        self.cut = cut
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_passes = max_passes
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.random_state = random_state
        self.memory = memory
        self.workers = workers
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Train on `X` (n × d), `y` (n) and the sequence of each row (n), or on a store."""
        if groups is None and not is_stored(X):
            groups = np.arange(_num_samples(X))
        data, _ = self._classification(X, y, None, groups)
        model: Any = train(data, **self._options())
        self.coef_, self.intercept_, self.transitions_ = model.weights.T, model.intercepts, model.transitions
        return self._keep(model)

    def emissions(self, X: Any) -> np.ndarray:
        """Scores of the rows for each class, float64 (n, classes), without transitions."""
        return self._scores(X)

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """The classes of the rows of an array or a store."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            labels = predict(self.model_, self._narrow(X))
        else:
            X = self._checked(X)
            sequence = np.arange(X.shape[0]) if groups is None else column_or_1d(groups)
            check_consistent_length(X, sequence)
            order = np.argsort(sequence, kind="stable")
            labels = np.empty(X.shape[0])
            labels[order] = self.model_.predict(X[order], sequence[order])  # type: ignore[call-arg]
        return self.classes_[np.searchsorted(self._labels, labels)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> float:
        """Part of the rows that are labelled rightly, of an array with labels or of a store."""
        if is_stored(X):
            return float(self.evaluate(X).accuracy)
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))
