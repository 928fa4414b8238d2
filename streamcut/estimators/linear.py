"""Linear classifiers with a certificate as scikit-learn estimators: LinearSVM, of any loss, and LogisticRegression."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import LINEAR
from streamcut.estimators.base import ScoringClassifier
from streamcut.training import train


class LinearSVM(ScoringClassifier):
    """Linear classifier for two or more classes, on arrays or on stores larger than memory.

    C              loss of a row, as in LinearSVC
    loss           "hinge", "squared-hinge", "logistic" (several classes: with strategy "one-vs-rest" all three, else "hinge" or
                   "softmax"), or for two classes a bound on a measure of all rows: "f1", "prbep", "error"
    l1             λ of the elastic net ½‖w‖² + λ‖w‖₁, or a part of λmax ("10%"); most weights are 0 when it is large
    scale          "max-abs" or "std": train on values divided by this number of each feature
    bias           value of a constant, regularised feature; 0 = no intercept
    strategy       more than two classes: "crammer-singer" (one problem) or "one-vs-rest"
    class_weight   None, "balanced" or {class: factor}, for arrays
    warm_start     `fit` begins with the weights that are there, say those of another C
    random_state   seed of the order in which bundle-dca takes the rows; the other solvers draw nothing
    others         as in `streamcut.train`

    coef_ (1 or classes, features), intercept_ (1 or classes), classes_, n_iter_, primal_objective_, lower_bound_, gap_,
    converged_, history_, model_ (what `streamcut.save_model` writes).

    >>> import numpy as np
    >>> from streamcut.estimators import LinearSVM
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> svm = LinearSVM(C=10.0).fit(X, y)
    >>> svm.predict([[0.0, 3.0]]).tolist(), bool(svm.lower_bound_ <= svm.primal_objective_)
    (['up'], True)
    """

    _solvers: ClassVar = ("auto", *LINEAR)
    _own: ClassVar[tuple[str, ...]] = ("class_weight", "strategy", "warm_start")
    coef_: np.ndarray
    intercept_: np.ndarray

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        l1: float | str = 0.0,
        scale: str = "none",
        bias: float = 1.0,
        strategy: str = "crammer-singer",
        class_weight: Any = None,
        warm_start: bool = False,
        solver: str = "auto",
        cut: str = "predicted",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_passes: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
        row_cache: str = "auto",
        sweeps: int = 50,
        random_state: Any = 0,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
        lanes: int | None = None,
        scheduler: Any = "threads",
        deadline: float = 120.0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.l1 = l1
        self.scale = scale
        self.bias = bias
        self.strategy = strategy
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.solver = solver
        self.cut = cut
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_passes = max_passes
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.row_cache = row_cache
        self.sweeps = sweeps
        self.random_state = random_state
        self.memory = memory
        self.workers = workers
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline

    def _task(self, several: bool) -> dict[str, Any]:
        """Options that hang on the number of classes."""
        return {"task": "multiclass", "strategy": self.strategy} if several else {"task": "binary"}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        start = self.model_ if self.warm_start and hasattr(self, "model_") else None
        model: Any = train(data, **self._options(), **self._task(several), warm_start=start)
        self.coef_ = np.atleast_2d(model.weights.T)
        self.intercept_ = model.intercepts if several else np.array([model.intercept])
        return self._keep(model)


class LogisticRegression(LinearSVM):
    """Logistic regression for two classes, multinomial (softmax) for more, on arrays or on stores larger than memory.

    The objective is that of scikit-learn's LogisticRegression with the same C, but that the intercept is regularised as other
    weights are: the less, the larger `intercept_scaling`. For one class against the rest take
    LinearSVM(loss="logistic", strategy="one-vs-rest"), or scikit-learn's OneVsRestClassifier.

    C                  loss of a row
    l1                 λ of the elastic net ½‖w‖² + λ‖w‖₁, or a part of λmax ("10%"); most weights are 0 when it is large
    fit_intercept      whether there is an intercept
    intercept_scaling  value of the constant feature whose weight it is
    class_weight       None, "balanced" or {class: factor}, for arrays
    warm_start         `fit` begins with the weights that are there, say those of another C
    random_state       seed of the order in which bundle-dca takes the rows; the other solvers draw nothing
    others             as in `streamcut.train`

    Attributes as of LinearSVM. `predict_proba` and `predict_log_proba` are there as soon as it is fitted.

    >>> import numpy as np
    >>> from streamcut.estimators import LogisticRegression
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> bool(LogisticRegression().fit(X, y).predict_proba([[0.0, 3.0]])[0, 1] > 0.5)
    True
    """

    _own: ClassVar[tuple[str, ...]] = ("class_weight", "warm_start", "fit_intercept", "intercept_scaling")

    def __init__(
        self,
        C: float = 1.0,
        *,
        l1: float | str = 0.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Any = None,
        warm_start: bool = False,
        solver: str = "auto",
        cut: str = "predicted",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_passes: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
        row_cache: str = "auto",
        sweeps: int = 50,
        random_state: Any = 0,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
        lanes: int | None = None,
        scheduler: Any = "threads",
        deadline: float = 120.0,
    ) -> None:
        self.C = C
        self.l1 = l1
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.solver = solver
        self.cut = cut
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_passes = max_passes
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.row_cache = row_cache
        self.sweeps = sweeps
        self.random_state = random_state
        self.memory = memory
        self.workers = workers
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline

    def _task(self, several: bool) -> dict[str, Any]:
        own = {"task": "multiclass", "loss": "softmax"} if several else {"task": "binary", "loss": "logistic"}
        return {**own, "bias": float(self.intercept_scaling) if self.fit_intercept else 0.0}
