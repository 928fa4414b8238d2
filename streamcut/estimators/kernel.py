"""Kernel classifiers as scikit-learn estimators: on a budget of support vectors from a stream, and exact."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from streamcut.config import BUDGETED, EXACT_KERNEL, SAMPLED
from streamcut.errors import UsageError
from streamcut.estimators.base import ScoringClassifier
from streamcut.kernels.kernel import Kernel
from streamcut.models.kernel import KernelModel
from streamcut.models.model import Model
from streamcut.solver_table import SOLVER_TABLE
from streamcut.training import train


class _KernelClassifier(ScoringClassifier):
    def _keep(self, model: Model) -> Self:
        assert isinstance(model, KernelModel)
        self.support_vectors_, self.dual_coef_ = model.support, np.atleast_2d(model.coefficients.T)
        self.intercept_ = np.atleast_1d(np.asarray(model.intercept, dtype=np.float64))
        self.gamma_ = model.kernel.gamma
        return super()._keep(model)


class BudgetedKernelSVM(_KernelClassifier):
    """Kernel machine with at most `budget` support vectors a class, in passes over shuffled shards: BSCA or BSGD.

    C              loss of a row
    kernel         "rbf", "poly" or "linear"; gamma "auto" is 1 / (features × variance of all values), scikit-learn's "scale"
    budget         support vectors at most, for each of more than two classes
    maintenance    what is done to keep it: "merge" (rbf only), "remove", "project"; "none" keeps no budget
    damping        bsca: the last part of an epoch, in which steps fall to nothing
    solver         "bsca" (dual coordinate ascent) or "bsgd" (Pegasos)
    epochs         number of epochs
    class_weight   None, "balanced" or {class: factor}, for arrays
    random_state   seed
    max_time, memory, workers, scratch   as in `streamcut.train`

    Rows may also come bit by bit, to `partial_fit`.

    support_vectors_, dual_coef_ (1 or classes, vectors), intercept_, gamma_, classes_, n_iter_, converged_, history_, model_.
    Nothing is proved about the objective.
    """

    _solvers: ClassVar = BUDGETED

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        budget: int | None = None,
        maintenance: str = "merge",
        damping: float = 0.5,
        solver: str = "bsca",
        epochs: float = 5.0,
        class_weight: Any = None,
        random_state: Any = 0,
        max_time: float | None = None,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.budget = budget
        self.maintenance = maintenance
        self.damping = damping
        self.solver = solver
        self.epochs = epochs
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_time = max_time
        self.memory = memory
        self.workers = workers
        self.scratch = scratch

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        return self._keep(train(data, **self._options(), task="multiclass" if several else "binary"))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """One epoch over more rows, from the present support vectors and steps on, be they of `partial_fit` or `fit`.

        X, y, sample_weight   as for `fit`; some of the classes may be missing
        classes               all classes that will ever come: required at the first call with arrays, may be repeated later

        The first call fixes the classes, the number of features and an automatic γ. Rows count as new ones, whether they have
        been here before or not: what remains of the old ones is in the support vectors. n_iter_ and history_ are those of the
        last call.
        """
        data = self._further(X, y, classes, sample_weight)
        several = len(self.classes_) > 2
        start = self.model_ if hasattr(self, "model_") else self._untrained(several)
        options = {**self._options(), "epochs": 1.0, "warm_start": start}
        return self._keep(train(data, **options, task="multiclass" if several else "binary"))

    def _untrained(self, several: bool) -> KernelModel:
        """A model without vectors, which knows the classes: the first rows need not have all of them."""
        return KernelModel(
            support=sp.csr_array((0, self.n_features_in_)),
            coefficients=np.zeros((0, len(self.classes_)) if several else 0),
            kernel=Kernel(self.kernel),
            labels=tuple(self._labels.tolist()),
            C=self.C,
            task="multiclass" if several else "binary",
            solver=self.solver,
        )


class KernelSVM(_KernelClassifier):
    """Kernel machine without a budget: SMO with a certificate, the stochastic batch perceptron, or sampled cutting planes.

    C              loss of a row
    kernel         "rbf", "poly" or "linear"; gamma "auto" is 1 / (features × variance of all values), scikit-learn's "scale"
    bias           0 = no intercept; smo and sbp do not regularise it, sampled cuts have a constant feature of this value
    solver         "smo"; "sbp", which stops after `epochs`; "sampled-constant" or "sampled-linear", also for several classes
    nu             sbp: mean slack of a row, in place of C
    samples        sampled cuts: rows that a cut is made of
    class_weight, sample_weight   smo and sampled cuts
    random_state   seed, of all but smo
    others         as in `streamcut.train`

    support_vectors_, dual_coef_ (1 or classes, vectors), intercept_, gamma_, classes_, n_iter_, converged_, history_, model_, and
    primal_objective_, lower_bound_, gap_ of smo and sampled cuts.
    """

    _solvers: ClassVar = (*EXACT_KERNEL, *SAMPLED)

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "auto",
        degree: int = 3,
        coef0: float = 0.0,
        bias: float = 1.0,
        solver: str = "smo",
        epochs: float | None = None,
        batch: int | None = None,
        nu: float | None = None,
        max_evaluations: float | None = None,
        samples: int | None = None,
        max_cuts: int | None = None,
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        class_weight: Any = None,
        random_state: Any = 0,
        max_passes: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        memory: str = "auto",
        workers: int | None = None,
        scratch: str | None = None,
        kernel_cache: str = "auto",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.bias = bias
        self.solver = solver
        self.epochs = epochs
        self.batch = batch
        self.nu = nu
        self.max_evaluations = max_evaluations
        self.samples = samples
        self.max_cuts = max_cuts
        self.tol = tol
        self.tol_relative = tol_relative
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_passes = max_passes
        self.max_time = max_time
        self.target = target
        self.memory = memory
        self.workers = workers
        self.scratch = scratch
        self.kernel_cache = kernel_cache

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        record = SOLVER_TABLE.get(self.solver)
        tags.classifier_tags.multi_class = record is not None and "crammer-singer" in record.trains
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        if several and self.solver in EXACT_KERNEL:
            raise UsageError(
                f"Only binary classification is supported by solver {self.solver!r}; for {len(self.classes_)} classes take "
                "'sampled-linear', OneVsRestClassifier or BudgetedKernelSVM"
            )
        return self._keep(train(data, **self._options(), task="multiclass" if several else "binary"))
