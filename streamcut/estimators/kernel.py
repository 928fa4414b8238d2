"""Kernel classifiers as scikit-learn estimators: on a budget of support vectors from a stream, and exact."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import column_or_1d

from streamcut.calibration import with_probabilities
from streamcut.config import BUDGETED, EXACT_KERNEL, SAMPLED
from streamcut.errors import UsageError
from streamcut.estimators.base import RESULTS, ScoringClassifier, is_stored
from streamcut.kernels.kernel import Kernel
from streamcut.models.joined import joined
from streamcut.models.kernel import KernelModel
from streamcut.models.model import Model

_FOLDS = 5


class _KernelClassifier(ScoringClassifier):
    kernel: str
    gamma: float | str

    def _options(self) -> dict[str, Any]:
        """γ by scikit-learn's words: its "scale" is what `train` calls "auto", its "auto" is 1 / features."""
        options = super()._options()
        if options["gamma"] == "auto" and options["kernel"] != "linear":
            return {**options, "gamma": 1.0 / self.n_features_in_}
        return {**options, "gamma": "auto"} if options["gamma"] in ("scale", "auto") else options

    def _keep(self, model: Model) -> Self:
        assert isinstance(model, KernelModel)
        self.support_vectors_, self.dual_coef_ = model.support, np.atleast_2d(model.coefficients.T)
        self.intercept_ = np.atleast_1d(np.asarray(model.intercept, dtype=np.float64))
        self.gamma_ = model.kernel.gamma
        return super()._keep(model)


