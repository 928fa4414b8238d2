"""Linear classifiers with a certificate as scikit-learn estimators: LinearSVM, of any loss, and LogisticRegression."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import LINEAR
from streamcut.estimators.base import ScoringClassifier
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.parameters import RowLosses


@declared
class LinearClassifier(ScoringClassifier, RowLosses):
    """What LinearSVM and LogisticRegression have in common."""

    _solvers: ClassVar = ("auto", *LINEAR)
    solver: str = parameter(
        '"auto" is newton for smooth losses of few features, else bundle-dca.', default="auto", choices=_solvers
    )
    coef_: np.ndarray = attribute("ndarray of shape (1 or classes, features)")
    intercept_: np.ndarray = attribute("ndarray of shape (1 or classes,)")

    @abstractmethod
    def _task(self, several: bool) -> dict[str, Any]:
        """Options that depend on the number of classes."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        start = self._start() if self.warm_start else None
        model = self._train(data, **self._task(several), warm_start=start)
        self._take_weights(model)
        return self._keep(model)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, starting at the present weights, whether of `partial_fit` or `fit`; the rows are not kept.

        X, y, sample_weight   as for `fit`; some of the classes may be missing
        classes               all classes that will ever occur: required at the first call with arrays, may be repeated later

        A call minimises ½‖w − w_before‖² + C Σ loss over its rows by dual ascent, in epochs over them until one gains at most
        `tol` in mean loss, at most `sweeps`. All rows in one call give what `fit` gives. A store counts as one call per shard,
        and arrays of more than 2 million entries are split likewise. Nothing is proved about several calls: primal_objective_
        is the objective on the rows of the last one, lower_bound_ is 0. In addition to the parameters of the problem (no l1, no
        scale), tol, sweeps and random_state apply.

        Each call is a step of the proximal point method, which treats repeated rows as new ones: repeated calls with the same
        rows approach their least loss, and ½‖w‖² counts less each time. Use `fit` to train on the same rows again.
        """
        data = self._further(X, y, classes, sample_weight)
        return self._learn(data, tuple(self._labels.tolist()), **self._task(len(self.classes_) > 2))

    def _take_weights(self, model: Any) -> None:
        self.coef_ = np.atleast_2d(model.weights.T)
        self.intercept_ = model.intercepts if model.scores_per_row > 1 else np.array([model.intercept])


@declared
class LinearSVM(LinearClassifier):
    """Linear classifier for two or more classes, on arrays or on stores larger than memory, with a certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.estimators import LinearSVM
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> svm = LinearSVM(C=10.0).fit(X, y)
    >>> svm.predict([[0.0, 3.0]]).tolist(), bool(svm.lower_bound_ <= svm.primal_objective_)
    (['up'], True)
    """

    loss: str = parameter(
        '"hinge", "squared-hinge", "smoothed-hinge" or "logistic"; for two classes also a bound on a measure of all rows: "f1", '
        '"prbep", "error"; for several at once "hinge" or "softmax".',
        default="hinge",
    )
    scale: str = parameter(default=USUAL.scale)
    strategy: str = parameter(default=USUAL.strategy, option=False)
    solver: str = parameter(
        '"auto" is bundle-dca for losses of single rows, else ocas.', default="auto", choices=LinearClassifier._solvers
    )

    def _task(self, several: bool) -> dict[str, Any]:
        return {"task": "multiclass", "strategy": self.strategy} if several else {"task": "binary"}


@declared
class LogisticRegression(LinearClassifier):
    """Logistic regression for two classes, multinomial (softmax) for more, on arrays or on stores larger than memory.

    The objective is that of scikit-learn's LogisticRegression with the same C, but the intercept is regularised as other
    weights are: the less, the larger `intercept_scaling`. For one class against the rest use LinearSVM(loss="logistic",
    strategy="one-vs-rest"), or scikit-learn's OneVsRestClassifier.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.estimators import LogisticRegression
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> bool(LogisticRegression().fit(X, y).predict_proba([[0.0, 3.0]])[0, 1] > 0.5)
    True
    """

    def _task(self, several: bool) -> dict[str, Any]:
        return {"task": "multiclass", "loss": "softmax"} if several else {"task": "binary", "loss": "logistic"}
