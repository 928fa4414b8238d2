"""SequenceSVM: labels the rows of sequences together, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d

from streamcut.config import LINEAR
from streamcut.estimators.base import StreamedClassifier, is_stored
from streamcut.prediction import predict


class SequenceSVM(StreamedClassifier):
    """Linear chain: the score of a labelling is that of its rows, and of each label after the one before it.

    `groups` says which rows are one sequence, in their order; without it every row is one of its own.

    Parameters
    ----------
    C : float, default=1.0
        Loss of a row whose label is wrong.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is the weight of a constant feature, regularised as others are.
    intercept_scaling : float, default=1.0
        Value of that constant feature: the larger, the less the intercept is regularised.
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
    random_state : int, RandomState or None, default=0
        Seed of the order in which bundle-dca takes the sequences; the other solvers draw nothing.
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
    coef_ : ndarray of shape (classes, features)
    intercept_ : ndarray of shape (classes,)
    transitions_ : ndarray of shape (classes, classes)
        [j, k]: what label k after label j adds to the score.
    classes_ : ndarray
        The classes, in order.
    n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_
        What training found.
    model_ : Model
        What `streamcut.save_model` writes.
    """

    _solvers: ClassVar = ("auto", *LINEAR)
    _fixed: ClassVar[dict[str, Any]] = {"task": "sequence"}
    class_weight = None  # sequences have no weights

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        solver: str = "auto",
        cut: str = "predicted",
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        max_iter: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.solver = solver
        self.cut = cut
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_iter = max_iter
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.random_state = random_state
        self.memory = memory
        self.n_jobs = n_jobs
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Train on `X` (n × d), `y` (n) and the sequence of each row (n), or on a store."""
        if groups is None and not is_stored(X):
            groups = np.arange(_num_samples(X))
        data, _ = self._classification(X, y, None, groups)
        model: Any = self._train(data)
        self.coef_, self.intercept_, self.transitions_ = model.weights.T, model.intercepts, model.transitions
        return self._keep(model)

    def emissions(self, X: Any) -> np.ndarray:
        """Scores of the rows for each class, float64 (n, classes), without transitions."""
        return self._scores(X)

    def predict(self, X: Any, groups: Any = None) -> np.ndarray:
        """The classes of the rows of an array or a store."""
        check_is_fitted(self, "model_")
        if is_stored(X):
            labels = predict(self.model_, self._narrow(X))
        else:
            X = self._checked(X)
            sequence = np.arange(X.shape[0]) if groups is None else column_or_1d(groups)
            check_consistent_length(X, sequence)
            order = np.argsort(sequence, kind="stable")
            labels = np.empty(X.shape[0])
            labels[order] = self.model_.predict(X[order], sequence[order])  # type: ignore[call-arg]
        return self.classes_[np.searchsorted(self._labels, labels)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> float:
        """Part of the rows that are labelled rightly, of an array with labels or of a store."""
        if is_stored(X):
            return float(self.evaluate(X).accuracy)
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))
