"""Kernel classifiers as scikit-learn estimators: with a budget of support vectors from a stream, and exact."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import column_or_1d

from streamcut.calibration import with_probabilities
from streamcut.config import EXACT_KERNEL, SAMPLED
from streamcut.errors import UsageError
from streamcut.estimators.base import RESULTS, ScoringClassifier, is_stored
from streamcut.estimators.declared import USUAL, attribute, declared, parameter
from streamcut.estimators.kernel_machine import KernelMachine, OnBudget
from streamcut.estimators.names import named
from streamcut.estimators.parameters import Certified
from streamcut.foundation.interrupts import first_interrupt_asks
from streamcut.models.kernel import KernelModel, joined
from streamcut.progress.display import shown_by
from streamcut.training import Session, checked

if TYPE_CHECKING:
    from streamcut.jobs.exact_kernel import ExactKernelJob

_FOLDS = 5
_BY_SMO = "For smo and sampled cuts; several classes by smo are one problem each."


@declared
class KernelClassifier(KernelMachine, ScoringClassifier):
    """What BudgetedKernelSVM and KernelSVM have in common."""


@declared
class BudgetedKernelSVM(OnBudget, KernelClassifier):
    """Kernel machine with at most `budget` support vectors per class, in passes over shuffled shards: BSCA or BSGD.

    Nothing is proved about the objective.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        return self._keep(self._train(data, task="multiclass" if several else "binary"))


@declared
class KernelSVM(KernelClassifier, Certified):
    """Kernel machine without a budget: SMO with a certificate, the stochastic batch perceptron, or sampled cutting planes.

    Several classes are trained each against the rest, by sampled cuts all at once.
    """

    _solvers: ClassVar = (*EXACT_KERNEL, *SAMPLED)
    solver: str = parameter(
        "smo ends with a certificate; sbp and its rivals stop after `epochs`; sampled cuts train several classes in one problem.",
        default="smo",
        choices=_solvers,
    )
    fit_intercept: bool = parameter(
        "Whether there is an intercept; smo and sbp do not regularise it. The rivals of sbp have none.", default=True
    )
    epochs: float | None = parameter(default=USUAL.epochs)
    batch: int | None = parameter(default=USUAL.batch)
    nu: float | None = parameter("sbp: mean slack of a row, instead of C.", default=None)
    samples: int | None = parameter(default=USUAL.samples)
    max_cuts: int | None = parameter(default=USUAL.max_cuts)
    max_passes: int | None = parameter("Sampled cuts: passes at most. smo ends by its gap, sbp by `epochs`.", default=None)
    kernel_cache: str = parameter(default=USUAL.kernel_cache)
    random_state: Any = parameter("Seed, for all but smo.", default=0, kind="int, RandomState or None")
    class_weight: Any = parameter(
        "Factors on the rows of classes, for arrays; of smo and sampled cuts.",
        default=None,
        kind='dict, "balanced" or None',
        option=False,
    )
    probability: bool = parameter(
        "`fit` also gives `predict_proba`, by five more trainings, each without a fifth of the rows.",
        default=False,
        option=False,
    )
    primal_objective_: Any = attribute("float or ndarray of shape (classes,)", _BY_SMO)
    lower_bound_: Any = attribute("float or ndarray of shape (classes,)", _BY_SMO)
    gap_: Any = attribute("float or ndarray of shape (classes,)", _BY_SMO)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Train on `X` (n × d, NumPy or SciPy sparse) and `y` (n), or on a store: its path, or opened."""
        data, several = self._classification(X, y, sample_weight)
        if self.probability and is_stored(X):
            raise UsageError("probability: for a store, fit and then `calibrate` on a held-out store")
        if several and self.solver in EXACT_KERNEL:
            models = self._train_each(data)
            self._keep(joined(models, tuple(self._labels.tolist())))
            for name, ours in RESULTS.items():
                if all(name in model.result() for model in models):
                    setattr(self, ours, np.array([model.result()[name] for model in models]))
        else:
            self._keep(self._train(data, task="multiclass" if several else "binary"))
        if self.probability:
            self._fit_probabilities(X, y, sample_weight)
        return self

    def _train_each(self, data: Any) -> list[KernelModel]:
        """Each class against the rest: problems that share kernel columns."""
        with named(self), shown_by(bool(self.verbose)) as display, first_interrupt_asks() as asked:
            options, scheduler = checked(self._asked(data, task="binary", positive_label=float(self._labels[0])))
            run = Session(data, options, scheduler=scheduler, stop=asked, display=display)
            run.job = job = replace(cast("ExactKernelJob", run.job), sharing=True)
            with run:
                return run.all_finished(lambda: job.solve_each(run.runner, lambda: run.progress(None), run.plan))  # type: ignore[arg-type, return-value]

    def _has_probabilities(self) -> bool:
        return self.probability

    def _fit_probabilities(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit probabilities on the scores of each fifth of the rows by a model of the others."""
        X, y, weight = self._arrays(X, y, sample_weight, numeric=False, reset=False)
        scores = np.empty((X.shape[0], len(self.classes_)) if len(self.classes_) > 2 else X.shape[0])
        if min(np.unique(y, return_counts=True)[1]) < _FOLDS:
            raise ValueError(f"probability: each class needs {_FOLDS} rows or more, some of which are held out at a time")
        for rest, some in StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(X, y):
            part = clone(self).set_params(probability=False, verbose=False, recipe=None)
            scores[some] = part.fit(X[rest], y[rest], None if weight is None else weight[rest]).decision_function(X[some])
        self.model_ = with_probabilities(self.model_, scores, self._codes(column_or_1d(y)), weight)
