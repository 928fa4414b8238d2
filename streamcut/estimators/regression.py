"""Regression as scikit-learn estimators: linear by any regression loss, and with a kernel on a budget."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from streamcut.config import LINEAR
from streamcut.errors import UsageError
from streamcut.estimators.base import StreamedEstimator, is_stored
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.kernel_machine import OnBudget
from streamcut.estimators.parameters import RowLosses
from streamcut.io.dataset import Dataset
from streamcut.io.memory import MemoryDataset
from streamcut.loss_table import ROW_LOSSES
from streamcut.models.model import Model
from streamcut.solver_table import SOLVER_TABLE, solvers_of

_OF_NUMBERS = tuple(name for name, loss in ROW_LOSSES.items() if loss.targets == "numbers")
_THEIRS = {  # names of scikit-learn's LinearSVR and SGDRegressor
    "epsilon_insensitive": "epsilon-insensitive",
    "squared_epsilon_insensitive": "squared-epsilon-insensitive",
    "squared_error": "squared",
    "pinball": "quantile",
}


class Regressor(RegressorMixin, StreamedEstimator):
    """Predicts numbers; `loss` is one of `_losses`, by its name here or in scikit-learn."""

    loss: str
    _losses: ClassVar[tuple[str, ...]]

    def _loss(self) -> dict[str, Any]:
        """The loss by our name, and its parameters."""
        name = _THEIRS.get(self.loss, self.loss)
        if name not in self._losses:
            known = (*(theirs for theirs, ours in _THEIRS.items() if ours in self._losses), *self._losses)
            raise UsageError(f"loss: {self.loss!r} is not a loss of {type(self).__name__}, which has {', '.join(known)}")
        return {"loss": name, **{option: float(getattr(self, option)) for option in ROW_LOSSES[name].options}}

    def _numbers(self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> Dataset:
        """The rows with their targets."""
        if is_stored(X):
            return self._stored(X, reset=reset, y=y, sample_weight=sample_weight)
        X, y, weight = self._arrays(X, y, sample_weight, numeric=True, reset=reset)
        return MemoryDataset(X, y.astype(np.float64), weight=weight)

    def predict(self, X: Any) -> np.ndarray:
        """Predicted numbers, float64 (n,): the scores, or e^score for "poisson"."""
        scores = self._scores(X)
        return self.model_.labels_of(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² on an array with targets, or on a store."""
        if is_stored(X):
            return float(self.evaluate(X).r2)
        return super().score(X, y, sample_weight)


