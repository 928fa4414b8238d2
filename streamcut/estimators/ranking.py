"""RankingSVM: orders the rows of queries, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from streamcut.config import CUTTING_PLANES
from streamcut.estimators.base import StreamedEstimator, grouped, is_stored
from streamcut.evaluation import evaluate


class RankingSVM(StreamedEstimator):
    """Linear ranking function: of two rows of one query the one with the greater label is to score higher.

    Parameters
    ----------
    C : float, default=1.0
        Loss of a row: it stands before the mean loss of all pairs times the number of rows.
    normalisation : {"pairs", "queries"}, default="pairs"
        The mean over all pairs, or over queries of the mean over their pairs.
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
    n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_
        What training found.
    model_ : Model
        What `streamcut.save_model` writes.
    """

    _solvers: ClassVar = ("auto", *CUTTING_PLANES)
    _fixed: ClassVar[dict[str, Any]] = {"task": "ranking"}

    def __init__(
        self,
        C: float = 1.0,
        *,
        normalisation: str = "pairs",
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
        self.C = C
        self.normalisation = normalisation
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Train on `X` (n × d), numbers `y` (n) and the query of each row (n; None: all are one), or on a store."""
        if is_stored(X):
            data: Any = self._stored(X, y=y, groups=groups)
        else:
            X, y, _ = self._arrays(X, y, numeric=True)
            if y.dtype.kind not in "biuf":
                raise ValueError(f"y: rows are ranked by numbers, not by {y.dtype} such as {y.tolist()[0]!r}")
            if np.ptp(y) == 0:
                raise ValueError(f"all labels are {y[0]:g}: there is nothing to rank (n_samples={len(y)})")
            data = grouped(X, y, None, groups)
        model: Any = self._train(data)
        self.coef_ = model.weights
        return self._keep(model)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, float64 (n,), of the rows of an array or a store: higher ones come first."""
        return self._scores(X)

    predict = decision_function

    def score(self, X: Any, y: Any = None, groups: Any = None) -> float:
        """Part of the pairs of one query with different labels that are ordered rightly (ties half)."""
        if is_stored(X):
            return float(self.evaluate(X).pairwise_accuracy)
        check_is_fitted(self, "model_")
        X, y, _ = self._arrays(X, y, numeric=True, reset=False)
        return float(evaluate(self.model_, grouped(X, y, None, groups)).pairwise_accuracy)
