"""LinearSVM: the linear classifier with a certificate as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from streamcut.estimators.base import ScoringClassifier
from streamcut.training import train


class LinearSVM(ScoringClassifier):
    """Linear support vector machine (hinge loss) for two or more classes, on arrays or on stores larger than memory.

    C              loss of a row, as in LinearSVC(loss="hinge")
    bias           value of a constant, regularised feature; 0 = no intercept
    strategy       more than two classes: "crammer-singer" (one problem) or "one-against-rest"
    class_weight   None, "balanced" or {class: factor}, for arrays
    solver, tol, tol_relative, max_passes, max_time, max_cuts, memory, workers, scratch   as in `streamcut.train`

    coef_ (1 or classes, features), intercept_ (1 or classes), classes_, n_iter_, primal_objective_, lower_bound_, gap_,
    converged_, history_, model_ (what `streamcut.save_model` writes).

    >>> import numpy as np
    >>> from streamcut.estimators import LinearSVM
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> svm = LinearSVM(C=10.0).fit(X, y)
    >>> svm.predict([[0.0, 3.0]]).tolist(), bool(svm.lower_bound_ <= svm.primal_objective_)
    (['up'], True)
    """

    _own: ClassVar[tuple[str, ...]] = ("class_weight", "strategy")
    coef_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self,
        C: float = 1.0,
        *,
        bias: float = 1.0,
        strategy: str = "crammer-singer",
        class_weight: Any = None,
        solver: str = "auto",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_passes: int | None = None,
        max_time: float | None = None,
        max_cuts: int | None = None,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
    ) -> None:
        self.C = C
        self.bias = bias
        self.strategy = strategy
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_passes = max_passes
        self.max_time = max_time
        self.max_cuts = max_cuts
        self.memory = memory
        self.workers = workers
        self.scratch = scratch

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        task: dict[str, Any] = {"task": "multiclass", "strategy": self.strategy} if several else {"task": "binary"}
        model: Any = train(data, **self._options(), **task)
        self.coef_ = np.atleast_2d(model.weights.T)
        self.intercept_ = model.intercepts if several else np.array([model.intercept])
        return self._keep(model)
