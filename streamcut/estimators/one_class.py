"""OneClassSVM: outliers by a plane, with a certificate, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import validate_data

from streamcut.estimators.base import DTYPES, StreamedEstimator, is_stored
from streamcut.io.memory import MemoryDataset
from streamcut.solver_table import solvers_of


class OneClassSVM(OutlierMixin, StreamedEstimator):
    """The plane farthest from the origin that all but a part ν of the rows lie beyond, on arrays or on stores.

    The decisions are those of scikit-learn's OneClassSVM(kernel="linear"); weights differ by a factor.

    Parameters
    ----------
    nu : float, default=0.5
        Part of the rows that may lie outside, above 0 and at most 1.
    solver : {"auto", "ocas", "cpa"}, default="auto"
        "auto" is ocas.
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
    offset_ : float
        `decision_function` is `score_samples`, ⟨w, x⟩, minus this.
    n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_
        What training found.
    model_ : LinearModel
        What `streamcut.save_model` writes.

    >>> import numpy as np
    >>> from streamcut.estimators import OneClassSVM
    >>> X = np.array([[2.0, 2.1], [2.2, 2.0], [1.9, 2.0], [2.1, 2.2], [0.1, 0.2]])
    >>> OneClassSVM(nu=0.2).fit(X).predict(X).tolist()
    [1, 1, 1, 1, -1]
    """

    _solvers: ClassVar = ("auto", *solvers_of("one-class"))
    _fixed: ClassVar[dict[str, Any]] = {"task": "one-class"}
    coef_: np.ndarray
    offset_: float

    def __init__(
        self,
        *,
        nu: float = 0.5,
        solver: str = "auto",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_iter: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
        memory: str = "auto",
        n_jobs: int | None = None,
        scratch: str | None = None,
        lanes: int | None = None,
        scheduler: Any = "threads",
        deadline: float = 120.0,
        verbose: bool | int = False,
    ) -> None:
        self.nu = nu
        self.solver = solver
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_iter = max_iter
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.memory = memory
        self.n_jobs = n_jobs
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on the rows of `X` (n × d, NumPy or SciPy sparse) or of a store; `y` is not looked at."""
        if is_stored(X):
            data = self._stored(X)
        else:
            X = validate_data(self, X, accept_sparse="csr", dtype=DTYPES, accept_large_sparse=True)
            data = MemoryDataset(X, np.ones(X.shape[0]))
        model: Any = self._train(data)
        self.coef_, self.offset_ = model.weights, -model.intercept
        return self._keep(model)

    def decision_function(self, X: Any) -> np.ndarray:
        """How far inside the plane rows of an array or a store are, float64 (n,); below 0 outside."""
        return self._scores(X)

    def score_samples(self, X: Any) -> np.ndarray:
        """⟨w, x⟩, float64 (n,), of the rows of an array or a store."""
        return self._scores(X) + self.offset_

    def predict(self, X: Any) -> np.ndarray:
        """1 for rows inside, −1 for those outside, int64 (n,)."""
        return np.where(self._scores(X) > 0.0, 1, -1)
