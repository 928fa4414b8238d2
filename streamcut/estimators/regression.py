"""LinearSVR: linear regression by any of the losses of numbers, with a certificate, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d

from streamcut.config import LINEAR, ROW_LOSSES
from streamcut.errors import UsageError
from streamcut.estimators.base import StreamedEstimator, is_stored
from streamcut.io.memory import MemoryDataset
from streamcut.solver_table import solvers_of

_OF_NUMBERS = tuple(name for name, loss in ROW_LOSSES.items() if loss.targets == "numbers")
_THEIRS = {  # names of scikit-learn's LinearSVR and SGDRegressor
    "epsilon_insensitive": "epsilon-insensitive",
    "squared_epsilon_insensitive": "squared-epsilon-insensitive",
    "squared_error": "squared",
    "pinball": "quantile",
}


class LinearSVR(RegressorMixin, StreamedEstimator):
    """Linear regression with a certificate, on arrays or on stores larger than memory: support vector regression and others.

    Minimises ½‖w‖² + C Σ u_i ℓ(⟨w, x_i⟩ − y_i), as scikit-learn's LinearSVR does.

    Parameters
    ----------
    epsilon : float, default=0.0
        Residuals up to it cost nothing; of both epsilon-insensitive losses.
    loss : str, default="epsilon_insensitive"
        "epsilon_insensitive", "squared_epsilon_insensitive", "squared_error" (half the square), "huber", "pinball" or
        "quantile", "poisson" (the mean is e^score), or any of these names as `streamcut.train` has it.
    delta : float, default=1.0
        Loss "huber": residuals beyond it cost in proportion.
    quantile : float, default=0.5
        Loss "quantile": which part of the targets is to lie below the prediction.
    C : float, default=1.0
        Loss of a row, as in scikit-learn: larger ones regularise less.
    l1 : float or str, default=0.0
        λ of the elastic net ½‖w‖² + λ‖w‖₁, or a part of λmax ("10%"); most weights are 0 when it is large.
    scale : {"none", "max-abs", "std"}, default="none"
        Train on values divided by this number of each feature; coef_ is for values as they are.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is the weight of a constant feature, regularised as others are.
    intercept_scaling : float, default=1.0
        Value of that constant feature: the larger, the less the intercept is regularised.
    warm_start : bool, default=False
        `fit` begins with the weights that are there, say those of another C.
    solver : {"auto", "bundle-dca", "ocas", "cpa"}, default="auto"
        "auto" is bundle-dca.
    cut : {"predicted", "exact"}, default="predicted"
        ocas: where the next cut is made, ahead of the best point or at it.
    tol : float or None, default=1e-3
        Training ends when the gap to the bound is at most this much in mean loss; None or 0: it does not matter.
    tol_relative : float or None, default=1e-2
        And when the gap is at most this part of the objective; None or 0: it does not matter.
    max_iter : int or None, default=None
        Passes over the rows at most; None or −1: no limit.
    max_time : float or None, default=None
        Seconds at most.
    target : float or None, default=None
        Training ends once the objective is this low.
    max_cuts : int or None, default=None
        Size of the bundle; None: what suits the solver and memory.
    row_cache : str, default="auto"
        bundle-dca: memory for the rows that matter most ("2GB", "30%"), "auto", or "0" for none.
    sweeps : int, default=50
        bundle-dca: epochs over cached rows after each pass, at most.
    random_state : int, RandomState or None, default=0
        Seed of the order in which bundle-dca takes the rows; the other solvers draw nothing.
    memory : str, default="auto"
        Ceiling on the memory of this process: "4GB", "50%" or "auto".
    n_jobs : int or None, default=None
        Threads; None or −1: one a processor, where there is enough to do; −2: one processor less.
    scratch : str or None, default=None
        Folder for what does not fit into memory.
    lanes : int or None, default=None
        Fixed ranges of rows, each summed in order; None: from the size of the data.
    scheduler : str or distributed.Client, default="threads"
        "threads", "sync" for none, "local-cluster", or a Dask cluster.
    deadline : float, default=120.0
        Seconds that a Dask cluster may be without workers.
    verbose : bool or int, default=False
        Show progress: lines, and a bar on a terminal.

    Attributes
    ----------
    coef_ : ndarray of shape (features,)
    intercept_ : float
    n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_
        What training found.
    model_ : LinearModel
        What `streamcut.save_model` writes.

    >>> import numpy as np
    >>> from streamcut.estimators import LinearSVR
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> svr = LinearSVR(C=100.0).fit(X, [1.0, 3.0, 5.0, 7.0])
    >>> svr.predict([[4.0]]).round(1).tolist(), bool(svr.lower_bound_ <= svr.primal_objective_)
    ([9.0], True)
    """

    _solvers: ClassVar = ("auto", *(name for name in LINEAR if name in solvers_of("regression")))
    _own: ClassVar[tuple[str, ...]] = ("loss", "epsilon", "delta", "quantile", "warm_start")
    coef_: np.ndarray
    intercept_: float

    def __init__(
        self,
        epsilon: float = 0.0,
        *,
        loss: str = "epsilon_insensitive",
        delta: float = 1.0,
        quantile: float = 0.5,
        C: float = 1.0,
        l1: float | str = 0.0,
        scale: str = "none",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        warm_start: bool = False,
        solver: str = "auto",
        cut: str = "predicted",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_iter: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
        row_cache: str = "auto",
        sweeps: int = 50,
        random_state: Any = 0,
        memory: str = "auto",
        n_jobs: int | None = None,
        scratch: str | None = None,
        lanes: int | None = None,
        scheduler: Any = "threads",
        deadline: float = 120.0,
        verbose: bool | int = False,
    ) -> None:
        self.epsilon = epsilon
        self.loss = loss
        self.delta = delta
        self.quantile = quantile
        self.C = C
        self.l1 = l1
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.warm_start = warm_start
        self.solver = solver
        self.cut = cut
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_iter = max_iter
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.row_cache = row_cache
        self.sweeps = sweeps
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and targets `y` (n), or on a store: its path, or opened."""
        if is_stored(X):
            data = self._stored(X, y=y, sample_weight=sample_weight)
        else:
            X, y, weight = self._arrays(X, y, sample_weight, numeric=True)
            data = MemoryDataset(X, column_or_1d(y).astype(np.float64), weight=weight)
        start = self.model_ if self.warm_start and hasattr(self, "model_") else None
        model: Any = self._train(data, **self._loss(), task="regression", warm_start=start)
        self.coef_, self.intercept_ = model.weights, model.intercept
        return self._keep(model)

    def _loss(self) -> dict[str, Any]:
        """The loss in our words, and those parameters that it has."""
        name = _THEIRS.get(self.loss, self.loss)
        if name not in _OF_NUMBERS:
            raise UsageError(f"loss: {self.loss!r} is none of LinearSVR, which has {', '.join((*_THEIRS, *_OF_NUMBERS))}")
        return {"loss": name, **{option: float(getattr(self, option)) for option in ROW_LOSSES[name].options}}

    def predict(self, X: Any) -> np.ndarray:
        """Predicted numbers, float64 (n,): the scores, or what these mean to the loss (e^score for "poisson")."""
        scores = self._scores(X)
        return self.model_.labels_of(scores)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R² on an array with targets, or on a store."""
        if is_stored(X):
            return float(self.evaluate(X).r2)
        return super().score(X, y, sample_weight)
