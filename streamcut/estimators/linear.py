"""Linear classifiers with a certificate as scikit-learn estimators: LinearSVM, of any loss, and LogisticRegression."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import LINEAR
from streamcut.estimators.base import ScoringClassifier
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.parameters import RowLosses
from streamcut.loss_table import JOINT_LOSSES, ROW_LOSSES

_LOG_ODDS = {name for losses in (ROW_LOSSES, JOINT_LOSSES) for name, loss in losses.items() if loss.log_odds}


@declared
class LinearClassifier(ScoringClassifier, RowLosses):
    """What LinearSVM and LogisticRegression have in common."""

    _solvers: ClassVar = ("auto", *LINEAR)
    solver: str = parameter(
        '"auto" is newton for smooth losses of few features, else bundle-dca.', default="auto", choices=_solvers
    )
    coef_: np.ndarray = attribute("ndarray of shape (1 or classes, features)", of=lambda model: np.atleast_2d(model.weights.T))
    intercept_: np.ndarray = attribute(
        "ndarray of shape (1 or classes,)",
        of=lambda model: model.intercepts if model.scores_per_row > 1 else np.array([model.intercept]),
    )

    @abstractmethod
    def _task(self, several: bool) -> dict[str, Any]:
        """Options that depend on the number of classes."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        start = self._start() if self.warm_start else None
        return self._keep(self._train(data, **self._task(several), warm_start=start))

    def _has_probabilities(self) -> bool:
        loss = self._task(False).get("loss", getattr(self, "loss", None))
        return loss in _LOG_ODDS


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
