"""Linear classifiers with a certificate as scikit-learn estimators: LinearSVM, of any loss, and LogisticRegression."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from streamcut.config import LINEAR
from streamcut.estimators.base import ScoringClassifier


class LinearSVM(ScoringClassifier):
    """Linear classifier for two or more classes, on arrays or on stores larger than memory, with a certificate.

    Parameters
    ----------
    C : float, default=1.0
        Loss of a row, as in scikit-learn: larger ones regularise less.
    loss : str, default="hinge"
        "hinge", "squared-hinge", "smoothed-hinge" or "logistic"; for two classes also a bound on a measure of all rows: "f1",
        "prbep", "error"; for several at once "hinge" or "softmax".
    l1 : float or str, default=0.0
        λ of the elastic net ½‖w‖² + λ‖w‖₁, or a part of λmax ("10%"); most weights are 0 when it is large.
    scale : {"none", "max-abs", "std"}, default="none"
        Train on values divided by this number of each feature; coef_ is for values as they are.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is the weight of a constant feature, regularised as others are.
    intercept_scaling : float, default=1.0
        Value of that constant feature: the larger, the less the intercept is regularised.
    strategy : {"crammer-singer", "one-vs-rest"}, default="crammer-singer"
        More than two classes: one problem, or one for each class. One-vs-rest has the losses of two classes.
    class_weight : dict, "balanced" or None, default=None
        Factors on the rows of classes, for arrays.
    warm_start : bool, default=False
        `fit` begins with the weights that are there, say those of another C.
    solver : {"auto", "bundle-dca", "ocas", "cpa"}, default="auto"
        "auto" is bundle-dca for losses of single rows, else ocas.
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
    coef_ : ndarray of shape (1 or classes, features)
    intercept_ : ndarray of shape (1 or classes,)
    classes_ : ndarray
        The classes, in order.
    n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_
        What training found.
    model_ : Model
        What `streamcut.save_model` writes.

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
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        strategy: str = "crammer-singer",
        class_weight: Any = None,
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
        self.C = C
        self.loss = loss
        self.l1 = l1
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.strategy = strategy
        self.class_weight = class_weight
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

    def _task(self, several: bool) -> dict[str, Any]:
        """Options that hang on the number of classes."""
        return {"task": "multiclass", "strategy": self.strategy} if several else {"task": "binary"}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        start = self.model_ if self.warm_start and hasattr(self, "model_") else None
        model: Any = self._train(data, **self._task(several), warm_start=start)
        self.coef_ = np.atleast_2d(model.weights.T)
        self.intercept_ = model.intercepts if several else np.array([model.intercept])
        return self._keep(model)


class LogisticRegression(LinearSVM):
    """Logistic regression for two classes, multinomial (softmax) for more, on arrays or on stores larger than memory.

    The objective is that of scikit-learn's LogisticRegression with the same C, but that the intercept is regularised as other
    weights are: the less, the larger `intercept_scaling`. For one class against the rest take
    LinearSVM(loss="logistic", strategy="one-vs-rest"), or scikit-learn's OneVsRestClassifier.

    Parameters
    ----------
    C : float, default=1.0
        Loss of a row, as in scikit-learn: larger ones regularise less.
    l1 : float or str, default=0.0
        λ of the elastic net ½‖w‖² + λ‖w‖₁, or a part of λmax ("10%"); most weights are 0 when it is large.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is the weight of a constant feature, regularised as others are.
    intercept_scaling : float, default=1.0
        Value of that constant feature: the larger, the less the intercept is regularised.
    class_weight : dict, "balanced" or None, default=None
        Factors on the rows of classes, for arrays.
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
    coef_ : ndarray of shape (1 or classes, features)
    intercept_ : ndarray of shape (1 or classes,)
    classes_ : ndarray
        The classes, in order.
    n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_
        What training found.
    model_ : Model
        What `streamcut.save_model` writes.

    >>> import numpy as np
    >>> from streamcut.estimators import LogisticRegression
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]]), np.array(["up", "down", "up", "down"])
    >>> bool(LogisticRegression().fit(X, y).predict_proba([[0.0, 3.0]])[0, 1] > 0.5)
    True
    """

    _own: ClassVar[tuple[str, ...]] = ("class_weight", "warm_start")

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

    def _task(self, several: bool) -> dict[str, Any]:
        return {"task": "multiclass", "loss": "softmax"} if several else {"task": "binary", "loss": "logistic"}
