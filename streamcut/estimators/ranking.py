"""RankingSVM: orders the rows of queries, as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from streamcut.config import CUTTING_PLANES
from streamcut.estimators.base import StreamedEstimator, grouped, is_stored
from streamcut.evaluation import evaluate
from streamcut.training import train


class RankingSVM(StreamedEstimator):
    """Linear ranking function: of two rows of one query the one with the greater label is to score higher.

    C              loss of a row: it stands before the mean loss of all pairs times the number of rows
    normalisation  "pairs": the mean over all pairs; "queries": over queries of the mean over their pairs
    others         as in `streamcut.train`

    coef_ (features,), n_iter_, primal_objective_, lower_bound_, gap_, converged_, history_, model_.
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
        max_passes: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        max_cuts: int | None = None,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
        lanes: int | None = None,
        scheduler: Any = "threads",
        deadline: float = 120.0,
    ) -> None:
        self.C = C
        self.normalisation = normalisation
        self.solver = solver
        self.tol = tol
        self.tol_relative = tol_relative
        self.max_passes = max_passes
        self.max_time = max_time
        self.target = target
        self.max_cuts = max_cuts
        self.memory = memory
        self.workers = workers
        self.scratch = scratch
        self.lanes = lanes
        self.scheduler = scheduler
        self.deadline = deadline

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
        model: Any = train(data, **self._options())
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