class BudgetedKernelSVM(_KernelClassifier):
    """Kernel machine with at most `budget` support vectors a class, in passes over shuffled shards: BSCA or BSGD.

    Rows may also come bit by bit, to `partial_fit`. Nothing is proved about the objective.

    Parameters
    ----------
    C : float, default=1.0
        Loss of a row, as in scikit-learn: larger ones regularise less.
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        exp(−γ‖x − x′‖²), (γ⟨x, x′⟩ + coef0)^degree or ⟨x, x′⟩.
    gamma : float, "scale" or "auto", default="scale"
        γ; "scale" is 1 / (features × variance of all values), "auto" 1 / features.
    degree : int, default=3
        Of kernel "poly".
    coef0 : float, default=0.0
        Of kernel "poly".
    budget : int or None, default=None
        Support vectors at most, for each of more than two classes; None: 500.
    maintenance : {"merge", "remove", "project", "none"}, default="merge"
        What is done to keep the budget; "merge" is for kernel "rbf", "none" keeps no budget.
    damping : float, default=0.5
        bsca: the last part of an epoch, in which steps fall to nothing.
    solver : {"bsca", "bsgd"}, default="bsca"
        Dual coordinate ascent, or stochastic gradient steps (Pegasos).
    epochs : float, default=5.0
        Epochs.
    class_weight : dict, "balanced" or None, default=None
        Factors on the rows of classes, for arrays.
    random_state : int, RandomState or None, default=0
        Seed of the order of rows.
    max_time : float or None, default=None
        Seconds at most.
    memory : str, default="auto"
        Ceiling on the memory of this process: "4GB", "50%" or "auto".
    n_jobs : int or None, default=None
        Threads; None or −1: one a processor, where there is enough to do; −2: one processor less.
    scratch : str or None, default=None
        Folder for what does not fit into memory.
    verbose : bool or int, default=False
        Show progress: lines, and a bar on a terminal.

    Attributes
    ----------
    support_vectors_ : sparse array of shape (vectors, features)
    dual_coef_ : ndarray of shape (1 or classes, vectors)
    intercept_ : ndarray of shape (1 or classes,)
    gamma_ : float
    classes_ : ndarray
        The classes, in order.
    n_iter_, converged_, history_
        What training found.
    model_ : KernelModel
        What `streamcut.save_model` writes.
    """

    _solvers: ClassVar = BUDGETED

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
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
        n_jobs: int | None = None,
        scratch: str | None = None,
        verbose: bool | int = False,
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
        self.n_jobs = n_jobs
        self.scratch = scratch
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        return self._keep(self._train(data, task="multiclass" if several else "binary"))

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
        options = {"epochs": 1.0, "warm_start": start}
        return self._keep(self._train(data, **options, task="multiclass" if several else "binary"))

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

    Several classes are trained each against the rest, by sampled cuts all at once.

    Parameters
    ----------
    C : float, default=1.0
        Loss of a row, as in scikit-learn: larger ones regularise less.
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        exp(−γ‖x − x′‖²), (γ⟨x, x′⟩ + coef0)^degree or ⟨x, x′⟩.
    gamma : float, "scale" or "auto", default="scale"
        γ; "scale" is 1 / (features × variance of all values), "auto" 1 / features.
    degree : int, default=3
        Of kernel "poly".
    coef0 : float, default=0.0
        Of kernel "poly".
    fit_intercept : bool, default=True
        Whether there is an intercept; smo and sbp do not regularise it. The rivals of sbp have none.
    solver : {"smo", "sbp", "sdca", "pegasos", "perceptron", "sampled-constant", "sampled-linear"}, default="smo"
        smo ends with a certificate; sbp and its rivals stop after `epochs`; sampled cuts train several classes in one problem.
    epochs : float or None, default=None
        sbp and its rivals: epochs; None: one.
    batch : int or None, default=None
        sbp and its rivals: rows drawn at once.
    nu : float or None, default=None
        sbp: mean slack of a row, in place of C.
    max_evaluations : float or None, default=None
        sbp and its rivals: kernel evaluations at most.
    samples : int or None, default=None
        Sampled cuts: rows that a cut is made of.
    max_cuts : int or None, default=None
        Sampled cuts: size of the bundle.
    tol : float or None, default=1e-3
        Training ends when the gap to the bound is at most this much in mean loss; None or 0: it does not matter.
    tol_relative : float or None, default=1e-2
        And when the gap is at most this part of the objective; None or 0: it does not matter.
    probability : bool, default=False
        `fit` also gives `predict_proba`, by training five times more, each time without a fifth of the rows.
    class_weight : dict, "balanced" or None, default=None
        Factors on the rows of classes, for arrays; of smo and sampled cuts.
    random_state : int, RandomState or None, default=0
        Seed, of all but smo.
    max_passes : int or None, default=None
        Sampled cuts: passes at most. smo ends by its gap, sbp by `epochs`.
    max_time : float or None, default=None
        Seconds at most.
    target : float or None, default=None
        Training ends once the objective is this low.
    memory : str, default="auto"
        Ceiling on the memory of this process: "4GB", "50%" or "auto".
    n_jobs : int or None, default=None
        Threads; None or −1: one a processor, where there is enough to do; −2: one processor less.
    scratch : str or None, default=None
        Folder for what does not fit into memory.
    kernel_cache : str, default="auto"
        smo: memory for columns of the kernel, "auto" or say "2GB".
    verbose : bool or int, default=False
        Show progress: lines, and a bar on a terminal.

    Attributes
    ----------
    support_vectors_ : sparse array of shape (vectors, features)
    dual_coef_ : ndarray of shape (1 or classes, vectors)
    intercept_ : ndarray of shape (1 or classes,)
    gamma_ : float
    classes_ : ndarray
        The classes, in order.
    primal_objective_, lower_bound_, gap_ : float or ndarray of shape (classes,)
        Of smo and sampled cuts; several classes by smo are a problem each.
    n_iter_, converged_, history_
        What else training found.
    model_ : KernelModel
        What `streamcut.save_model` writes.
    """

    _solvers: ClassVar = (*EXACT_KERNEL, *SAMPLED)
    _own: ClassVar[tuple[str, ...]] = ("class_weight", "probability")

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        solver: str = "smo",
        epochs: float | None = None,
        batch: int | None = None,
        nu: float | None = None,
        max_evaluations: float | None = None,
        samples: int | None = None,
        max_cuts: int | None = None,
        tol: float | None = 1e-3,
        tol_relative: float | None = 1e-2,
        probability: bool = False,
        class_weight: Any = None,
        random_state: Any = 0,
        max_passes: int | None = None,
        max_time: float | None = None,
        target: float | None = None,
        memory: str = "auto",
        n_jobs: int | None = None,
        scratch: str | None = None,
        kernel_cache: str = "auto",
        verbose: bool | int = False,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.epochs = epochs
        self.batch = batch
        self.nu = nu
        self.max_evaluations = max_evaluations
        self.samples = samples
        self.max_cuts = max_cuts
        self.tol = tol
        self.tol_relative = tol_relative
        self.probability = probability
        self.class_weight = class_weight
        self.random_state = random_state
        self.max_passes = max_passes
        self.max_time = max_time
        self.target = target
        self.memory = memory
        self.n_jobs = n_jobs
        self.scratch = scratch
        self.kernel_cache = kernel_cache
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        if self.probability and is_stored(X):
            raise UsageError("probability: of a store, fit and then `calibrate` on a store that was held out")
        if several and self.solver in EXACT_KERNEL:
            models = [self._train(data, task="binary", positive_label=label) for label in self._labels.tolist()]
            self._keep(joined(models, tuple(self._labels.tolist())))
            for name, attribute in RESULTS.items():
                if all(name in model.result() for model in models):
                    setattr(self, attribute, np.array([model.result()[name] for model in models]))
        else:
            self._keep(self._train(data, task="multiclass" if several else "binary"))
        if self.probability:
            self._fit_probabilities(X, y, sample_weight)
        return self

    def _fit_probabilities(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit them on scores that each fifth of the rows gets from a model of the others."""
        X, y, weight = self._arrays(X, y, sample_weight, numeric=False, reset=False)
        scores = np.empty((X.shape[0], len(self.classes_)) if len(self.classes_) > 2 else X.shape[0])
        if min(np.unique(y, return_counts=True)[1]) < _FOLDS:
            raise ValueError(f"probability: each class needs {_FOLDS} rows or more, of which some are held out at a time")
        for rest, some in StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(X, y):
            part = clone(self).set_params(probability=False, verbose=False)
            scores[some] = part.fit(X[rest], y[rest], None if weight is None else weight[rest]).decision_function(X[some])
        self.model_ = with_probabilities(self.model_, scores, self._codes(column_or_1d(y)), weight)