@declared
class LinearSVR(Regressor, RowLosses):
    """Linear regression with a certificate, on arrays or on stores larger than memory: support vector regression and others.

    Minimises ½‖w‖² + C Σ u_i ℓ(⟨w, x_i⟩ − y_i), as scikit-learn's LinearSVR does.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.estimators import LinearSVR
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> svr = LinearSVR(C=100.0).fit(X, [1.0, 3.0, 5.0, 7.0])
    >>> svr.predict([[4.0]]).round(1).tolist(), bool(svr.lower_bound_ <= svr.primal_objective_)
    ([9.0], True)
    """

    _solvers: ClassVar = ("auto", *(name for name in LINEAR if name in solvers_of("regression")))
    _losses: ClassVar = _OF_NUMBERS
    epsilon: float = parameter(
        "Residuals up to it cost nothing; of both epsilon-insensitive losses.", default=0.0, option=False, kw_only=False
    )
    loss: str = parameter(
        '"epsilon_insensitive", "squared_epsilon_insensitive", "squared_error" (half the square), "huber", "pinball" or '
        '"quantile", "poisson" (the mean is e^score), or any of these names as `streamcut.train` has it.',
        default="epsilon_insensitive",
        option=False,
    )
    delta: float = parameter(default=USUAL.delta, option=False)
    quantile: float = parameter(
        'Loss "quantile": which fraction of the targets is to lie below the prediction.', default=0.5, option=False
    )
    C: float = parameter("Weight of the loss, as in scikit-learn: larger values regularise less.", default=1.0)
    scale: str = parameter(default=USUAL.scale)
    solver: str = parameter(
        '"auto" is newton for smooth losses of few features, else bundle-dca.', default="auto", choices=_solvers
    )
    coef_: np.ndarray = attribute("ndarray of shape (features,)")
    intercept_: float = attribute("float")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and targets `y` (n), or on a store: its path, or opened."""
        data = self._numbers(X, y, sample_weight)
        start = self._start() if self.warm_start else None
        model = self._train(data, **self._task(), warm_start=start)
        self._take_weights(model)
        return self._keep(model)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows, starting at the present weights, whether of `partial_fit` or `fit`; the rows are not kept.

        X, y, sample_weight are as for `fit`. A call minimises ½‖w − w_before‖² + C Σ loss over its rows by dual ascent, in
        epochs over them until one gains at most `tol` in mean loss, at most `sweeps`. All rows in one call give what `fit`
        gives. A store counts as one call per shard, and arrays of more than 2 million entries are split likewise. Nothing is
        proved about several calls: primal_objective_ is the objective on the rows of the last one, lower_bound_ is 0. In
        addition to the parameters of the problem (no l1, no scale), tol, sweeps and random_state apply.

        Each call is a step of the proximal point method, which treats repeated rows as new ones: repeated calls with the same
        rows approach their least loss, and ½‖w‖² counts less each time. Use `fit` to train on the same rows again.
        """
        return self._learn(self._numbers(X, y, sample_weight, reset=not hasattr(self, "model_")), None, **self._task())

    def _task(self) -> dict[str, Any]:
        return {**self._loss(), "task": "regression"}

    def _take_weights(self, model: Any) -> None:
        self.coef_, self.intercept_ = model.weights, model.intercept


@declared
class BudgetedKernelSVR(Regressor, OnBudget):
    """Support vector regression with a kernel and at most `budget` support vectors, in passes over shuffled shards: BSCA or BSGD.

    Minimises ½‖w‖² + C Σ u_i ℓ(⟨w, φ(x_i)⟩ + b − y_i) with b, the mean of the targets, given. Rows may also arrive in batches
    (`partial_fit`). Nothing is proved about the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from streamcut.estimators import BudgetedKernelSVR
    >>> X = np.linspace(0.0, 6.0, 200)[:, None]
    >>> svr = BudgetedKernelSVR(C=10.0, gamma=1.0, budget=20, epochs=20.0).fit(X, np.sin(X[:, 0]))
    >>> svr.score(X, np.sin(X[:, 0])) > 0.95, svr.model_.n_support <= 20
    (True, True)
    """

    _losses: ClassVar = tuple(name for name in _OF_NUMBERS if name in (SOLVER_TABLE["bsca"].losses or ()))
    C: float = parameter("Weight of the loss, as in scikit-learn: larger values regularise less.", default=1.0, kw_only=False)
    epsilon: float = parameter('Loss "epsilon_insensitive": residuals up to it cost nothing.', default=0.1, option=False)
    loss: str = parameter(
        '"epsilon_insensitive", or "pinball", which is that of a quantile.', default="epsilon_insensitive", option=False
    )
    quantile: float = parameter(
        'Loss "pinball": which fraction of the targets is to lie below the prediction.', default=0.5, option=False
    )
    intercept_: np.ndarray = attribute("ndarray of shape (1,)", "The mean of the targets that `fit` or `partial_fit` saw first.")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and targets `y` (n), or on a store: its path, or opened."""
        return self._fitted(self._numbers(X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """One epoch over more rows, from the present support vectors and steps, whether of `partial_fit` or `fit`.

        The first call fixes the number of features, an automatic γ and the intercept. All rows count as new, even if seen
        before. n_iter_ and history_ are those of the last call.
        """
        start: Model | None = self._start()
        return self._fitted(self._numbers(X, y, sample_weight, reset=start is None), epochs=1.0, warm_start=start)

    def _fitted(self, data: Dataset, **options: Any) -> Self:
        return self._keep(self._train(data, **self._loss(), **options, task="regression"))
