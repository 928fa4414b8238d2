"""RankingSVM: orders the rows of queries, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from streamcut.config import CUTTING_PLANES
from streamcut.estimators.base import grouped, is_stored
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.parameters import CuttingPlanes
from streamcut.evaluation import evaluate


@declared
class RankingSVM(CuttingPlanes):
    """Linear ranking function: of two rows of one query the one with the greater label is to score higher."""

    _solvers: ClassVar = ("auto", *CUTTING_PLANES)
    _fixed: ClassVar[dict[str, Any]] = {"task": "ranking"}

    C: float = parameter(
        "Weight of the loss: it multiplies the mean loss of all pairs times the number of rows.", default=1.0, kw_only=False
    )
    normalisation: str = parameter(default=USUAL.normalisation)
    solver: str = parameter('"auto" is ocas.', default="auto", choices=_solvers)
    coef_: np.ndarray = attribute("ndarray of shape (features,)", of=lambda model: model.weights)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Train on `X` (n × d), numbers `y` (n) and the query of each row (n; None: a single query), or on a store."""
        if is_stored(X):
            data: Any = self._stored(X, y=y, groups=groups)
        else:
            X, y, _ = self._arrays(X, y, numeric=True)
            if y.dtype.kind not in "biuf":
                raise ValueError(f"y: rows are ranked by numbers, not by {y.dtype} such as {y.tolist()[0]!r}")
            if np.ptp(y) == 0:
                raise ValueError(f"all labels are {y[0]:g}: there is nothing to rank (n_samples={len(y)})")
            data = grouped(X, y, None, groups)
        return self._keep(self._train(data))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, float64 (n,), of the rows of an array or a store: higher ones come first."""
        return self._scores(X)

    predict = decision_function

    def score(self, X: Any, y: Any = None, groups: Any = None) -> float:
        """Fraction of pairs within a query with different labels that are in the right order (ties count half)."""
        if is_stored(X):
            return float(self.evaluate(X).pairwise_accuracy)
        check_is_fitted(self, "model_")
        X, y, _ = self._arrays(X, y, numeric=True, reset=False)
        return float(evaluate(self.model_, grouped(X, y, None, groups)).pairwise_accuracy)
